// Measures the speed of the planner on this machine: evaluation in closed form relative to event
// simulation, and plans per second relative to Calculon.
//
//   tpsim_bench_planner [--repeat N]
//   tpsim_bench_planner --drawn N [--seed S]
//
// Each result is the best of N runs in CPU seconds on one core, which reduces the effect of other
// programs. With --drawn: N searches over models, clusters, GPU counts, batches and lengths, once
// each, and their ratio to the search of the first case in the same minute. Reads the catalogue of
// data/.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/catalogue.h"
#include "plans/search/enumerate.h"
#include "plans/search/search.h"
#include "plans/search/usual_batch.h"
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

Result<Scenario> load(const Catalogue& catalogue, std::string_view model,
                      std::string_view cluster) {
  Scenario scenario;
  TPSIM_TRY(scenario.model, catalogue.load_model(model));
  TPSIM_TRY(scenario.cluster, catalogue.load_cluster(cluster));
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

// Returns a power of two times a node, at most 16,384 GPUs.
std::int64_t drawn_gpus(const ClusterSpec& cluster, std::mt19937_64& random) {
  const std::int64_t most = std::min<std::int64_t>(16384, cluster.nodes * cluster.gpus_per_node);
  std::vector<std::int64_t> counts;
  for (std::int64_t n = cluster.gpus_per_node; n <= most; n *= 2) counts.push_back(n);
  return counts.empty() ? most : counts[random() % counts.size()];
}

struct DrawnSearch {
  std::string name;
  Scenario scenario;
  SearchSpace space;
};

// Half of the searches have the model's own length, and half the default batch.
Result<DrawnSearch> drawn_search(const Catalogue& catalogue, std::mt19937_64& random) {
  const auto one_of = [&](CatalogueKind kind) {
    const std::vector<std::string> names = catalogue.list(kind);
    return names[random() % names.size()];
  };
  const std::string model = one_of(CatalogueKind::kModels);
  const std::string cluster = one_of(CatalogueKind::kClusters);
  DrawnSearch drawn;
  TPSIM_TRY(drawn.scenario, load(catalogue, model, cluster));
  if (random() % 2 == 0) drawn.scenario.model.seq = std::int64_t{1024} << random() % 6;
  drawn.space.gpus = drawn_gpus(drawn.scenario.cluster, random);
  drawn.space.global_batch = random() % 2 == 0
                                 ? searched_global_batch(drawn.scenario.model, drawn.space.gpus)
                                 : std::int64_t{64} << random() % 7;
  drawn.name =
      fmt::format("{}, {} tokens, {} GPUs of {}, batch {}", model, drawn.scenario.model.seq,
                  drawn.space.gpus, cluster, drawn.space.global_batch);
  return drawn;
}

Status report_drawn(std::int64_t count, std::uint64_t seed) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  TPSIM_TRY(const Scenario first, load(catalogue, kCases[0].model, kCases[0].cluster));
  const double usual =
      best_seconds(3, [&] { static_cast<void>(search(first, space_of(kCases[0]), 10, {})); });
  std::mt19937_64 random(seed);
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < count; ++i) {
    TPSIM_TRY(const DrawnSearch drawn, drawn_search(catalogue, random));
    std::string outcome;
    seconds.push_back(best_seconds(1, [&] {
      const Result<SearchResult> found = search(drawn.scenario, drawn.space, 10, {});
      outcome = !found.ok() ? "refused"
                : found->plans.empty()
                    ? "nothing fits"
                    : fmt::format("best {:.6f} s", found->plans[0].predicted.step.value());
    }));
    fmt::print("{:9.1f} ms  {}: {}\n", seconds.back() * 1e3, drawn.name, outcome);
  }
  std::sort(seconds.begin(), seconds.end());
  const auto quantile = [&](double share) {
    return seconds[static_cast<std::size_t>(share * static_cast<double>(count - 1))];
  };
  fmt::print("{} searches, seed {}: p50 {:.3f} s, p95 {:.3f} s, worst {:.3f} s, mean {:.3f} s\n",
             count, seed, quantile(0.5), quantile(0.95), quantile(1),
             std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(count));
  fmt::print("  relative to {} ({:.1f} ms): {:.1f}, {:.0f}, {:.0f}; peak memory {:.0f} MB\n",
             kCases[0].model, usual * 1e3, quantile(0.5) / usual, quantile(0.95) / usual,
             quantile(1) / usual, peak_megabytes());
  return Ok{};
}

Status run(int repeat) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  std::vector<Scenario> scenarios;
  for (const Case& c : kCases) {
    TPSIM_TRY(scenarios.emplace_back(), load(catalogue, c.model, c.cluster));
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
  long repeat = 3, drawn = 0, seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    long& value = option == "--drawn" ? drawn : option == "--seed" ? seed : repeat;
    value = std::max(1L, std::atol(argv[i + 1]));
  }
  const tpsim::Status status = drawn > 0
                                   ? tpsim::report_drawn(drawn, static_cast<std::uint64_t>(seed))
                                   : tpsim::run(static_cast<int>(repeat));
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.error().message);
  return 2;
}
