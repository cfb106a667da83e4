// Keys and buttons that the browser reports between two frames.
#pragma once

#include <algorithm>
#include <vector>

namespace tpsim::gui {

// States of keys and buttons for the next frame. If one is pressed and released between two frames,
// the next frame sees it pressed and the frame after that sees it released.
class Presses {
 public:
  void set(bool& state, bool is_down) {
    if (is_down) {
      state = true;
      unseen_.push_back(&state);
    } else if (std::find(unseen_.begin(), unseen_.end(), &state) != unseen_.end()) {
      let_go_.push_back(&state);
    } else {
      state = false;
    }
  }
  // Call after each frame. Returns whether a key or button is released in the next frame.
  bool settle() {
    const bool changes = !let_go_.empty();
    for (bool* const state : let_go_) *state = false;
    let_go_.clear();
    unseen_.clear();
    return changes;
  }

 private:
  std::vector<bool*> unseen_, let_go_;
};

}  // namespace tpsim::gui
