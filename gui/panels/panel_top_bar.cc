// The top bar: inputs of planning, and buttons for actions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/numbers.h"
#include "gui/panels/panels.h"

namespace tpsim::gui {
namespace {

constexpr std::int64_t kMostGpus = 1 << 20;
constexpr float kModelWidth = 154, kClusterWidth = 150, kNumberWidth = 66;  // points

// Resets the selected plans and the view, after a change of the inputs.
void ask_anew(Ui& ui) {
  ui.state.plan.reset();
  ui.state.pinned.reset();
  ui.state.timeline.begin = ui.state.timeline.end = 0;
  ui.state.timeline.ruler_begin = ui.state.timeline.ruler_end = 0;
  ui.state.history.clear();
  ui.state.turned.reset();
}

void label(Ui& ui, const char* text) {
  ImGui::AlignTextToFramePadding();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float y = at.y + (ImGui::GetFrameHeight() - ui.fonts.small->FontSize) / 2;
  const float width = put_text(ui, ui.fonts.small, {at.x, y}, ui.colors.dim, text);
  ImGui::SetCursorScreenPos({at.x + width + ui.px(6), at.y});
}

// An entry of a combo box. Families are shown as headings.
struct Option {
  std::string name, family, note;
};

std::vector<Option> options_of(const std::vector<std::string>& names) {
  std::vector<Option> options;
  for (const std::string& name : names) options.push_back({name, "", ""});
  return options;
}

std::vector<Option> options_of(const std::vector<ModelEntry>& models) {
  std::vector<Option> options;
  for (const ModelEntry& model : models) {
    options.push_back({model.name, model.family, size_text(model)});
  }
  return options;
}

// Draws an option with its note `notes` pixels from the left. Returns whether it was selected in
// this frame.
bool draw_option(Ui& ui, const Option& option, bool is_shown, float notes) {
  const bool is_chosen = ImGui::Selectable(option.name.c_str(), is_shown);
  note_item(ui, option.name);
  if (is_shown && ImGui::IsWindowAppearing()) ImGui::SetScrollHereY();
  if (!option.note.empty()) {
    ImGui::SameLine(notes);
    ImGui::TextDisabled("%s", option.note.c_str());
  }
  return is_chosen;
}

// Draws a combo box. Returns whether another name was selected.
bool combo(Ui& ui, const char* name, float width, const std::vector<Option>& options,
           const std::string& shown, std::string& chosen) {
  bool changed = false;
  ImGui::SetNextItemWidth(width);
  ImGui::PushID(name);
  const std::string preview = fitted(ImGui::GetFont(), shown, width - ui.px(26));
  const bool is_open = ImGui::BeginCombo(
      "##combo", preview.c_str(), ImGuiComboFlags_HeightLarge | ImGuiComboFlags_NoArrowButton);
  if (!is_open) {
    note_item(ui, name);
    if (preview != shown) hover_help(ui, shown.c_str());
    const Rect box{ImGui::GetItemRectMin(), ImGui::GetItemRectMax()};
    put_text(ui, ui.fonts.small, {box.max.x - ui.px(6), box.min.y + ui.px(5)}, ui.colors.dim, "▼",
             Align::kRight);
  }
  if (is_open) {
    float widest = 0;
    for (const Option& option : options) {
      widest = std::max(widest, text_size(ImGui::GetFont(), option.name).x);
    }
    std::string family;
    for (const Option& option : options) {
      if (std::exchange(family, option.family) != option.family) {
        ImGui::Separator();
        ImGui::TextDisabled("%s", option.family.c_str());
      }
      if (!draw_option(ui, option, option.name == shown, widest + ui.px(24))) continue;
      chosen = option.name;
      changed = true;
    }
    ImGui::EndCombo();
  }
  ImGui::PopID();
  ImGui::SameLine();
  return changed;
}

// Draws a number field, which takes effect on Enter or when it loses focus.
bool number(Ui& ui, const char* name, const char* help, std::int64_t& value) {
  std::int64_t typed = value;
  ImGui::SetNextItemWidth(ui.px(kNumberWidth));
  ImGui::PushID(name);
  ImGui::InputScalar("##number", ImGuiDataType_S64, &typed);
  const bool is_done = ImGui::IsItemDeactivatedAfterEdit();
  ImGui::PopID();
  note_item(ui, name);
  hover_help(ui, help);
  ImGui::SameLine();
  if (!is_done || typed == value || typed < 1 || typed > kMostGpus) return false;
  value = typed;
  return true;
}

void draw_choices(Ui& ui) {
  Choice& choice = ui.state.choice;
  label(ui, "model");
  const std::string shown = choice.opened_model ? choice.opened_model->name : choice.model;
  std::string chosen;
  if (combo(ui, "model", ui.px(kModelWidth), options_of(ui.views.models), shown, chosen)) {
    choose_model(chosen, choice);
    ask_anew(ui);
  }
  label(ui, "cluster");
  if (combo(ui, "cluster", ui.px(kClusterWidth), options_of(ui.views.clusters), choice.cluster,
            chosen)) {
    choose_cluster(chosen, choice);
    ask_anew(ui);
  }
  label(ui, "GPUs");
  const std::string gpus_help =
      ui.views.scenario ? fmt::format("Number of GPUs to use. {} has {} in nodes of {}.",
                                      ui.views.scenario->cluster.name,
                                      count_text(gpus_of(ui.views.scenario->cluster)),
                                      ui.views.scenario->cluster.gpus_per_node)
                        : "Number of GPUs to use.";
  if (number(ui, "GPUs", gpus_help.c_str(), choice.gpus)) ask_anew(ui);
  label(ui, "batch");
  std::int64_t batch = ui.views.global_batch;
  if (number(ui, "global batch", "Sequences in a training step, over all GPUs.", batch)) {
    choice.global_batch = batch;
    ask_anew(ui);
  }
}

void draw_seq(Ui& ui) {
  label(ui, "seq");
  std::int64_t seq = ui.views.scenario ? ui.views.scenario->model.seq : ui.state.choice.seq;
  if (number(ui, "sequence length", "Tokens per sequence. Selecting another model resets it.",
             seq)) {
    ui.state.choice.seq = seq;
    ask_anew(ui);
  }
}

struct Action {
  const char* label;
  const char* help;
};

constexpr std::array<Action, 6> kActions = {{
    {"Pin as B",
     "Keep the selected plan as plan B, to compare others with it. Press again to drop it."},
    {"Copy command", "Copy the tpsim command that predicts this plan."},
    {"Export", "Write launch files for a training stack."},
    {"Save", "Save the view or the plan, or open one."},
    {"Theme", "Switch between light and dark colors."},
    {"Help", "Show the keys and mouse actions (F1)."},
}};

float actions_width(const Ui& ui) {
  float width = 0;
  for (const Action& action : kActions) {
    width += text_size(ui.fonts.body, action.label).x + ui.px(16 + 5);
  }
  return width;
}

// Returns the width of the program's name and all input fields.
float choices_width(const Ui& ui) {
  float width = text_size(ui.fonts.bold, "tpsim").x + ui.px(20);
  for (const char* text : {"model", "cluster", "GPUs", "batch", "seq"}) {
    width += text_size(ui.fonts.small, text).x + ui.px(6 + 8);
  }
  return width + ui.px(kModelWidth + kClusterWidth + 3 * kNumberWidth);
}

void draw_actions(Ui& ui, Rect rect) {
  const bool has_plan = ui.views.a && !ui.views.a->error;
  const auto ask = [&](Request request) { ui.requests.push_back(request); };
  float x = rect.max.x;
  for (std::size_t i = kActions.size(); i-- > 0;) {
    x -= text_size(ui.fonts.body, kActions[i].label).x + ui.px(16) +
         (i + 1 < kActions.size() ? ui.px(5) : 0);
    ImGui::SetCursorScreenPos({x, rect.min.y});
    const bool needs_plan = i < 3;
    ImGui::BeginDisabled(needs_plan && !has_plan);
    const bool is_on = i == 0 && ui.state.pinned.has_value();
    if (button(ui, kActions[i].label, kActions[i].help, is_on)) {
      switch (i) {
        case 0:
          if (ui.state.pinned) {
            ui.state.pinned.reset();
            ui.state.detail = DetailTab::kBreakdown;
          } else {
            ui.state.pinned = ui.views.a->plan;
            ui.state.detail = DetailTab::kDifferences;
          }
          break;
        case 1: ask(Request::kCopyCommand); break;
        case 2: open_export(ui); break;
        case 3: ImGui::OpenPopup("files"); break;
        case 4:
          ui.state.theme = ui.state.theme == Theme::kLight ? Theme::kDark : Theme::kLight;
          break;
        default: ui.state.shows_help = !ui.state.shows_help;
      }
    }
    ImGui::EndDisabled();
  }
}

}  // namespace

float top_bar_height(const Ui& ui, float width) {
  const float row = ImGui::GetFrameHeight();
  const bool fits = choices_width(ui) + actions_width(ui) <= width;
  return fits ? row : 2 * row + ui.px(4);
}

void draw_top_bar(Ui& ui, Rect rect) {
  ImGui::SetCursorScreenPos(rect.min);
  const float y = rect.min.y + (ImGui::GetFrameHeight() - ui.fonts.bold->FontSize) / 2;
  const float width =
      put_text(ui, ui.fonts.bold, {rect.min.x + ui.px(4), y}, ui.colors.accent, "tpsim");
  ImGui::SetCursorScreenPos({rect.min.x + width + ui.px(20), rect.min.y});
  draw_choices(ui);
  draw_seq(ui);
  const float top = rect.max.y - ImGui::GetFrameHeight();  // top of the last row
  draw_actions(ui, {{rect.min.x, top}, rect.max});
  draw_popups(ui);
}

}  // namespace tpsim::gui
