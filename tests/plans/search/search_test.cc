#include "plans/search/search.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <random>
#include <set>

#include "core/base/check.h"
#include "plans/search/enumerate.h"
#include "plans/search/staged_search.h"
#include "sim/step/predict.h"
#include "sim/step/step.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

// Every plan that fits, simulated event by event, without pruning: (step, peak).
struct Exact {
  double step = 0, peak = 0;
  Plan plan;
};
std::vector<Exact> brute_force(const Scenario& scenario, const SearchSpace& space) {
  LayerPricer pricer(scenario);
  std::vector<Exact> all;
  enumerate_plans(scenario, space, [&](const Plan& plan) {
    REQUIRE(check_plan(scenario, plan).ok());
    const PlanCosts costs = plan_costs(pricer, plan);
    Bytes peak;
    for (const StageMemory& stage : memory_by_stage(scenario.stack, plan, costs)) {
      peak = std::max(peak, stage.total());
    }
    if (probability_of_oom(scenario, peak) > space.oom_risk) return;
    for (const StageCost& stage : costs.stages) {
      const Bytes host = host_memory_of_node(scenario.cluster, plan, stage.host);
      if (host > scenario.cluster.host.memory) return;
    }
    all.push_back({step_cost(pricer, plan, costs, nullptr).step.value(), peak.value(), plan});
  });
  std::stable_sort(all.begin(), all.end(),
                   [](const Exact& a, const Exact& b) { return a.step < b.step; });
  return all;
}

bool differ_in_recomputed_blocks(const Plan& a, Plan b) {
  b.recompute_blocks = a.recompute_blocks;
  return a.recompute == Recompute::kBlocks && a == b;
}

// Keeps the fastest of plans that differ only in the number of recomputed blocks. If the plan
// without recompute fits, keeps only that one.
std::vector<Exact> fastest_of_each(const std::vector<Exact>& all) {
  std::vector<Exact> kept;
  for (const Exact& one : all) {
    const bool repeats = one.plan.recompute == Recompute::kBlocks &&
                         std::any_of(kept.begin(), kept.end(), [&](const Exact& other) {
                           const bool alike = differ_in_recomputed_blocks(other.plan, one.plan);
                           return alike || other.plan == with_whole_recompute(one.plan, false);
                         });
    if (!repeats) kept.push_back(one);
  }
  return kept;
}

// Keeps the first plan of each layout.
std::vector<Exact> best_of_layouts(std::vector<Exact> all) {
  std::set<ParallelDegrees> seen;
  std::erase_if(all, [&](const Exact& one) { return !seen.insert(one.plan.degrees).second; });
  return all;
}

// Checks the search that ranks layouts. `all`: every plan that fits, fastest first.
void check_layouts(const Scenario& scenario, SearchSpace space, const std::vector<Exact>& all) {
  space.group = Grouping::kLayout;
  const std::vector<Exact> layouts = best_of_layouts(all);
  for (const int top : {4, 1000}) {
    const Result<SearchResult> found = search(scenario, space, top, {});
    REQUIRE(found.ok());
    REQUIRE(found->plans.size() == std::min(static_cast<std::size_t>(top), layouts.size()));
    std::set<ParallelDegrees> shown;
    for (std::size_t i = 0; i < found->plans.size(); ++i) {
      CHECK(found->plans[i].predicted.step.value() == Approx(layouts[i].step).epsilon(1e-12));
      CHECK(shown.insert(found->plans[i].plan.degrees).second);
    }
  }
}

// Keeps plans that no other plan dominates.
std::vector<Exact> front_of(std::vector<Exact> all) {
  std::sort(all.begin(), all.end(), [](const Exact& a, const Exact& b) {
    return std::pair(a.step, a.peak) < std::pair(b.step, b.peak);
  });
  std::vector<Exact> front;
  for (const Exact& one : all) {
    if (front.empty() || one.peak < front.back().peak) front.push_back(one);
  }
  return front;
}

// Converts enum values to integers, the type of setting values.
template <class... E>
std::vector<std::int64_t> numbers(E... values) {
  return {static_cast<std::int64_t>(values)...};
}

// A random model and machine.
Scenario random_scenario(std::mt19937& random) {
  const auto pick = [&](std::vector<std::int64_t> values) {
    return values[random() % values.size()];
  };
  Scenario scenario =
      test::small_scenario(random() % 2 == 0 ? test::small_bloom() : test::small_llama());
  scenario.model.layers = pick({3, 5, 6, 8});
  scenario.model.seq = pick({96, 128});
  scenario.cluster.gpus_per_node = pick({2, 4});
  scenario.cluster.inter_node.bandwidth = BytesPerSecond(1e9 * static_cast<double>(pick({1, 50})));
  scenario.profile.device.memory = Bytes(0.1 * kGiB * static_cast<double>(pick({3, 5, 9, 40})));
  scenario.stack.parts.overlap_p2p = random() % 2 == 0;
  scenario.stack.parts.p2p_calls =
      scenario.model.layers % 2 == 0 ? P2pCalls::kSerial : P2pCalls::kPaired;
  scenario.stack.rank_jitter = 0.01 * static_cast<double>(pick({0, 1}));
  scenario.stack.training.gradient_accumulation =
      random() % 2 == 0 ? GradientAccumulation::kFused : GradientAccumulation::kSeparate;
  scenario.stack.training.overlap_gradient_reduction = random() % 2 == 0;
  scenario.cluster.host.memory = Bytes(0.1 * kGiB * static_cast<double>(pick({2, 20})));
  if (random() % 3 == 0)
    scenario.stack.choices.only[Setting::kRankOrder] = numbers(RankOrder::kTpDpPp);
  if (scenario.model.layers < 6) {
    scenario.stack.choices.only[Setting::kSchedule] =
        numbers(ScheduleKind::kOneFOneB, ScheduleKind::kZbH1);
  }
  scenario.stack.memory.caching_allocator = random() % 2 == 0;
  scenario.stack.memory.fragmentation = 0.1 * static_cast<double>(pick({0, 1}));
  scenario.stack.training.gradient_sync = static_cast<GradientSync>(scenario.model.layers % 3);
  if (scenario.model.layers % 2 == 0) scenario.stack.parts.shard_group = kShardOverNode;
  return scenario;
}

Scenario tight(const ModelSpec& model) {
  Scenario scenario = test::small_scenario(model);
  scenario.profile.device.memory = Bytes(0.6 * kGiB);
  return scenario;
}

// Whether every combination either fits and was bounded separately, or is counted with a reason.
bool is_whole(const SearchResult& found) {
  std::int64_t pruned = 0;
  for (const auto& [reason, count] : found.pruned) pruned += count;
  return found.considered == found.feasible + pruned + found.not_compared &&
         found.not_as_good <= pruned;
}

// Runs `rounds` rounds, each with a random model, machine and space.
void compare_with_brute_force(unsigned seed, int rounds) {
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    const Scenario scenario = random_scenario(random);
    SearchSpace space;
    space.gpus = scenario.cluster.gpus_per_node * (round % 2 == 0 ? 2 : 4);
    space.global_batch = 8 + 4 * (round % 3);
    space.uneven_ends = round % 3;
    space.oom_risk = round % 2 == 0 ? 0.05 : 0.5;
    if (round % 4 == 1) space.asked[Setting::kCp] = {1, 2};
    space.asked[Setting::kOffload] = numbers(Offload::kNone);
    if (round % 4 == 2)
      space.asked[Setting::kOffload] = numbers(Offload::kNone, Offload::kOptimizer);
    const std::vector<Exact> fitting = brute_force(scenario, space);
    const std::vector<Exact> all = fastest_of_each(fitting);
    const Result<SearchResult> found = search(scenario, space, 5, {});
    REQUIRE(found.ok());
    INFO("round " << round << ": " << scenario.model.name << " on " << space.gpus);
    CHECK(found->feasible + found->not_as_good >= static_cast<std::int64_t>(all.size()));
    CHECK(found->feasible <= static_cast<std::int64_t>(fitting.size()));
    CHECK(is_whole(*found));
    REQUIRE(found->plans.size() == std::min<std::size_t>(5, all.size()));
    for (std::size_t i = 0; i < found->plans.size(); ++i) {
      CHECK(found->plans[i].predicted.step.value() == Approx(all[i].step).epsilon(1e-12));
    }
    check_layouts(scenario, space, fitting);
    const std::vector<Exact> front = front_of(fitting);
    const Result<SearchResult> pareto = pareto_front(scenario, space, {});
    REQUIRE(pareto.ok());
    REQUIRE(pareto->plans.size() == front.size());
    for (std::size_t i = 0; i < front.size(); ++i) {
      CHECK(pareto->plans[i].predicted.step.value() == Approx(front[i].step).epsilon(1e-12));
      CHECK(pareto->plans[i].predicted.peak.value() == Approx(front[i].peak).epsilon(1e-12));
    }
  }
}

}  // namespace

TEST_CASE("the search finds what brute force finds, for any model and machine") {
  compare_with_brute_force(7, TPSIM_SEARCH_ROUNDS);
}

TEST_CASE("the search finds what brute force finds, for many models and machines", "[.nightly]") {
  for (unsigned seed = 8; seed < 12; ++seed) compare_with_brute_force(seed, 12);
}

// A random MoE model that brute force can search quickly.
Scenario random_mixture(std::mt19937& random, int round) {
  Scenario scenario = random_scenario(random);
  scenario.model = test::small_mixture();
  scenario.model.layers = round % 2 == 0 ? 3 : 6;
  scenario.model.experts = {round % 3 == 0 ? 3 : 4, 1 + round % 2, round % 2 == 0 ? 1.0 : 2.0};
  return scenario;
}

TEST_CASE("the search finds what brute force finds of models with experts") {
  std::mt19937 random(8);
  std::set<std::int64_t> degrees;
  for (int round = 0; round < 6; ++round) {
    const Scenario scenario = random_mixture(random, round);
    SearchSpace space;
    space.gpus = 8;
    space.global_batch = 8;
    space.uneven_ends = 0;
    space.asked[Setting::kOffload] = numbers(Offload::kNone);
    const std::vector<Exact> fitting = brute_force(scenario, space);
    const std::vector<Exact> all = fastest_of_each(fitting);
    const Result<SearchResult> found = search(scenario, space, 5, {});
    REQUIRE(found.ok());
    INFO("round " << round << ": " << scenario.model.experts.count << " experts");
    CHECK(found->feasible + found->not_as_good >= static_cast<std::int64_t>(all.size()));
    CHECK(found->feasible <= static_cast<std::int64_t>(fitting.size()));
    CHECK(is_whole(*found));
    REQUIRE(found->plans.size() == std::min<std::size_t>(5, all.size()));
    for (std::size_t i = 0; i < found->plans.size(); ++i) {
      CHECK(found->plans[i].predicted.step.value() == Approx(all[i].step).epsilon(1e-12));
    }
    enumerate_plans(scenario, space, [&](const Plan& plan) { degrees.insert(plan.degrees.ep); });
  }
  CHECK(degrees == std::set<std::int64_t>{1, 2, 4});
}

TEST_CASE("any number of threads gives the same answer") {
  SearchSpace space;
  space.gpus = 16;
  space.global_batch = 16;
  const Scenario scenario = tight(test::small_bloom());
  for (const auto& [is_front, group] :
       {std::pair(false, Grouping::kNone), std::pair(false, Grouping::kLayout),
        std::pair(true, Grouping::kNone)}) {
    INFO(is_front << name_of(group));
    space.group = group;
    const auto found_by = [&](int threads) {
      return is_front ? pareto_front(scenario, space, {}, threads)
                      : search(scenario, space, 20, {}, threads);
    };
    const Result<SearchResult> alone = found_by(1);
    REQUIRE(alone.ok());
    for (const int threads : {2, 3, 4}) {
      const Result<SearchResult> together = found_by(threads);
      REQUIRE(together.ok());
      CHECK(together->considered == alone->considered);
      CHECK(together->pruned == alone->pruned);
      CHECK(together->simulated == alone->simulated);
      REQUIRE(together->plans.size() == alone->plans.size());
      for (std::size_t i = 0; i < alone->plans.size(); ++i) {
        CHECK(together->plans[i].plan == alone->plans[i].plan);
        CHECK(together->plans[i].predicted.step == alone->plans[i].predicted.step);
      }
    }
  }
}

TEST_CASE("a search with a limit of time finds no better plans, and counts what it leaves") {
  SearchSpace space;
  space.gpus = 16;
  space.global_batch = 16;
  const Scenario scenario = tight(test::small_bloom());
  const Result<SearchResult> whole = search(scenario, space, 5, {});
  REQUIRE(whole.ok());
  CHECK(whole->is_complete());
  for (const std::int64_t milliseconds : {0, 1, 2, 4, 8, 16, 32, 600'000}) {
    INFO(milliseconds);
    space.until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    const Result<SearchResult> found = search(scenario, space, 5, {});
    REQUIRE(found.ok());
    CHECK(is_whole(*found));
    if (milliseconds == 0) CHECK_FALSE(found->is_complete());
    if (milliseconds == 600'000) CHECK(found->is_complete());
    if (found->is_complete()) CHECK(found->plans.size() == whole->plans.size());
    REQUIRE(found->plans.size() <= whole->plans.size());
    REQUIRE(found->scores.size() == found->plans.size());
    for (std::size_t i = 0; i < found->plans.size(); ++i) {
      CHECK(found->scores[i] >= whole->scores[i]);
      if (found->is_complete()) CHECK(found->plans[i].plan == whole->plans[i].plan);
    }
  }
}

TEST_CASE("considered plans are feasible or counted with a reason") {
  SearchSpace space;
  space.gpus = 8;
  space.global_batch = 16;
  const Result<SearchResult> found = search(tight(test::small_bloom()), space, 3, {});
  REQUIRE(found.ok());
  CHECK(is_whole(*found));
}

TEST_CASE("the progress of a search never decreases, also if a second pass offloads") {
  SearchSpace space;
  space.gpus = 8;
  space.global_batch = 16;
  const Scenario scenario = tight(test::small_bloom());
  REQUIRE(may_offload(scenario, space));
  std::vector<double> shown;
  const Result<SearchResult> found =
      search(scenario, space, 3, [&](double share) { shown.push_back(share); });
  REQUIRE(found.ok());
  CHECK(std::is_sorted(shown.begin(), shown.end()));
  CHECK(shown.back() <= 1);
}

TEST_CASE("if nothing fits, the nearest miss is reported") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  scenario.profile.device.memory = Bytes(8 * kMiB);
  SearchSpace space;
  space.gpus = 4;
  space.global_batch = 8;
  const Result<SearchResult> found = search(scenario, space, 3, {});
  REQUIRE(found.ok());
  CHECK(found->plans.empty());
  REQUIRE(found->nearest_miss.has_value());
  CHECK(found->nearest_miss->predicted.peak > scenario.profile.device.memory);
}

TEST_CASE("a tensor parallel degree without a plan has no nearest miss, which takes long to find") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  SearchSpace space;
  space.gpus = 8;
  space.global_batch = 8;
  int without_plan = 0;
  for (double mib = 8; mib < 2048 && without_plan == 0; mib *= 1.05) {
    scenario.profile.device.memory = Bytes(mib * kMiB);
    StagedSearch search(scenario, space, 3);
    REQUIRE(search.best({}).ok());
    REQUIRE(search.front({}).ok());
    for (const std::int64_t tp : search.tp_degrees()) {
      const Result<SearchResult> found = search.best_of_tp(tp, 3, {});
      REQUIRE(found.ok());
      CHECK_FALSE(found->nearest_miss.has_value());
      without_plan += found->plans.empty() ? 1 : 0;
    }
  }
  CHECK(without_plan > 0);
}

TEST_CASE("a failed check in any thread of a search reaches its caller") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  scenario.model.hidden_dropout = 2;  // its layers cannot be traced
  SearchSpace space;
  space.gpus = 8;
  space.global_batch = 8;
  const int threads = GENERATE(1, 4);
  CHECK_THROWS_AS(search(scenario, space, 1, {}, threads), BugError);
}

TEST_CASE("the plan with the least energy is found, and has less idle time than others") {
  Scenario scenario = test::small_scenario(test::small_bloom());
  scenario.profile.device.memory = Bytes(0.3 * kGiB);
  SearchSpace space;
  space.gpus = scenario.cluster.gpus_per_node;
  space.global_batch = 8;
  space.objective = Objective::kEnergy;
  LayerPricer pricer(scenario);
  const auto energy = [&](const Plan& plan) {
    const PlanCosts costs = plan_costs(pricer, plan);
    Seconds busy;
    for (const StageCost& stage : costs.stages) {
      for (const std::int32_t kind : stage.chunks) {
        const ChunkCost& chunk = costs.kinds[static_cast<std::size_t>(kind)];
        for (const PhaseCost& task : chunk.tasks) {
          busy += static_cast<double>(micro_batches(plan)) * task.time.device;
        }
      }
    }
    const double step = step_cost(pricer, plan, costs, nullptr).step.value();
    return kWaitingDraw * step +
           (1 - kWaitingDraw) * busy.value() / static_cast<double>(plan.degrees.pp);
  };
  double least = 1e300;
  enumerate_plans(scenario, space, [&](const Plan& plan) {
    if (predict(pricer, plan)->p_oom <= space.oom_risk) least = std::min(least, energy(plan));
  });
  const auto found = search(scenario, space, 1, {});
  REQUIRE(found.ok());
  REQUIRE_FALSE(found->plans.empty());
  CHECK(energy(found->plans.front().plan) == Approx(least).epsilon(1e-12));
}

}  // namespace tpsim
