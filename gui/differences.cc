#include "gui/differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/numbers.h"

namespace tpsim::gui {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

Settings settings_of(const Plan& plan) {
  return {{"tp", std::to_string(plan.degrees.tp)},
          {"pp", std::to_string(plan.degrees.pp)},
          {"dp", std::to_string(plan.degrees.dp)},
          {"cp", std::to_string(plan.degrees.cp)},
          {"ep", std::to_string(plan.degrees.ep)},
          {"chunks", std::to_string(plan.virtual_stages)},
          {"ZeRO", std::to_string(plan.zero)},
          {"micro-batch", std::to_string(plan.micro_batch)},
          {"recompute", recompute_text(plan)},
          {"attention", std::string(name_of(plan.attention))},
          {"schedule", std::string(name_of(plan.schedule))},
          {"sequence parallel", plan.sequence_parallel ? "on" : "off"},
          {"stage layers", layers_text(plan.stage_layers)}};
}

}  // namespace

std::vector<TermDifference> term_differences(const Prediction& a, const Prediction& b) {
  std::vector<TermDifference> all;
  for (std::size_t i = 0; i < std::min(a.breakdown.size(), b.breakdown.size()); ++i) {
    const Seconds time = b.breakdown[i].time - a.breakdown[i].time;
    if (std::abs(time.value()) >= 1e-3 * a.step.value())
      all.push_back({std::string(name_of(a.breakdown[i].kind)), time});
  }
  std::stable_sort(all.begin(), all.end(), [](const TermDifference& x, const TermDifference& y) {
    return std::abs(x.time.value()) > std::abs(y.time.value());
  });
  return all;
}

std::string summary_of(const PlanView& a, const PlanView& b) {
  const Seconds difference = b.predicted.step - a.predicted.step;
  const bool ties =
      b.predicted.step <= a.predicted.step_high && b.predicted.step >= a.predicted.step_low;
  const Bytes memory = b.predicted.peak - a.predicted.peak;
  return fmt::format(
      "B is {} {}{}; {} GiB {} memory", time_text(Seconds(std::abs(difference.value()))),
      difference.value() < 0 ? "faster" : "slower", ties ? ", within A's interval" : "",
      gib_text(Bytes(std::abs(memory.value()))), memory.value() < 0 ? "less" : "more");
}

std::string settings_difference(const Plan& a, const Plan& b) {
  const Settings left = settings_of(a), right = settings_of(b);
  std::string text;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i].second == right[i].second) continue;
    text += fmt::format("{}{} {} → {}", text.empty() ? "A → B: " : ", ", left[i].first,
                        left[i].second, right[i].second);
  }
  return text.empty() ? "A and B are the same plan" : text;
}

}  // namespace tpsim::gui
