#include "gui/views/plan_command.h"

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/plan_settings.h"

namespace tpsim::gui {
namespace {

// Whether `tpsim simulate --model NAME` without --cluster assumes the cluster of the file.
bool is_usual_cluster(const ViewComputer& computer, const PlanFile& file) {
  return file.model.usual.cluster == file.cluster && computer.cluster()->profile == file.profile;
}

// Returns the argument of `tpsim simulate` that selects the model: --model NAME if the catalogue
// has the model, else the opened plan file. An opened file is also named if only the file states
// that its cluster is an assumption.
Result<std::string> model_words(const ViewComputer& computer, const PlanFile& file,
                                const AppState& state) {
  if (!state.choice.opened_model) return "--model " + shell_quoted(state.choice.model);
  const bool needs_file = file.network_assumed && !is_usual_cluster(computer, file);
  if (computer.is_in_catalogue(file.model) && (!needs_file || state.opened_file.empty())) {
    return "--model " + shell_quoted(file.model.name);
  }
  if (!state.opened_file.empty()) return shell_quoted(state.opened_file);
  return bad_input("the model is neither in the catalogue nor in an opened plan file",
                   file.model.name, "save the plan, then predict it with tpsim simulate plan.json");
}

}  // namespace

Error no_plan() { return bad_input("no plan is selected", "", "select a plan first"); }

std::string command_of(const PlanFile& file, const std::string& model) {
  std::string text = "tpsim simulate " + model;
  if (!file.network_assumed) {
    text += fmt::format(" --cluster {} --profile {}", shell_quoted(file.cluster),
                        shell_quoted(file.profile));
  }
  if (!file.stack_assumed) text += " --stack " + shell_quoted(file.stack);
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
  auto file = computer.plan_file();
  if (!file) return no_plan();
  TPSIM_TRY(const std::string model, model_words(computer, *file, state));
  const bool names_file = model == shell_quoted(state.opened_file);
  file->network_assumed &= names_file || is_usual_cluster(computer, *file);
  std::string command = command_of(*file, model);
  if (state.choice.ignores_stack_limits) command += " --ignore-stack-limits";
  if (!computer.fits()) command += " --allow-oom";
  return command;
}

}  // namespace tpsim::gui
