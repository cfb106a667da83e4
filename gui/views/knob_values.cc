#include "gui/views/knob_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/views/knobs.h"
#include "sim/step/predict.h"

namespace tpsim::gui {
namespace {

// Returns the error of the first condition that the plan violates; empty if it can run.
std::string refusal_of(const Scenario& scenario, const Plan& plan) {
  const Status status = check_plan(scenario, plan);
  return status.ok() ? "" : status.error().message;
}

// Returns why the setting cannot have the value.
std::string refusal_of(const Plan& plan, const SettingValue& value, const SettingRow& row,
                       const Scenario& scenario) {
  const Plan next = plan_with(plan, row, value.value, scenario);
  if (row.get(next) == value.value) return refusal_of(scenario, next);
  // The setting was adjusted back, because the other settings do not allow the value.
  Plan alone = plan;
  set(alone, value);
  const Status status = validate(alone, scenario.model);
  return status.ok() ? "The other settings do not allow this value." : status.error().message;
}

std::vector<std::int64_t> words_of(const SettingRow& row) {
  std::vector<std::int64_t> values;
  for (const FieldWord& word : row.words) values.push_back(word.value);
  return values;
}

// Returns numbers to offer for a part that accepts numbers.
std::vector<std::int64_t> usual_numbers(const PartRow& row, const Scenario& scenario,
                                        const Plan& plan) {
  if (row.kind == FieldKind::kWordOrRatio) return {1000, 1100, 1250, 1500, 2000, 3000, 4000};
  constexpr std::int64_t kMostRank = 512;
  const std::int64_t most = row.part == StackPart::kOffloadLayers ? scenario.model.layers
                            : is_of_adapters(row.part)            ? kMostRank
                                                                  : gpu_count(plan);
  std::vector<std::int64_t> numbers;
  for (std::int64_t n = 1; n <= std::min(most, row.most); n *= 2) numbers.push_back(n);
  return numbers;
}

}  // namespace

Plan plan_with(const Plan& plan, const SettingRow& row, std::int64_t value,
               const Scenario& scenario) {
  const Plan next = turned(plan, row.setting, value, scenario.model, gpu_count(plan));
  return row.setting == Setting::kZero ? next : with_runnable_zero(next, scenario);
}

std::vector<KnobValue> setting_values(const Plan& plan, const SettingRow& row,
                                      const Scenario& scenario) {
  if (row.suits != nullptr && !row.suits(scenario.model)) return {};
  const std::vector<std::int64_t> numbers =
      row.words.empty() ? values_of(plan, row.setting, scenario.model, gpu_count(plan))
                        : words_of(row);
  const std::int64_t present = row.get(plan);
  std::vector<KnobValue> values;
  for (const std::int64_t value : numbers) {
    const bool is_tp = row.setting == Setting::kEtp && value == 0;
    std::string text =
        is_tp ? fmt::format("{} (tp)", plan.degrees.tp) : text_of(SettingValue{row.setting, value});
    std::string refusal =
        value == present ? "" : refusal_of(plan, {row.setting, value}, row, scenario);
    values.push_back({value, std::move(text), std::move(refusal)});
  }
  return values;
}

bool contains_word(const PartRow& row, std::int64_t value, const FieldWord& word) {
  if (row.kind != FieldKind::kSet || word.value == 0) return value == word.value;
  return (value & word.value) == word.value;
}

std::vector<KnobValue> part_values(const PartRow& row, const Scenario& scenario, const Plan& plan) {
  const std::int64_t present = row.get(scenario.stack);
  std::vector<KnobValue> values;
  for (const FieldWord& word : row.words) {
    std::int64_t value = word.value;
    if (row.kind == FieldKind::kSet && value != 0) {
      value = contains_word(row, present, word) ? present & ~value : present | value;
    }
    values.push_back({value, std::string(word.word), ""});
  }
  std::vector<std::int64_t> numbers;
  const bool takes_numbers = row.kind == FieldKind::kWordOrRatio ||
                             row.kind == FieldKind::kWordOrCount || row.kind == FieldKind::kNumber;
  if (takes_numbers) numbers = usual_numbers(row, scenario, plan);
  const auto is_listed = [&](std::int64_t number) {
    return std::any_of(values.begin(), values.end(),
                       [&](const KnobValue& one) { return one.value == number; });
  };
  if (row.kind != FieldKind::kSet && !is_listed(present)) numbers.push_back(present);
  std::sort(numbers.begin(), numbers.end());
  for (const std::int64_t number : numbers) {
    if (!is_listed(number)) values.push_back({number, text_of(row, number), ""});
  }
  const bool runs_now = check_plan(scenario, plan).ok();
  Scenario other = scenario;
  for (KnobValue& value : values) {
    const Result<std::int64_t> parsed = parse_value(row, text_of(row, value.value));
    if (!parsed.ok() || *parsed != value.value) {
      value.refusal = "The set cannot be empty.";
    } else if (runs_now && value.value != present) {
      row.set(other.stack, value.value);
      value.refusal = refusal_of(other, plan);
      row.set(other.stack, present);
    }
  }
  return values;
}

}  // namespace tpsim::gui
