// Passes a host's key events to ImGui without losing any: a key that is pressed and released
// between two frames is reported as pressed in one frame.
#pragma once

#include <imgui.h>

#include <deque>

namespace tpsim::gui {

class KeyQueue {
 public:
  void add_key(int key, bool is_down) { events_.push_back({key, is_down, 0}); }
  void add_character(unsigned character) { events_.push_back({-1, false, character}); }
  bool is_empty() const { return events_.empty(); }

  // Passes the queued events to ImGui in order; call before each frame. Stops before a key that
  // would change twice in one frame. After a key press with Ctrl, later events wait for a few
  // frames: the shortcut may move the focus to a text field, which must receive the following
  // characters.
  void pass_to(ImGuiIO& io);

 private:
  struct Event {
    int key = 0;
    bool is_down = false;
    unsigned character = 0;  // 0: a key event
  };
  std::deque<Event> events_;
  int frames_to_wait_ = 0;
};

}  // namespace tpsim::gui
