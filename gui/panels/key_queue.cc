#include "gui/panels/key_queue.h"

#include <set>

namespace tpsim::gui {
namespace {

constexpr int kFramesOfShortcut = 3;
// GLFW's key numbers of the modifiers.
constexpr int kLeftShift = 340, kLeftControl = 341, kLeftAlt = 342, kRightShift = 344,
              kRightControl = 345, kRightAlt = 346;

bool is_modifier(int key) { return key >= kLeftShift && key <= kRightAlt; }

}  // namespace

void KeyQueue::pass_to(ImGuiIO& io) {
  if (frames_to_wait_ > 0) {
    --frames_to_wait_;
    return;
  }
  std::set<int> changed;
  while (!events_.empty()) {
    const Event event = events_.front();
    if (event.character != 0) {
      io.AddInputCharacter(event.character);
      events_.pop_front();
      continue;
    }
    if (!changed.insert(event.key).second) return;
    events_.pop_front();
    if (event.key < 0 || event.key >= IM_ARRAYSIZE(io.KeysDown)) continue;
    io.KeysDown[event.key] = event.is_down;
    io.KeyShift = io.KeysDown[kLeftShift] || io.KeysDown[kRightShift];
    io.KeyCtrl = io.KeysDown[kLeftControl] || io.KeysDown[kRightControl];
    io.KeyAlt = io.KeysDown[kLeftAlt] || io.KeysDown[kRightAlt];
    if (event.is_down && io.KeyCtrl && !is_modifier(event.key)) {
      frames_to_wait_ = kFramesOfShortcut;
      return;
    }
  }
}

}  // namespace tpsim::gui
