// How fast the planner is on this machine, with the ratios that matter: closed form against event
// simulation, and plans per second against what its nearest neighbour publishes.
//
//   tpsim_bench_planner [--repeat N]
//
// Every figure is the best of N runs on one core. Reads the catalogue of data/.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "core/catalogue.h"
#include "plans/enumerate.h"
#include "plans/search.h"
#include "sim/plan_bounds.h"
#include "sim/step.h"

namespace tpsim {
namespace {

// Calculon (Isaev et al., SC'23) on BLOOM-176B over 384 GPUs, plans in a second on one core with
// its debug logging taken out: timed once on another machine, before this project began; not run
// here.
constexpr double kCalculonPlansPerSecond = 1200;

constexpr double kLeast = 1e-9;  // of a second, so that ratios stay finite

struct Case {
  const char* model;
  const char* cluster;
  std::int64_t gpus;
  double goal_s;
};
constexpr Case kCases[] = {{"bloom-176b", "jean-zay-a100", 384, 0.050},
                           {"gpt-1t", "dgx-h100", 16384, 1.0}};

double best_seconds(int repeat, const std::function<void()>& work) {
  double best = 1e300;
  for (int i = 0; i < repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    best = std::min(best, elapsed.count());
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

struct Evaluated {
  std::int64_t plans = 0;
  double checksum = 0;  // keeps the work from being dropped
};

Evaluated evaluate_all(const PlanSpace& plans, PlanBounds& bounds, Bytes limit) {
  Evaluated result;
  for (std::int64_t family = 0; family < plans.families(); ++family) {
    plans.visit_family(family, [&](Plan plan, const StageCut& cut) {
      const auto evaluate = [&] {
        const PlanBounds::Value value = bounds.evaluate(plan, cut, limit);
        ++result.plans;
        result.checksum += value.peak.value() + value.step.value();
      };
      if (plan.recompute != Recompute::kBlocks) return evaluate();
      for (const std::int64_t blocks : plans.recompute_counts(cut)) {
        plan.recompute_blocks = blocks;
        evaluate();
      }
    });
  }
  return result;
}

// Plans in closed form: from nothing, and with every layer traced and priced. With no limit every
// plan gets its exact peak and its bound of the step.
void report_closed_form(const Case& c, const Scenario& scenario, int repeat) {
  const PlanSpace plans(scenario, space_of(c));
  const auto prices = std::make_shared<const PriceLists>(scenario);
  const Bytes unlimited(1e18);
  Evaluated done;
  const double cold = best_seconds(repeat, [&] {
    LayerPricer pricer(prices);
    PlanBounds bounds(pricer);
    done = evaluate_all(plans, bounds, scenario.profile.device.memory);
  });
  LayerPricer pricer(prices);
  PlanBounds bounds(pricer);
  evaluate_all(plans, bounds, unlimited);
  const double warm = best_seconds(repeat, [&] { done = evaluate_all(plans, bounds, unlimited); });
  const double rate = static_cast<double>(done.plans) / warm;
  fmt::print("  closed form, cold       {:8.1f} ms   tracing and pricing included\n", cold * 1e3);
  fmt::print(
      "  closed form, warm       {:8.2f} M plans/s   goal 1; {} plans, each with its peak "
      "and its bound\n",
      rate / 1e6, done.plans);
  fmt::print("  over Calculon's         {:8.0f} x   {} plans/s per core, timed elsewhere\n",
             rate / kCalculonPlansPerSecond, kCalculonPlansPerSecond);
}

// The same plans event by event.
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
  fmt::print("  closed form is          {:8.0f} x faster than event simulation on them{}\n",
             exact / closed, sum < 0 ? "!" : "");
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

Status run(int repeat) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  for (const Case& c : kCases) {
    TPSIM_TRY(const Scenario scenario, load(catalogue, c));
    report_whole_search(c, scenario, repeat);
    fmt::print("  peak memory so far      {:8.1f} MB   goal 100\n", peak_megabytes());
    report_closed_form(c, scenario, 10 * repeat);
    report_event_simulation(c, scenario, repeat);
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
