#include "gui/plan_command.h"

#include <fmt/format.h>

#include "core/plan_settings.h"
#include "core/text.h"

namespace tpsim::gui {

std::string command_of(const PlanFile& file, const std::string& model) {
  std::string text = fmt::format("tpsim simulate {} --cluster {} --profile {} --stack {} --seq {}",
                                 model, shell_quoted(file.cluster), shell_quoted(file.profile),
                                 shell_quoted(file.stack), file.model.seq);
  // Also what is as usual: `model` may be a plan file that says otherwise.
  for (const SettingRow& row : setting_rows()) {
    if (row.counts_for != nullptr) continue;
    text += fmt::format(" {} {}", option_of(row.setting), text_of(file.plan, row.setting));
  }
  for (const auto& [part, value] : file.parts) {
    text += fmt::format(" {} {}", option_of(part), text_of(row_of(part), value));
  }
  return text;
}

}  // namespace tpsim::gui
