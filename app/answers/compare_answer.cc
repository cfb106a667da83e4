#include "app/answers/compare_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "app/scenario/open_inputs.h"
#include "sim/step/order.h"
#include "sim/step/simulate.h"

namespace tpsim::app {
namespace {

Result<ComparedPlan> load(const ScenarioRequest& request) {
  ComparedPlan one;
  one.file = request.origin;
  TPSIM_TRY(one.named, load_scenario(request));
  one.run.plan = request.file->plan;
  TPSIM_TRY(one.run.predicted, simulate(one.named.scenario, one.run.plan));
  TPSIM_TRY_STATUS(widen_intervals(one.named, std::span(&one.run, 1)));
  return one;
}

// Whether all plans run with the same value of the part, stated or from their stack.
bool is_same_in_all(const std::vector<ComparedPlan>& all, StackPart part) {
  const auto value = [&](const ComparedPlan& one) {
    return row_of(part).get(one.named.scenario.stack);
  };
  return std::all_of(all.begin(), all.end(),
                     [&](const ComparedPlan& one) { return value(one) == value(all.front()); });
}

std::vector<PlanDifference> differences(const std::vector<ComparedPlan>& all) {
  std::vector<PlanDifference> differing;
  const auto add = [&](std::string name, auto value) {
    PlanDifference one{std::move(name), {}};
    for (const ComparedPlan& plan : all) one.values.push_back(value(plan));
    const bool differs = std::any_of(one.values.begin(), one.values.end(),
                                     [&](const auto& text) { return text != one.values.front(); });
    if (differs) differing.push_back(std::move(one));
  };
  add("model", [](const ComparedPlan& one) { return one.named.scenario.model.name; });
  add("sequence",
      [](const ComparedPlan& one) { return std::to_string(one.named.scenario.model.seq); });
  add("cluster", [](const ComparedPlan& one) { return one.named.cluster; });
  add("profile", [](const ComparedPlan& one) { return one.named.profile; });
  add("stack", [](const ComparedPlan& one) { return one.named.stack; });
  add("parts", [&](const ComparedPlan& one) {
    PartValues other = one.named.parts;
    std::erase_if(other, [&](const auto& part) { return is_same_in_all(all, part.first); });
    return other.empty() ? std::string("as in the stack") : to_string(other);
  });
  for (const SettingRow& row : setting_rows()) {
    if (row.counts_for != nullptr) continue;
    add(std::string(row.title),
        [&](const ComparedPlan& one) { return text_of(one.run.plan, row.setting); });
  }
  return differing;
}

bool share_errors(const ComparedPlan& a, const ComparedPlan& b) {
  return a.named.scenario.model.name == b.named.scenario.model.name &&
         a.named.scenario.model.seq == b.named.scenario.model.seq &&
         a.named.cluster == b.named.cluster && a.named.profile == b.named.profile &&
         a.run.plan.global_batch == b.run.plan.global_batch;
}

}  // namespace

double ComparedPlan::tokens_per_s_per_gpu() const {
  return run.predicted.tokens_per_s / static_cast<double>(gpu_count(run.plan));
}

Result<CompareAnswer> compare_answer(const std::vector<ScenarioRequest>& requests) {
  if (requests.size() < 2 || requests.size() > kMostComparedPlans) {
    return bad_input(
        requests.size() == 1 ? "only one plan was given"
                             : fmt::format("{} plans were given", requests.size()),
        "compare",
        fmt::format("give two to {} plans: tpsim compare a.json b.json", kMostComparedPlans));
  }
  CompareAnswer answer;
  for (const ScenarioRequest& request : requests) {
    TPSIM_TRY(answer.plans.emplace_back(), load(request));
  }
  const ComparedPlan& first = answer.plans.front();
  const Seconds base = first.run.predicted.step;
  for (ComparedPlan& one : answer.plans) {
    const Seconds step = one.run.predicted.step;
    one.faster = probability_faster(step, base);
    one.is_tie = &one != &first && is_tie(std::min(step, base), std::max(step, base));
  }
  answer.shares_errors =
      std::all_of(answer.plans.begin(), answer.plans.end(),
                  [&](const ComparedPlan& one) { return share_errors(one, first); });
  answer.differences = differences(answer.plans);
  return answer;
}

}  // namespace tpsim::app
