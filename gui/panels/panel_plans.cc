// The plan table: all plans found, sortable and filterable, with ties of the best plan marked.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/numbers.h"
#include "gui/panels/panels.h"
#include "gui/views/plan_table.h"

namespace tpsim::gui {
namespace {

struct TableColumn {
  const char* title;
  float width;  // relative
  bool is_number;
  const char* help;
};

constexpr std::array<TableColumn, 11> kColumns = {{
    {"tp", 26, true, "tensor-parallel degree: GPUs that share every layer"},
    {"pp", 28, true, "pipeline stages"},
    {"dp", 30, true, "data-parallel degree: copies of the model"},
    {"zero", 36, true, "ZeRO stage: what the copies share out"},
    {"mb", 28, true, "sequences per micro-batch"},
    {"recompute", 66, false, "activations computed again in backward"},
    {"extras", 126, false,
     "cpN, epN: N ranks share sequences, experts; vN: N chunks per stage; sp: sequence parallel; "
     "flash: fused attention; emb, no-emb, N..M: how stages are cut; pp-in: pipeline ranks inside "
     "data ranks; offload: the optimizer in the host"},
    {"step s", 58, true, "predicted step time in seconds"},
    {"TFLOP/s", 54, true, "hardware TFLOP/s per GPU, recompute counted"},
    {"GiB", 40, true, "peak memory of the fullest GPU"},
    {"p(OOM)", 54, true, "probability that the fullest GPU runs out of memory"},
}};

void right_aligned(const Ui& ui, ImFont* font, Rgba color, const std::string& text) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float right = at.x + ImGui::GetContentRegionAvail().x;
  put_text(ui, font, {right, at.y}, color, text, Align::kRight);
  ImGui::Dummy({1, font->FontSize});
}

std::string cell_text(const PlannedRun& run, std::size_t column, const TimeScale& scale) {
  const Plan& plan = run.plan;
  switch (static_cast<TableColumnId>(column)) {
    case TableColumnId::kTp: return std::to_string(plan.degrees.tp);
    case TableColumnId::kPp: return std::to_string(plan.degrees.pp);
    case TableColumnId::kDp: return std::to_string(plan.degrees.dp);
    case TableColumnId::kZero: return std::to_string(plan.zero);
    case TableColumnId::kMicroBatch: return std::to_string(plan.micro_batch);
    case TableColumnId::kRecompute: return text_of(plan, Setting::kRecompute);
    case TableColumnId::kExtras: return extras_text(plan);
    case TableColumnId::kStep: return scaled_text(run.predicted.step, scale);
    case TableColumnId::kTflops:
      return fmt::format("{:.1f}", run.predicted.hardware_tflops_per_gpu);
    case TableColumnId::kMemory:
      return gib_text(run.predicted.peak, gib_decimals(run.predicted.peak));
    case TableColumnId::kOom: return chance_text(run.predicted.p_oom);
  }
  return "";
}

Rgba chance_color(const Ui& ui, double p_oom) {
  return p_oom >= 0.2 ? ui.colors.bad : p_oom >= 0.05 ? ui.colors.warn : ui.colors.dim;
}

void draw_row(Ui& ui, std::size_t index, const TimeScale& scale) {
  const PlannedRun& run = ui.views.found.plans[index];
  const PlannedRun& best = ui.views.found.plans.front();
  const bool is_best = index == 0;
  const bool is_chosen = ui.views.a && ui.views.a->plan == run.plan;
  const bool is_other = ui.views.b && ui.views.b->plan == run.plan;
  ImGui::TableNextRow();
  ImGui::TableSetColumnIndex(0);
  ImGui::PushID(static_cast<int>(index));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (ImGui::Selectable("##row", is_chosen, ImGuiSelectableFlags_SpanAllColumns)) {
    ui.state.plan = run.plan;
  }
  note_item(ui, fmt::format("plan {}", index + 1));
  const Rect row{ImGui::GetItemRectMin(), ImGui::GetItemRectMax()};
  if (is_chosen || is_other) {
    fill(ui, {row.min, {row.min.x + ui.px(3), row.max.y}},
         is_chosen ? ui.colors.accent : ui.colors.other);
  }
  ImGui::PopID();
  ImGui::SetCursorScreenPos(at);
  for (std::size_t c = 0; c < kColumns.size(); ++c) {
    ImGui::TableSetColumnIndex(static_cast<int>(c));
    const auto id = static_cast<TableColumnId>(c);
    ImFont* font = is_best && id == TableColumnId::kStep ? ui.fonts.bold : ui.fonts.body;
    const Rgba color =
        id == TableColumnId::kOom ? chance_color(ui, run.predicted.p_oom) : ui.colors.text;
    std::string text = cell_text(run, c, scale);
    if (id == TableColumnId::kStep && !is_best && ties_with(run.predicted, best.predicted)) {
      text.insert(0, "= ");
    }
    if (kColumns[c].is_number) {
      right_aligned(ui, font, color, text);
    } else {
      const float width = ImGui::GetContentRegionAvail().x;
      put_text(ui, font, ImGui::GetCursorScreenPos(), color, fitted(font, text, width));
    }
  }
}

void draw_headers(Ui& ui) {
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (std::size_t c = 0; c < kColumns.size(); ++c) {
    ImGui::TableSetColumnIndex(static_cast<int>(c));
    const TableColumn& column = kColumns[c];
    ImGui::PushID(static_cast<int>(c));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    if (ImGui::Selectable("##head", false, 0, {width, ui.fonts.small->FontSize + ui.px(3)})) {
      const auto id = static_cast<TableColumnId>(c);
      TableState& table = ui.state.table;
      table.ascending = table.sorted_by == id ? !table.ascending : true;
      table.sorted_by = id;
    }
    note_item(ui, std::string("sort by ") + column.title);
    hover_help(ui, column.help);
    const bool sorts = ui.state.table.sorted_by == static_cast<TableColumnId>(c);
    const std::string mark = !sorts ? "" : ui.state.table.ascending ? " ▲" : " ▼";
    const std::string text = column.title + mark;
    const Rgba color = sorts ? ui.colors.text : ui.colors.dim;
    const float x = column.is_number ? at.x + width : at.x;
    put_text(ui, ui.fonts.small, {x, at.y + ui.px(1)}, color, text,
             column.is_number ? Align::kRight : Align::kLeft);
    ImGui::PopID();
  }
}

void draw_filter(Ui& ui, Rect rect) {
  const float width = ui.px(190);
  ImGui::SetCursorScreenPos({rect.max.x - width, rect.min.y - ui.px(27)});
  ImGui::SetNextItemWidth(width);
  std::array<char, 128> text{};
  ui.state.table.filter.copy(text.data(), text.size() - 1);
  ImGui::PushFont(ui.fonts.small);
  if (ImGui::InputTextWithHint("##filter", "filter: tp=4 mb<=2 flash", text.data(), text.size())) {
    ui.state.table.filter = text.data();
  }
  ImGui::PopFont();
  note_item(ui, "filter plans");
  const std::string unknown = unknown_filter_word(ui.state.table.filter);
  const std::string help =
      unknown.empty()
          ? "Words that all must hold: tp=4, pp>8, mb<=2, step<100, gib<70, zero=1, or "
            "none, selective, full, flash, unfused, sp, no-sp, gpipe, 1f1b, interleaved."
          : "'" + unknown +
                "' means nothing here; it filters nothing. Try tp=4, mb<=2, "
                "step<100, gib<70, flash, full, sp.";
  hover_help(ui, help.c_str());
}

void draw_table(Ui& ui, Rect rect, const std::vector<std::size_t>& shown) {
  const TimeScale scale = time_scale(ui.views.found.plans.front().predicted.step);
  ImGui::SetCursorScreenPos({rect.min.x - ui.px(6), rect.min.y});
  // Shows whole rows only and distributes the remaining height over them.
  const float head = ui.fonts.small->FontSize + ui.px(3), letter = ui.fonts.body->FontSize;
  const float least = ui.px(2.5F);
  const float rows = std::max(1.0F, std::floor((rect.height() - head - least) / (letter + least)));
  const float padding =
      std::floor(std::max(least, (rect.height() - head - rows * letter) / (rows + 1))) / 2;
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(ui.px(4), padding));
  // The highlight of the selected row covers its row only.
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ui.px(8), 2 * padding));
  const float height = head + 2 * padding + rows * (letter + 2 * padding);
  const ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingStretchProp |
                                ImGuiTableFlags_NoBordersInBody | ImGuiTableFlags_PadOuterX;
  if (ImGui::BeginTable("plans", static_cast<int>(kColumns.size()), flags,
                        {rect.width() + ui.px(12), height})) {
    ImGui::TableSetupScrollFreeze(0, 1);
    for (const TableColumn& column : kColumns) {
      ImGui::TableSetupColumn(column.title, ImGuiTableColumnFlags_WidthStretch, column.width);
    }
    draw_headers(ui);
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(shown.size()));
    while (clipper.Step()) {
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        draw_row(ui, shown[static_cast<std::size_t>(i)], scale);
      }
    }
    ImGui::EndTable();
  }
  ImGui::PopStyleVar(2);
}

// Explains an empty table.
void draw_nothing(Ui& ui, Rect rect) {
  const Findings& found = ui.views.found;
  if (!found.has_best || ui.views.is_stale) {
    return empty_state(ui, rect, "Searching…", "The plans appear as soon as they are known.");
  }
  if (found.error) {
    return empty_state(ui, rect, "There is nothing to search: " + found.error->message,
                       found.error->hint);
  }
  if (found.nearest_miss) {
    const Prediction& miss = found.nearest_miss->predicted;
    return empty_state(
        ui, rect,
        fmt::format("Nothing fits: the plan that misses by least needs {} of {} GiB",
                    gib_text(miss.peak), gib_text(miss.capacity)),
        "It is shown in the other panels. More GPUs, a smaller global batch, or a cluster whose "
        "GPUs have more memory would help.");
  }
  std::string reason;
  std::int64_t most = 0;
  for (const auto& [why, count] : found.pruned) {
    if (count > most) most = count, reason = why;
  }
  empty_state(ui, rect, "No layout fills these GPUs with this model",
              fmt::format("Most often: {}. Try another number of GPUs or another global batch.",
                          reason.empty() ? "there is none" : reason));
}

}  // namespace

void draw_plans(Ui& ui, Rect rect) {
  card(ui, "Plans", rect, "", [&](Rect body) {
    const Findings& found = ui.views.found;
    if (found.plans.empty()) return draw_nothing(ui, body);
    const std::vector<std::size_t> shown = shown_plans(found.plans, ui.state.table);
    const std::string count =
        fmt::format("{} of {} considered{}", count_text(static_cast<std::int64_t>(shown.size())),
                    count_text(found.considered), ui.views.is_searching ? " …" : "");
    const std::string unknown = unknown_filter_word(ui.state.table.filter);
    put_text(ui, ui.fonts.small, {body.min.x + ui.px(52), body.min.y - ui.px(22.5F)},
             unknown.empty() ? ui.colors.dim : ui.colors.warn,
             unknown.empty() ? count : fmt::format("'{}' filters nothing", unknown));
    draw_filter(ui, body);
    if (shown.empty()) {
      return empty_state(ui, body, "No plan passes the filter", "Shorten it or clear it.");
    }
    draw_table(ui, body, shown);
    if (ui.views.is_stale) fill(ui, body, with_alpha(ui.colors.panel, 0.55));
  });
}

}  // namespace tpsim::gui
