// The software section of the settings panel: the stack, and its parts as lists of values.
#include <fmt/format.h>

#include "gui/panels/panels.h"
#include "gui/views/choice.h"

namespace tpsim::gui {
namespace {

// The last entry of the list of stacks: the assumed stack, usually the cluster's.
std::string unstated_text(const Ui& ui) {
  const bool is_assumed = ui.state.choice.stack.empty();
  return fmt::format("{} · not stated",
                     is_assumed ? ui.views.names.stack : ui.views.scenario->cluster.stack);
}

void draw_stack(Ui& ui) {
  const auto values = [&] {
    std::vector<KnobValue> all;
    for (const StackEntry& stack : ui.views.stacks) all.push_back({1, stack.name, stack.refusal});
    all.push_back({0, unstated_text(ui), ""});
    return all;
  };
  Choice& choice = ui.state.choice;
  const std::string shown = choice.stack.empty() ? unstated_text(ui) : ui.views.names.stack;
  KnobValue chosen;
  const bool changed =
      combo_row(ui,
                {"stack", "Training software with its kernels, overlap and limits.", shown,
                 !choice.stack.empty(), values},
                chosen);
  if (!changed) return;
  choose_stack(chosen.value == 0 ? "" : chosen.text, choice);
  ui.state.turned.reset();
}

// Returns the plan that decides which values are possible: plan A.
Plan plan_in_view(const Ui& ui) { return ui.views.a ? ui.views.a->plan : Plan(); }

void draw_part(Ui& ui, const PartRow& row) {
  const Scenario& scenario = *ui.views.scenario;
  PartValues& parts = ui.state.choice.parts;
  const auto values = [&] { return part_values(row, scenario, plan_in_view(ui)); };
  const std::string shown = text_of(row, row.get(scenario.stack));
  KnobValue chosen;
  // Titles and help are null-terminated literals.
  const bool changed = combo_row(
      ui, {row.title.data(), row.help.data(), shown, parts.contains(row.part), values}, chosen);
  if (!changed) return;
  parts[row.part] = chosen.value;
  ui.state.turned.reset();
}

}  // namespace

void draw_software(Ui& ui) {
  draw_stack(ui);
  AppState& state = ui.state;
  for (const PartRow& row : part_rows()) {
    if (state.shows_parts || state.choice.parts.contains(row.part)) draw_part(ui, row);
  }
  if (button(ui, state.shows_parts ? "Fewer parts" : "All parts",
             "Show or hide the parts of the software: kernels, overlap, dtypes and others.")) {
    state.shows_parts = !state.shows_parts;
  }
  if (state.choice.parts.empty()) return;
  ImGui::SameLine();
  if (button(ui, "Reset parts", "Use the stack's own parts.")) state.choice.parts.clear();
}

}  // namespace tpsim::gui
