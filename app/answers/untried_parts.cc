#include "app/answers/untried_parts.h"

#include <algorithm>
#include <optional>

#include "app/scenario/available_part.h"
#include "core/software/part_rules.h"
#include "sim/step/simulate.h"

namespace tpsim::app {
namespace {

constexpr PartWord kUntriedParts[] = {
    {StackPart::kDispatcher, "hybridep"},
    {StackPart::kDispatcher, "deepep"},
    {StackPart::kRouterKernel, "fused"},
    {StackPart::kPermute, "fused"},
    {StackPart::kEpOverlap, "on"},
    {StackPart::kTpOverlap, "userbuffers"},
    {StackPart::kOverlapGradientReduction, "on"},
    {StackPart::kCudaGraphs, "attn"},
    {StackPart::kCudaGraphs, "attn,moe_router,moe_preprocess"},
    {StackPart::kLossHead, "vocab_parallel_fused"},
    {StackPart::kCompile, "on"},
};
constexpr double kLeastGain = 0.01;

bool is_varied(const NamedScenario& named, StackPart part) {
  return named.parts.contains(part) ||
         std::any_of(named.tried.begin(), named.tried.end(),
                     [&](const TriedParts& one) { return one.parts.contains(part); });
}

}  // namespace

std::vector<TriedParts> untried_parts(const NamedScenario& named, const PlannedRun& best,
                                      double oom_risk) {
  const Scenario& scenario = named.scenario;
  std::vector<TriedParts> gains;
  if (scenario.stack.launcher == Launcher::kNone) return gains;
  const Seconds enough = (1 - kLeastGain) * best.predicted.step;
  for (const PartWord& one : kUntriedParts) {
    const std::optional<std::int64_t> value = available_value(scenario.stack, one);
    if (!value || is_varied(named, one.part)) continue;
    Scenario other = scenario;
    other.stack = with_parts(scenario.stack, {{one.part, *value}});
    if (broken_file_rule(other.stack.launcher, other.stack, other.model, best.plan,
                         named.profile) != nullptr) {
      continue;
    }
    const Result<Prediction> predicted = simulate(other, best.plan);
    if (!predicted.ok() || predicted->step > enough) continue;
    if (fits_in_memory(*predicted, oom_risk)) {
      gains.push_back({{{one.part, *value}}, predicted->step});
    }
  }
  std::sort(gains.begin(), gains.end(),
            [](const TriedParts& a, const TriedParts& b) { return *a.step < *b.step; });
  return gains;
}

}  // namespace tpsim::app
