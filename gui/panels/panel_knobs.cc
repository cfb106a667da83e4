// The settings panel: settings of plan A as sliders and switches, layers per stage, software, and
// bandwidth factors of the cluster. The plan is predicted again in the next frame after a change.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/numbers.h"
#include "gui/panels/panels.h"
#include "gui/views/knobs.h"

namespace tpsim::gui {
namespace {

constexpr std::array kBandwidthFactors = {0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0};

void heading(Ui& ui, const char* text) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  put_text(ui, ui.fonts.bold, {at.x, at.y + ui.px(5)}, ui.colors.text, text);
  ImGui::SetCursorScreenPos({at.x, at.y + ui.px(27)});
}

void choose(Ui& ui, const Plan& plan) { ui.state.plan = plan; }

// Returns the setting's value before the last change of another setting adjusted it; empty if it
// was not adjusted.
std::string before_last_change(const Ui& ui, Setting setting) {
  for (const MovedSetting& moved : ui.state.moved) {
    if (moved.setting == setting) return moved.before;
  }
  return "";
}

// Whether the setting is drawn as segments: enum values, or few numbers. Other settings are
// sliders.
bool is_segmented(const SettingRow& row) {
  constexpr std::int64_t kMostSegments = 4;
  return !row.words.empty() || row.most - row.least < kMostSegments;
}

// Returns the help of a slider, which shows only possible values, with the reasons of the others.
std::string slider_help(const SettingRow& row, const std::vector<KnobValue>& values) {
  std::string help(row.meaning);
  for (const KnobValue& value : values) {
    if (!value.refusal.empty()) help += fmt::format("\nNot {}: {}", value.text, value.refusal);
  }
  return help;
}

void draw_knob(Ui& ui, const Plan& plan, const SettingRow& row, std::vector<KnobValue> values) {
  const char* label = row.title.data();  // null-terminated literal
  const std::string before = before_last_change(ui, row.setting);
  const std::string help = is_segmented(row) ? std::string(row.meaning) : slider_help(row, values);
  if (!is_segmented(row)) {
    std::erase_if(values, [](const KnobValue& value) { return !value.refusal.empty(); });
  }
  if (values.size() < 2) return;
  const auto found = std::find_if(values.begin(), values.end(), [&](const KnobValue& value) {
    return value.value == row.get(plan);
  });
  int chosen = found == values.end() ? 0 : static_cast<int>(found - values.begin());
  bool changed = false;
  if (is_segmented(row)) {
    changed = segment_row(ui, {label, help.c_str(), values, before}, chosen);
  } else {
    std::vector<std::string> texts;
    for (const KnobValue& value : values) texts.push_back(value.text);
    changed = slider_row(ui, {label, help.c_str(), texts, before}, chosen);
  }
  if (!changed) return;
  ui.state.turned = row.setting;
  choose(ui,
         plan_with(plan, row, values[static_cast<std::size_t>(chosen)].value, *ui.views.scenario));
}

// Draws the model's layers by chunk as a strip. Dragging a boundary moves layers to the adjacent
// chunk.
void draw_cut(Ui& ui, const Plan& plan) {
  const std::vector<std::int64_t>& layers = plan.stage_layers;
  if (layers.size() < 2) return;
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  put_text(ui, ui.fonts.body, at, ui.colors.dim,
           plan.virtual_stages > 1 ? "layers by chunk" : "layers by stage");
  put_text(ui, ui.fonts.small, {at.x + width, at.y + ui.px(1)}, ui.colors.dim,
           fitted(ui.fonts.small, layers_text(layers), width * 0.52F), Align::kRight);
  const float top = at.y + ui.px(21), bottom = top + ui.px(24);
  std::int64_t total = 0;
  for (const std::int64_t blocks : layers) total += blocks;
  const float each = width / static_cast<float>(std::max<std::int64_t>(1, total));
  float x = at.x;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const float right = x + each * static_cast<float>(layers[i]);
    fill(ui, {{x, top}, {std::max(x + 1, right - 1.5F), bottom}},
         mix(ui.colors.panel, ui.colors.accent, i % 2 == 0 ? 0.55 : 0.38), ui.px(2));
    const std::string text = std::to_string(layers[i]);
    if (text_size(ui.fonts.small, text).x < right - x - 3) {
      put_text(ui, ui.fonts.small, {(x + right) / 2, top + ui.px(5)}, ui.colors.text, text,
               Align::kCenter);
    }
    x = right;
    if (i + 1 == layers.size()) break;
    const float grip = std::min(ui.px(6), each * 0.8F);
    ImGui::SetCursorScreenPos({x - grip, top});
    ImGui::PushID(static_cast<int>(i));
    ImGui::InvisibleButton("boundary", {2 * grip, bottom - top});
    note_item(ui, fmt::format("boundary {}", i));
    if (ImGui::IsItemHovered() || ImGui::IsItemActive()) {
      ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
      line(ui, {x - 1, top - ui.px(2)}, {x - 1, bottom + ui.px(2)}, ui.colors.text, ui.px(2));
    }
    hover_help(ui,
               "Drag to move layers between two adjacent chunks. The first stage also has the word "
               "embeddings and the last stage the head, so these stages may need fewer layers.");
    if (ImGui::IsItemActive()) {
      const auto moved = std::lround((ImGui::GetMousePos().x - x) / each);
      if (moved != 0) {
        choose(ui, with_boundary_moved(plan, i, moved));
        ui.state.turned = Setting::kStageLayers;
      }
    }
    ImGui::PopID();
  }
  ImGui::SetCursorScreenPos({at.x, bottom + ui.px(6)});
}

void bandwidth_row(Ui& ui, const char* label, const char* help, BytesPerSecond now,
                   double& factor) {
  const double whole = now.value() / factor;
  std::vector<std::string> texts;
  for (const double option : kBandwidthFactors) {
    texts.push_back(option == 1.0 ? fmt::format("{:.4g} GB/s", whole / kGB)
                                  : fmt::format("{:.4g} GB/s ×{:g}", whole * option / kGB, option));
  }
  const auto nearest = std::min_element(
      kBandwidthFactors.begin(), kBandwidthFactors.end(),
      [&](double a, double b) { return std::abs(a - factor) < std::abs(b - factor); });
  int stop = static_cast<int>(nearest - kBandwidthFactors.begin());
  if (slider_row(ui, {label, help, texts}, stop)) {
    factor = kBandwidthFactors[static_cast<std::size_t>(stop)];
  }
}

void draw_bandwidths(Ui& ui) {
  const ClusterSpec& cluster = ui.views.scenario->cluster;
  Choice& choice = ui.state.choice;
  bandwidth_row(ui, "inside a node",
                "Bandwidth of one GPU inside its node, in one direction. Move the slider to "
                "predict the plan with another bandwidth.",
                cluster.intra_node.bandwidth, choice.intra_node);
  bandwidth_row(ui, "between nodes",
                "Bandwidth out of a node over all its NICs, in one direction. Move the slider to "
                "predict the plan with another bandwidth.",
                static_cast<double>(cluster.nics_per_node) * cluster.inter_node.bandwidth,
                choice.inter_node);
}

// Draws the buttons that reset or undo changes.
void draw_history(Ui& ui) {
  AppState& state = ui.state;
  ImGui::BeginDisabled(!state.plan);
  if (button(ui, "Reset to best", "Drop the changes and show the best plan of the search.")) {
    state.plan.reset();
    state.turned.reset();
  }
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(!state.history.can_undo());
  if (button(ui, "Undo", "Undo the last change of the plan (Ctrl+Z).")) undo(state);
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(!state.history.can_redo());
  if (button(ui, "Redo", "Redo the change (Ctrl+Y).")) redo(state);
  ImGui::EndDisabled();
}

void draw_sources(Ui& ui, Rect body) {
  const Scenario& scenario = *ui.views.scenario;
  const float letter = ui.fonts.small->FontSize + ui.px(3);
  ImVec2 at{body.min.x,
            std::max(ImGui::GetCursorScreenPos().y + ui.px(4), body.max.y - 3 * letter)};
  if (at.y + 3 * letter > body.max.y + ui.px(4)) return;
  const auto say = [&](const std::string& text) {
    put_text(ui, ui.fonts.small, at, ui.colors.dim, fitted(ui.fonts.small, text, body.width()));
    at.y += letter;
  };
  say(fmt::format("profile {} ({})", scenario.profile.name, name_of(scenario.profile.provenance)));
  say(fmt::format("software {}{}", scenario.stack.name,
                  ui.views.unstated.software ? " (assumed)" : ""));
  if (!ui.views.a || ui.views.a->error) return;
  const Sources& s = ui.views.a->predicted.sources;
  say(fmt::format("measured {:.0f} %, interpolated {:.0f} %, analytical {:.0f} %",
                  100 * s.exact_entries, 100 * s.interpolated_entries, 100 * s.model));
}

void draw_plan(Ui& ui, const Plan& plan) {
  for (const auto& [setting, values] : ui.views.knobs) {
    draw_knob(ui, plan, row_of(setting), values);
  }
  draw_cut(ui, plan);
}

}  // namespace

void undo(AppState& state) {
  if (!state.history.can_undo()) return;
  select(state.history.undo(), state);
  state.turned.reset();
}

void redo(AppState& state) {
  if (!state.history.can_redo()) return;
  select(state.history.redo(), state);
  state.turned.reset();
}

void draw_knobs(Ui& ui, Rect rect) {
  const std::vector<PlannedRun>& plans = ui.views.found.plans;
  const bool is_best = ui.views.a && !plans.empty() && ui.views.a->plan == plans.front().plan;
  const bool fits = ui.views.a && !ui.views.a->error && fits_in_memory(ui.views.a->predicted);
  const bool is_opened = ui.views.a && ui.state.choice.around == ui.views.a->plan;
  const std::string note = ui.views.a && ui.views.a->error ? "cannot run"
                           : !fits                         ? "does not fit"
                           : is_best                       ? "best plan"
                           : is_opened                     ? "opened plan"
                                                           : "edited";
  card(ui, "Plan", rect, ui.views.a ? note : "", [&](Rect body) {
    if (!ui.views.scenario) {
      return empty_state(ui, body, "No plan yet", "Choose a model, a cluster and GPUs above.");
    }
    ImGui::SetCursorScreenPos(body.min);
    const float row = ImGui::GetFrameHeight();
    const Rect shown{body.min, {body.max.x, body.max.y - row - ui.px(6)}};
    ImGui::BeginChild("knobs", {shown.width(), shown.height()}, false,
                      ImGuiWindowFlags_NoBackground);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ui.px(8), ui.px(4)));
    if (ui.views.a) draw_plan(ui, ui.views.a->plan);
    heading(ui, "Software");
    draw_software(ui);
    heading(ui, "Network bandwidth");
    draw_bandwidths(ui);
    draw_sources(ui, shown);
    ImGui::PopStyleVar();
    ImGui::EndChild();
    ImGui::SetCursorScreenPos({body.min.x, body.max.y - row});
    draw_history(ui);
  });
}

}  // namespace tpsim::gui
