// Predictions of Muon against the programs of real ranks, whose tensors have real owners.
#include <algorithm>
#include <catch2/catch.hpp>

#include "lowering/trace/rank_trace.h"
#include "tests/sim/layers/part_laws.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

Scenario muon_scenario(MuonTpMode mode = MuonTpMode::kDuplicated) {
  Scenario scenario = test::small_scenario(test::small_llama());
  scenario.stack.training.optimizer_kind = OptimizerKind::kMuon;
  scenario.stack.training.muon_tp_mode = mode;
  scenario.stack.memory.allocation_granularity = Bytes(1);
  return scenario;
}

Plan muon_plan(const ModelSpec& model, ParallelDegrees degrees, int zero) {
  Plan plan = test::plan_of(model, degrees, 4);
  plan.zero = zero;
  return plan;
}

double state_of_rank(const Scenario& scenario, const Plan& plan, std::int64_t rank) {
  const RankTrace trace = trace_rank(scenario.model, plan, scenario.stack.training, rank);
  double bytes = 0;
  for (const AllocationRecord& made : trace.program.allocations) {
    if (made.category == MemoryCategory::kOptimizer) bytes += static_cast<double>(made.bytes);
  }
  return bytes;
}

Seconds update_of(const Scenario& scenario, const Plan& plan) {
  return time_of(test::with(scenario, plan, {}), StepTerm::kOptimizer);
}

}  // namespace

TEST_CASE("the predicted state of Muon is that of the rank with the most") {
  const Scenario scenario = muon_scenario();
  for (const int zero : {0, 1, 2, 3}) {
    const Plan plan = muon_plan(scenario.model, {.tp = 1, .pp = 1, .dp = 8}, zero);
    double most = 0;
    for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
      most = std::max(most, state_of_rank(scenario, plan, rank));
    }
    constexpr auto kState = static_cast<std::size_t>(MemoryCategory::kOptimizer);
    const Prediction found = test::with(scenario, plan, {});
    INFO("ZeRO " << zero);
    CHECK(found.memory.front().by_category[kState].value() == Approx(most).epsilon(0.01));
  }
}

TEST_CASE("owners and shares divide Muon's iterations, blockwise shards make them cheaper") {
  const Scenario whole = muon_scenario();
  const auto of_zero = [&](int zero) {
    return update_of(whole, muon_plan(whole.model, {.tp = 1, .pp = 1, .dp = 4}, zero));
  };
  CHECK(of_zero(1) < 0.5 * of_zero(0));
  CHECK(of_zero(2) < of_zero(0));
  const auto of_mode = [](MuonTpMode mode) {
    const Scenario scenario = muon_scenario(mode);
    return update_of(scenario, muon_plan(scenario.model, {.tp = 4, .pp = 1, .dp = 1}, 0));
  };
  CHECK(of_mode(MuonTpMode::kBlockwise) < of_mode(MuonTpMode::kDuplicated));
  CHECK(of_mode(MuonTpMode::kBlockwise) < of_mode(MuonTpMode::kDistributed));
}

}  // namespace tpsim
