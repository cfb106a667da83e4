#include "gui/panels/shown_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tpsim::gui {
namespace {

constexpr std::array<TableColumn, 16> kColumns = {{
    {TableColumnId::kTp, "tp", true, 0, "tensor-parallel degree: GPUs that share every layer"},
    {TableColumnId::kPp, "pp", true, 0, "pipeline stages"},
    {TableColumnId::kVirtualStages, "v", true, 7,
     "virtual pipeline stages: model chunks on each pipeline stage"},
    {TableColumnId::kDp, "dp", true, 8, "data-parallel degree: copies of the model"},
    {TableColumnId::kCp, "cp", true, 10, "context-parallel degree: GPUs that share a sequence"},
    {TableColumnId::kEp, "ep", true, 9, "expert-parallel degree: GPUs that share the experts"},
    {TableColumnId::kZero, "zero", true, 4,
     "ZeRO stage: 1 shards optimizer states over data-parallel ranks, 2 also gradients, 3 also "
     "parameters"},
    {TableColumnId::kMicroBatch, "mb", true, 5, "sequences per micro-batch"},
    {TableColumnId::kRecompute, "recompute", false, 3,
     "recompute: the activations that backward computes again"},
    {TableColumnId::kExtras, "extras", false, 2,
     "vN: N chunks per stage; sp: sequence parallel; flash: fused attention; emb, no-emb, N..M: "
     "layers per stage; pp-in: pipeline ranks inside data-parallel ranks; offload: optimizer state "
     "on the CPU"},
    {TableColumnId::kStep, "step", true, 0, "predicted step time"},
    {TableColumnId::kLoss, "slower", true, 11, "how much slower the step is than the best"},
    {TableColumnId::kTflops, "TFLOP/s", true, 1, "hardware TFLOP/s per GPU, recompute counted"},
    {TableColumnId::kMemory, "GiB", true, 0, "peak memory of the fullest GPU"},
    {TableColumnId::kOom, "P(OOM)", true, 6, "probability that the fullest GPU runs out of memory"},
    {TableColumnId::kVariants, "variants", true, 0,
     "plans found with these degrees; click to show them"},
}};
constexpr int kMostDropped = 11;

std::string cell_text(const PlannedRun& run, TableColumnId column, const TimeScale& scale) {
  const Plan& plan = run.plan;
  switch (column) {
    case TableColumnId::kTp: return std::to_string(plan.degrees.tp);
    case TableColumnId::kPp: return std::to_string(plan.degrees.pp);
    case TableColumnId::kVirtualStages: return std::to_string(plan.virtual_stages);
    case TableColumnId::kDp: return std::to_string(plan.degrees.dp);
    case TableColumnId::kCp: return std::to_string(plan.degrees.cp);
    case TableColumnId::kEp: return std::to_string(plan.degrees.ep);
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
    case TableColumnId::kLoss:
    case TableColumnId::kVariants: break;
  }
  return "";
}

// Returns the minimum width of a column. A column of texts may be narrower than its texts, which
// are then shortened. A column of numbers must fit all numbers.
float needed_width(const Ui& ui, const ShownTable& table, const TableColumn& column) {
  constexpr float kLeastText = 62;
  const bool sorts = ui.state.table.sorted_by == column.id;
  float width = text_size(ui.fonts.small, title_of(column, table) + (sorts ? " ▲" : "")).x;
  if (!column.is_number) return std::max(width, ui.px(kLeastText));
  for (const TableRow& row : table.rows) {
    ImFont* font = row.plan == 0 ? ui.fonts.bold : ui.fonts.body;
    width = std::max(width, text_size(font, text_in(ui, table, row, column.id)).x);
  }
  return width;
}

// Returns the value of a column that is omitted if all plans have the value 1; else 0.
std::int64_t rare_value(const Plan& plan, TableColumnId column) {
  switch (column) {
    case TableColumnId::kVirtualStages: return plan.virtual_stages;
    case TableColumnId::kCp: return plan.degrees.cp;
    case TableColumnId::kEp: return plan.degrees.ep;
    default: return 0;
  }
}

// Widens columns of texts by up to `room`, so that fewer texts are shortened.
void widen_texts(const Ui& ui, float room, ShownTable& table) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c]->is_number) continue;
    float widest = table.widths[c];
    for (const TableRow& row : table.rows) {
      const std::string text = text_in(ui, table, row, table.columns[c]->id);
      widest = std::max(widest, std::ceil(text_size(ui.fonts.body, text).x) + 1);
    }
    const float more = std::clamp(room, 0.0F, widest - table.widths[c]);
    table.widths[c] += more;
    room -= more;
  }
}

// Selects the columns that fit into `width`.
void select_columns(const Ui& ui, float width, ShownTable& table) {
  const std::vector<PlannedRun>& plans = ui.views.found.plans;
  const auto is_used = [&](TableColumnId id) {
    return std::any_of(plans.begin(), plans.end(),
                       [&](const PlannedRun& run) { return rare_value(run.plan, id) != 1; });
  };
  for (const TableColumn& column : kColumns) {
    if (!is_used(column.id)) continue;
    table.columns.push_back(&column);
    table.widths.push_back(std::ceil(needed_width(ui, table, column)) + 1);
  }
  const float padding = 2 * ui.px(4);
  const auto room_left = [&] {
    float sum = 0;
    for (const float one : table.widths) sum += one + padding;
    return width - sum;
  };
  for (int order = 1; order <= kMostDropped && room_left() < 0; ++order) {
    const auto found = std::find_if(table.columns.begin(), table.columns.end(),
                                    [&](const TableColumn* c) { return c->dropped == order; });
    if (found == table.columns.end()) continue;
    table.hidden.emplace_back((*found)->title);
    table.widths.erase(table.widths.begin() + (found - table.columns.begin()));
    table.columns.erase(found);
  }
  widen_texts(ui, room_left(), table);
}

}  // namespace

std::string text_in(const Ui& ui, const ShownTable& table, const TableRow& row,
                    TableColumnId column) {
  const PlannedRun& run = ui.views.found.plans[row.plan];
  const Prediction& best = ui.views.found.plans.front().predicted;
  switch (column) {
    case TableColumnId::kStep: {
      const bool ties = row.plan != 0 && ties_with(run.predicted, best);
      return (ties ? "= " : "") + scaled_text(run.predicted.step, table.scale);
    }
    case TableColumnId::kLoss:
      return row.plan == 0 ? "best" : loss_text(run.predicted.step, best.step);
    case TableColumnId::kVariants:
      if (row.variants < 2) return row.variants == 1 ? "1" : "";
      return fmt::format("{} {}", ui.state.table.opened.contains(run.plan.degrees) ? "−" : "+",
                         count_text(static_cast<std::int64_t>(row.variants)));
    default: return cell_text(run, column, table.scale);
  }
}

std::string title_of(const TableColumn& column, const ShownTable& table) {
  return column.id == TableColumnId::kStep ? fmt::format("step {}", table.scale.unit)
                                           : column.title;
}

const ShownTable& TableCache::table(const Ui& ui, float width) {
  const Findings& found = ui.views.found;
  const bool is_current = revision_ == found.revision && state_ == ui.state.table &&
                          width_ == width && scale_ == ui.scale;
  if (is_current) return table_;
  revision_ = found.revision;
  state_ = ui.state.table;
  width_ = width;
  scale_ = ui.scale;
  table_ = ShownTable();
  table_.groups = layout_groups(found.plans, ui.state.table);
  table_.rows = table_rows(table_.groups, ui.state.table);
  table_.scale = time_scale(found.plans.front().predicted.step);
  select_columns(ui, width, table_);
  return table_;
}

}  // namespace tpsim::gui
