#include "gui/views/history.h"

namespace tpsim::gui {

void History::record(const Selection& chosen, const std::optional<Plan>& shown, bool is_done) {
  if (!is_done) return;
  if (!has_started_) {
    if (!shown) return;
    has_started_ = true;
    chosen_ = chosen;
    shown_ = shown;
  }
  if (chosen != chosen_) {
    past_.push_back(chosen_);
    future_.clear();
    chosen_ = chosen;
  }
  if (shown && shown != shown_) {
    before_ = shown_;
    shown_ = shown;
  }
}

Selection History::step(std::vector<Selection>& from, std::vector<Selection>& to) {
  if (from.empty()) return chosen_;
  to.push_back(chosen_);
  chosen_ = from.back();
  from.pop_back();
  return chosen_;
}

Selection History::undo() { return step(past_, future_); }
Selection History::redo() { return step(future_, past_); }

std::vector<MovedSetting> moved_settings(const Plan& before, const Plan& now,
                                         const std::optional<Setting>& turned) {
  std::vector<MovedSetting> moved;
  for (const SettingRow& row : setting_rows()) {
    if (row.counts_for != nullptr || row.setting == turned) continue;
    const std::string text = text_of(before, row.setting);
    if (text != text_of(now, row.setting)) moved.push_back({row.setting, text});
  }
  return moved;
}

}  // namespace tpsim::gui
