// Undo and redo for plan A, and the settings that the last change adjusted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/plan_settings.h"

namespace tpsim::gui {

class History {
 public:
  // Records a change of the selected plan; call every frame. `chosen`: the selected plan, empty for
  // the best plan. `shown`: plan A. `is_done`: false during a drag, so that a drag is one change.
  void record(const std::optional<Plan>& chosen, const std::optional<Plan>& shown, bool is_done);
  // Removes all changes, because other inputs of planning have changed.
  void clear() { *this = History(); }

  bool can_undo() const { return !past_.empty(); }
  bool can_redo() const { return !future_.empty(); }
  // Undo or redo one change. Both return the plan to select; empty selects the best plan.
  std::optional<Plan> undo();
  std::optional<Plan> redo();

  // Returns plan A before the last change, or before the drag in progress; empty if there was no
  // change. `shown`: plan A.
  const std::optional<Plan>& before(const Plan& shown) const {
    return shown_ == shown ? before_ : shown_;
  }

 private:
  std::optional<Plan> step(std::vector<std::optional<Plan>>& from,
                           std::vector<std::optional<Plan>>& to);

  std::vector<std::optional<Plan>> past_, future_;
  bool has_started_ = false;            // the first plan is not a change
  std::optional<Plan> chosen_;          // the selected plan after the last recorded change
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
