#include "gui/views/plan_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>

#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/plan/plan_settings.h"
#include "sim/step/order.h"

namespace tpsim::gui {
namespace {

// Results of a plan that a filter can compare, in addition to numeric settings.
constexpr std::array<std::string_view, 5> kFigures = {"step", "gib", "oom", "tflops", "gb"};

const SettingRow* number_called(std::string_view name) {
  for (const SettingRow& row : setting_rows()) {
    if (row.kind == FieldKind::kNumber && row.tag == name) return &row;
  }
  return nullptr;
}

// Returns the setting value that a filter word names: by its tag ("no-sp", "offload"), else the
// first setting that has the word as a value.
std::optional<SettingValue> value_called(std::string_view name) {
  for (const auto text : {&FieldWord::tag, &FieldWord::word}) {
    for (const SettingRow& row : setting_rows()) {
      for (const FieldWord& word : row.words) {
        if (word.*text == name) return SettingValue{row.setting, word.value};
      }
    }
  }
  return std::nullopt;
}

// A parsed condition such as "mb<=2".
struct Comparison {
  std::string name;
  std::string op;
  double value = 0;
};

std::optional<Comparison> comparison_of(const std::string& word) {
  const std::size_t at = word.find_first_of("<>=");
  if (at == std::string::npos || at == 0) return std::nullopt;
  const bool is_long = at + 1 < word.size() && word[at + 1] == '=';
  Comparison result{word.substr(0, at), word.substr(at, is_long ? 2 : 1), 0};
  const std::string number = word.substr(at + result.op.size());
  char* end = nullptr;
  result.value = std::strtod(number.c_str(), &end);
  const bool is_number = !number.empty() && *end == '\0';
  const bool is_known = number_called(result.name) != nullptr ||
                        std::find(kFigures.begin(), kFigures.end(), result.name) != kFigures.end();
  return is_number && is_known ? std::optional(result) : std::nullopt;
}

double figure_of(const PlannedRun& run, std::string_view name) {
  if (const SettingRow* row = number_called(name)) return static_cast<double>(row->get(run.plan));
  if (name == "step") return run.predicted.step.value();
  if (name == "oom") return 100 * run.predicted.p_oom;
  if (name == "tflops") return run.predicted.hardware_tflops_per_gpu;
  return run.predicted.peak.value() / (name == "gb" ? kGB : kGiB);
}

bool holds(const PlannedRun& run, const Comparison& c) {
  const double figure = figure_of(run, c.name);
  if (c.op == "<") return figure < c.value;
  if (c.op == "<=") return figure <= c.value;
  if (c.op == ">") return figure > c.value;
  if (c.op == ">=") return figure >= c.value;
  return figure == c.value;
}

// Whether the plan satisfies the filter. Unknown words are ignored, since the user may still be
// typing.
bool passes(const PlannedRun& run, const std::vector<std::string>& words) {
  return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
    if (const auto comparison = comparison_of(word)) return holds(run, *comparison);
    const std::optional<SettingValue> value = value_called(word);
    return !value || setting_of(run.plan, value->setting) == *value;
  });
}

double key_of(const PlannedRun& run, TableColumnId column) {
  switch (column) {
    case TableColumnId::kTp: return figure_of(run, "tp");
    case TableColumnId::kPp: return figure_of(run, "pp");
    case TableColumnId::kVirtualStages: return static_cast<double>(run.plan.virtual_stages);
    case TableColumnId::kDp: return figure_of(run, "dp");
    case TableColumnId::kCp: return static_cast<double>(run.plan.degrees.cp);
    case TableColumnId::kEp: return static_cast<double>(run.plan.degrees.ep);
    case TableColumnId::kZero: return figure_of(run, "zero");
    case TableColumnId::kMicroBatch: return figure_of(run, "mb");
    case TableColumnId::kRecompute: return static_cast<double>(run.plan.recompute);
    case TableColumnId::kExtras: return static_cast<double>(extras_text(run.plan).size());
    case TableColumnId::kStep:
    case TableColumnId::kLoss:
    case TableColumnId::kVariants: return figure_of(run, "step");
    case TableColumnId::kTflops: return figure_of(run, "tflops");
    case TableColumnId::kMemory: return figure_of(run, "gib");
    case TableColumnId::kOom: return run.predicted.p_oom;
  }
  return 0;
}

}  // namespace

std::vector<std::size_t> shown_plans(const std::vector<PlannedRun>& plans,
                                     const TableState& table) {
  const std::vector<std::string> words = words_in(table.filter);
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (passes(plans[i], words)) shown.push_back(i);
  }
  std::stable_sort(shown.begin(), shown.end(), [&](std::size_t a, std::size_t b) {
    const double left = key_of(plans[a], table.sorted_by);
    const double right = key_of(plans[b], table.sorted_by);
    return table.ascending ? left < right : left > right;
  });
  return shown;
}

std::vector<LayoutGroup> layout_groups(const std::vector<PlannedRun>& plans,
                                       const TableState& table) {
  std::map<ParallelDegrees, std::size_t> places;
  std::vector<LayoutGroup> groups;
  for (const std::size_t i : shown_plans(plans, table)) {
    const auto [place, is_new] = places.emplace(plans[i].plan.degrees, groups.size());
    if (is_new) groups.push_back({place->first, i, {}});
    LayoutGroup& group = groups[place->second];
    group.best = std::min(group.best, i);
    group.variants.push_back(i);
  }
  const auto key = [&](const LayoutGroup& group) {
    return table.sorted_by == TableColumnId::kVariants ? static_cast<double>(group.variants.size())
                                                       : key_of(plans[group.best], table.sorted_by);
  };
  std::stable_sort(groups.begin(), groups.end(), [&](const LayoutGroup& a, const LayoutGroup& b) {
    return table.ascending ? key(a) < key(b) : key(a) > key(b);
  });
  return groups;
}

std::vector<TableRow> table_rows(const std::vector<LayoutGroup>& groups, const TableState& table) {
  std::vector<TableRow> rows;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const LayoutGroup& group = groups[g];
    rows.push_back({group.best, g, group.variants.size()});
    if (!table.opened.contains(group.key)) continue;
    for (const std::size_t i : group.variants) {
      if (i != group.best) rows.push_back({i, g, 0});
    }
  }
  return rows;
}

std::string loss_text(Seconds step, Seconds best) {
  const double loss = 100 * (step / best - 1);
  return fmt::format("+{:.{}f} %", std::max(0.0, loss), loss < 10 ? 1 : 0);
}

std::string unknown_filter_word(const std::string& filter) {
  for (const std::string& word : words_in(filter)) {
    if (!comparison_of(word) && !value_called(word)) return word;
  }
  return "";
}

bool ties_with(const Prediction& plan, const Prediction& best) {
  return is_tie(best.step, plan.step);
}

std::string degrees_text(const Plan& plan) {
  const ParallelDegrees& d = plan.degrees;
  std::string text = fmt::format("tp {} · pp {} · dp {}", d.tp, d.pp, d.dp);
  if (d.cp > 1) text += fmt::format(" · cp {}", d.cp);
  if (d.ep > 1) text += fmt::format(" · ep {}", d.ep);
  if (d.etp > 0) text += fmt::format(" · etp {}", d.etp);
  return text;
}

std::string recompute_text(const Plan& plan) {
  if (plan.recompute == Recompute::kNone) return "no recompute";
  if (plan.recompute != Recompute::kBlocks)
    return text_of(plan, Setting::kRecompute) + " recompute";
  return fmt::format("recompute of {}{}", counted_text(plan.recompute_blocks, "block"),
                     chunk_count(plan) > 1 ? " a chunk" : "");
}

}  // namespace tpsim::gui
