// Undo and redo for plan A, its software and its network, and the settings that the last change
// adjusted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/plan_settings.h"
#include "core/software/stack_parts.h"

namespace tpsim::gui {

// Everything that the controls of the plan panel select.
struct Selection {
  std::optional<Plan> plan;  // empty: the best plan of the search
  std::string stack;         // empty: the cluster's
  PartValues parts;
  double intra_node = 1, inter_node = 1;
  friend bool operator==(const Selection&, const Selection&) = default;
};

class History {
 public:
  // Records a change of the selection; call every frame. `shown`: plan A. `is_done`: false during a
  // drag, so that a drag is one change.
  void record(const Selection& chosen, const std::optional<Plan>& shown, bool is_done);
  // Removes all changes, because other inputs of planning have changed.
  void clear() { *this = History(); }

  bool can_undo() const { return !past_.empty(); }
  bool can_redo() const { return !future_.empty(); }
  // Undo or redo one change. Both return the selection to restore.
  Selection undo();
  Selection redo();

  // Returns plan A before the last change, or before the drag in progress; empty if there was no
  // change. `shown`: plan A.
  const std::optional<Plan>& before(const Plan& shown) const {
    return shown_ == shown ? before_ : shown_;
  }

 private:
  Selection step(std::vector<Selection>& from, std::vector<Selection>& to);

  std::vector<Selection> past_, future_;
  bool has_started_ = false;            // the first selection is not a change
  Selection chosen_;                    // after the last recorded change
  std::optional<Plan> shown_, before_;  // plan A now, and before the last change
};

// A setting that was adjusted because the user changed another one.
struct MovedSetting {
  Setting setting{};
  std::string before;  // text of the value before the change
};
// Returns the settings that differ between the plans, except `turned`.
std::vector<MovedSetting> moved_settings(const Plan& before, const Plan& now,
                                         const std::optional<Setting>& turned);

}  // namespace tpsim::gui
