// Key events of a host, passed to ImGui so that none is lost: a key that is pressed and released
// between two frames is down for one frame.
#pragma once

#include <imgui.h>

#include <deque>

namespace tpsim::gui {

class KeyQueue {
 public:
  void add_key(int key, bool is_down) { events_.push_back({key, is_down, 0}); }
  void add_character(unsigned character) { events_.push_back({-1, false, character}); }
  bool is_empty() const { return events_.empty(); }

  // Passes events to ImGui before a frame, in order, until a key would change for the second time.
  // After a key press with Ctrl waits a few frames, in which a shortcut moves the focus: characters
  // that follow belong to the new field.
  void pass_to(ImGuiIO& io);

 private:
  struct Event {
    int key = 0;
    bool is_down = false;
    unsigned character = 0;  // 0: a key
  };
  std::deque<Event> events_;
  int frames_to_wait_ = 0;
};

}  // namespace tpsim::gui
