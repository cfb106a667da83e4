// Measures the speed of the planner on this machine: evaluation in closed form relative to event
// simulation, and plans per second relative to Calculon.
//
//   tpsim_bench_planner [--repeat N]
//
// Each result is the best of N runs in CPU seconds on one core, which reduces the effect of other
// programs. Reads the catalogue of data/.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <vector>

#include "core/scenario/catalogue.h"
#include "plans/search/enumerate.h"
#include "plans/search/search.h"
#include "sim/bounds/plan_bounds.h"
#include "sim/step/step.h"

namespace tpsim {
namespace {

// Plans per second of Calculon (Isaev et al., SC'23) on one core without debug logging, for
// BLOOM-176B on 384 GPUs. The value was measured once on another machine and is not measured here.
constexpr double kCalculonPlansPerSecond = 1200;

constexpr double kLeast = 1e-9;  // seconds; avoids division by zero

struct Case {
  const char* model;
  const char* cluster;
  std::int64_t gpus;
  double goal_s;
};
constexpr Case kCases[] = {{"bloom-176b", "jean-zay-a100", 384, 0.050},
                           {"gpt-1t", "dgx-h100", 16384, 1.0}};

double worked_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double best_seconds(int repeat, const std::function<void()>& work) {
  double best = 1e300;
  for (int i = 0; i < repeat; ++i) {
    const double start = worked_seconds();
    work();
    best = std::min(best, worked_seconds() - start);
  }
  return std::max(best, kLeast);
}

Result<Scenario> load(const Catalogue& catalogue, const Case& c) {
  Scenario scenario;
  TPSIM_TRY(scenario.model, catalogue.load_model(c.model));
  TPSIM_TRY(scenario.cluster, catalogue.load_cluster(c.cluster));
  TPSIM_TRY(scenario.profile, catalogue.load_profile(scenario.cluster.profile));
  TPSIM_TRY(scenario.stack, catalogue.load_stack(scenario.cluster.stack));
  return scenario;
}

SearchSpace space_of(const Case& c) {
  SearchSpace space;
  space.gpus = c.gpus;
  space.global_batch = 2048;
  return space;
}

void report_whole_search(const Case& c, const Scenario& scenario, int repeat) {
  SearchResult found;
  const double seconds =
      best_seconds(repeat, [&] { found = *search(scenario, space_of(c), 10, {}); });
  fmt::print("{} on {} GPUs of {}\n", c.model, c.gpus, c.cluster);
  fmt::print(
      "  whole search            {:8.1f} ms   goal {:.0f} ms; {} considered, {} fit, {} "
      "simulated\n",
      seconds * 1e3, c.goal_s * 1e3, found.considered, found.feasible, found.simulated);
}

// A plan and its pipeline split, which is owned by the PlanSpace.
struct CutPlan {
  Plan plan;
  const StageCut* cut = nullptr;
};
std::vector<CutPlan> plans_of(const PlanSpace& space) {
  std::vector<CutPlan> plans;
  space.visit_plans([&](const Plan& plan, const StageCut& cut) { plans.push_back({plan, &cut}); });
  return plans;
}

double evaluate_all(const std::vector<CutPlan>& plans, PlanBounds& bounds, Bytes limit) {
  double sum = 0;  // prevents the compiler from removing the work
  for (const CutPlan& each : plans) {
    const PlanBounds::Value value = bounds.evaluate(each.plan, *each.cut, limit);
    sum += value.peak.value() + value.step.value();
  }
  return sum;
}

// Times all plans in closed form, with a cold cache and with all layers already traced and priced.
// Without memory limit every plan is evaluated completely: its exact peak memory and its bound of
// the step. The stack's limits are removed, since they would leave few plans.
void report_closed_form(const Case& c, Scenario scenario, int repeat) {
  scenario.stack = without_limits(std::move(scenario.stack));
  const PlanSpace space(scenario, space_of(c));
  std::vector<CutPlan> plans;
  const double listed = best_seconds(repeat, [&] { plans = plans_of(space); });
  const auto prices = std::make_shared<const PriceLists>(scenario);
  const Bytes unlimited(1e18);
  double sum = 0;
  const double cold = best_seconds(repeat, [&] {
    LayerPricer pricer(prices);
    PlanBounds bounds(pricer);
    sum += evaluate_all(plans, bounds, scenario.profile.device.memory);
  });
  LayerPricer pricer(prices);
  PlanBounds bounds(pricer);
  sum += evaluate_all(plans, bounds, unlimited);
  const double warm = best_seconds(repeat, [&] { sum += evaluate_all(plans, bounds, unlimited); });
  const auto n = static_cast<double>(plans.size());
  fmt::print("  {} plans without the limits of the stack\n", plans.size());
  fmt::print("  listed                  {:8.2f} M plans/s   only enumerated\n", n / listed / 1e6);
  fmt::print("  closed form, cold       {:8.2f} M plans/s   tracing and pricing included\n",
             n / cold / 1e6);
  fmt::print("  closed form, warm       {:8.2f} M plans/s   goal 1; peak memory and step bound{}\n",
             n / warm / 1e6, sum < 0 ? "!" : "");
  fmt::print(
      "  faster than Calculon    {:8.0f} x   {} plans/s per core, measured on another machine\n",
      n / warm / kCalculonPlansPerSecond, kCalculonPlansPerSecond);
}

// Times every 97th of the same plans by event simulation.
void report_event_simulation(const Case& c, const Scenario& scenario, int repeat) {
  std::vector<Plan> sample;
  enumerate_plans(scenario, space_of(c), [&, n = 0](const Plan& plan) mutable {
    if (n++ % 97 == 0) sample.push_back(plan);
  });
  LayerPricer pricer(scenario);
  PlanBounds bounds(pricer);
  std::vector<PlanCosts> costs;
  std::vector<StageCut> cuts;
  for (const Plan& plan : sample) {
    costs.push_back(plan_costs(pricer, plan));
    cuts.push_back(stage_cut(plan.stage_layers, plan.degrees.pp, scenario.model));
  }
  std::int64_t events = 0;
  const double exact = best_seconds(repeat, [&] {
    events = 0;
    for (std::size_t i = 0; i < sample.size(); ++i) {
      events += step_cost(pricer, sample[i], costs[i], nullptr).pipeline.events;
    }
  });
  double sum = 0;
  const double closed = best_seconds(repeat, [&] {
    for (std::size_t i = 0; i < sample.size(); ++i)
      sum += bounds.evaluate(sample[i], cuts[i], Bytes(1e18)).step.value();
  });
  fmt::print("  event by event          {:8.1f} M events/s   goal 20; {} plans of {} events\n",
             static_cast<double>(events) / exact / 1e6, sample.size(),
             events / static_cast<std::int64_t>(sample.size()));
  fmt::print("  closed form is          {:8.0f} x faster than event simulation of these plans{}\n",
             exact / closed, sum < 0 ? "!" : "");
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

Status run(int repeat) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  std::vector<Scenario> scenarios;
  for (const Case& c : kCases) {
    TPSIM_TRY(scenarios.emplace_back(), load(catalogue, c));
    report_whole_search(c, scenarios.back(), repeat);
  }
  fmt::print("peak memory of the searches {:6.1f} MB   goal 100\n", peak_megabytes());
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    fmt::print("{} on {} GPUs of {}\n", kCases[i].model, kCases[i].gpus, kCases[i].cluster);
    report_closed_form(kCases[i], scenarios[i], repeat);
    report_event_simulation(kCases[i], scenarios[i], repeat);
  }
  return Ok{};
}

}  // namespace
}  // namespace tpsim

int main(int argc, char** argv) {
  int repeat = 3;
  if (argc == 3 && std::strcmp(argv[1], "--repeat") == 0) repeat = std::max(1, std::atoi(argv[2]));
  const tpsim::Status status = tpsim::run(repeat);
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.error().message);
  return 2;
}
