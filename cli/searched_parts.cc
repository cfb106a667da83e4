#include <fmt/format.h>

#include <algorithm>

#include "cli/inputs.h"
#include "cli/table.h"
#include "core/numbers.h"
#include "core/text.h"

namespace tpsim::cli {
namespace {

constexpr std::size_t kMostCombinations = 64;

Result<std::vector<PartValues>> combinations(const PartLists& lists) {
  std::vector<PartValues> all = {{}};
  for (const auto& [part, values] : lists) {
    if (all.size() * values.size() > kMostCombinations) {
      return bad_input(fmt::format("parts have more than {} combinations", kMostCombinations),
                       std::string(option_of(part)), "leave fewer of them open");
    }
    std::vector<PartValues> longer;
    for (const PartValues& one : all) {
      for (const std::int64_t value : values) {
        longer.push_back(one);
        longer.back()[part] = value;
      }
    }
    all = std::move(longer);
  }
  return all;
}

bool is_faster(const TriedParts& a, const TriedParts& b) {
  if (!a.step || !b.step) return a.step.has_value() && !b.step.has_value();
  return *a.step < *b.step;
}

}  // namespace

Status choose_parts(NamedScenario& named, const SearchSpace& space, int threads,
                    const Terminal& terminal) {
  if (named.part_lists.empty()) return Ok{};
  TPSIM_TRY(const std::vector<PartValues> all, combinations(named.part_lists));
  ProgressBar progress(terminal, "searching parts");
  const auto count = static_cast<double>(all.size());
  for (const PartValues& parts : all) {
    const auto done = static_cast<double>(named.tried.size());
    const auto show = [&](double share) { progress.show((done + share) / count); };
    Scenario scenario = named.scenario;
    scenario.stack = with_parts(std::move(scenario.stack), parts);
    TPSIM_TRY(const SearchResult found, search(scenario, space, 1, show, threads));
    TriedParts tried{parts, std::nullopt};
    if (!found.plans.empty()) tried.step = found.plans.front().predicted.step;
    named.tried.push_back(std::move(tried));
  }
  std::stable_sort(named.tried.begin(), named.tried.end(), is_faster);
  for (const auto& [part, value] : named.tried.front().parts) named.parts[part] = value;
  named.scenario.stack = with_parts(std::move(named.scenario.stack), named.parts);
  return Ok{};
}

std::string tried_view(const Terminal& terminal, const NamedScenario& named) {
  if (named.tried.empty()) return "";
  const std::string text = joined_text(named.tried, "; ", [](const TriedParts& one) {
    return fmt::format("{} {}", to_string(one.parts),
                       one.step ? time_text(*one.step) : "fits nowhere");
  });
  return "  " + terminal.paint("parts        ", Ink::kDim) +
         wrapped(text, terminal.room(15, 85), 15) + "\n";
}

void add_tried(JsonValue& report, const NamedScenario& named) {
  if (named.tried.empty()) return;
  report.set("parts_searched", json_array(named.tried, [](const TriedParts& one) {
               JsonValue parts = json_object();
               for (const auto& [part, value] : one.parts) {
                 parts.set(std::string(row_of(part).key), text_of(row_of(part), value));
               }
               JsonValue row = json_object({{"parts", std::move(parts)}});
               if (one.step) row.set("step_s", one.step->value());
               return row;
             }));
}

}  // namespace tpsim::cli
