#include "gui/views/plan_command.h"

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/plan_settings.h"

namespace tpsim::gui {
namespace {

// Returns the argument of `tpsim simulate` that selects the model: --model NAME if the catalogue
// has the model, else the opened plan file.
Result<std::string> model_words(const ViewComputer& computer, const PlanFile& file,
                                const AppState& state) {
  if (!state.choice.opened_model) return "--model " + shell_quoted(state.choice.model);
  if (computer.is_in_catalogue(file.model)) return "--model " + shell_quoted(file.model.name);
  if (!state.opened_file.empty()) return shell_quoted(state.opened_file);
  return bad_input("the model is neither in the catalogue nor in an opened plan file",
                   file.model.name, "save the plan, then predict it with tpsim simulate plan.json");
}

}  // namespace

Error no_plan() { return bad_input("no plan is selected", "", "select a plan first"); }

std::string command_of(const PlanFile& file, const std::string& model, bool states_stack) {
  std::string text = fmt::format("tpsim simulate {} --cluster {} --profile {}", model,
                                 shell_quoted(file.cluster), shell_quoted(file.profile));
  if (states_stack) text += " --stack " + shell_quoted(file.stack);
  if (file.node_gbps > 0) text += fmt::format(" --node-gbps {}", file.node_gbps);
  text +=
      fmt::format(" --seq {} --attention-dropout {}", file.model.seq, file.model.attention_dropout);
  // Default values are stated too, because the plan file that `model` may name can contain other
  // values.
  for (const SettingRow& row : setting_rows()) {
    if (row.counts_for != nullptr) continue;
    text += fmt::format(" {} {}", option_of(row.setting), text_of(file.plan, row.setting));
  }
  for (const auto& [part, value] : file.parts) {
    if (part == StackPart::kExpertLoad && value == kCountedLoad)
      continue;  // the model itself states the counts
    text += fmt::format(" {} {}", option_of(part), text_of(row_of(part), value));
  }
  return text;
}

Result<std::string> shown_command(const ViewComputer& computer, const AppState& state) {
  const auto file = computer.plan_file();
  if (!file) return no_plan();
  TPSIM_TRY(const std::string model, model_words(computer, *file, state));
  return command_of(*file, model, !file->stack_assumed);
}

}  // namespace tpsim::gui
