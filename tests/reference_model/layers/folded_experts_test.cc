// Experts with ETP x EP x EDP on the ranks of attention's TP x CP x DP: every layout of eight ranks
// compared with one rank in float64.
#include <catch2/catch.hpp>
#include <functional>

#include "core/plan/plan_settings.h"
#include "tests/reference_model/expert_training.h"

namespace tpsim {
namespace {

using test::check_same, test::layout_of, test::run_of, test::trained_on_cpu, test::trained_slowly;

constexpr std::int64_t kRanks = 8;

// Eight experts that eight ranks can distribute or shard.
ModelSpec divisible_mixture() {
  ModelSpec model = test::mixture(24, 16);
  model.seq = 16;
  model.attention.kv_heads = 4;
  model.experts = {8, 2, 4.0};
  return model;
}

void for_each_layout(const ModelSpec& model, const std::function<void(const Plan&)>& visit) {
  ParallelDegrees d;
  for (d.tp = 1; d.tp <= kRanks; d.tp *= 2) {
    for (d.cp = 1; d.tp * d.cp <= kRanks; d.cp *= 2) {
      for (d.pp = 1; d.tp * d.cp * d.pp <= kRanks; d.pp *= 2) {
        d.dp = kRanks / (d.tp * d.cp * d.pp);
        for (d.etp = 1; d.etp <= kRanks; d.etp *= 2) {
          for (d.ep = 1; d.etp * d.ep <= kRanks; d.ep *= 2) {
            Plan plan = layout_of(model, d, 1);
            if (validate(plan, model).ok()) visit(plan);
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("every layout of experts and attention over eight ranks trains like one rank") {
  const ModelSpec model = divisible_mixture();
  TrainingRun alone = run_of(model, layout_of(model, {}, 8));
  alone.steps = 2;
  const test::Trained wanted = trained_slowly(alone);
  int layouts = 0, beyond_dp = 0;
  for_each_layout(model, [&](const Plan& layout) {
    TrainingRun run = run_of(model, layout);
    run.steps = alone.steps;
    run.plan.zero = layouts % 4;
    if (layouts % 3 == 0) run.plan.rank_order = RankOrder::kTpPpDp;
    if (layouts % 5 == 0) run.plan.recompute = Recompute::kFull;
    INFO(short_name(run.plan));
    REQUIRE(validate(run.plan, model).ok());
    check_same(trained_on_cpu(run), wanted);
    ++layouts;
    if (layout.degrees.ep > layout.degrees.dp) ++beyond_dp;
  });
  CHECK(layouts > 100);
  CHECK(beyond_dp > 30);
}

TEST_CASE("whole and tensor-sharded experts drop the same tokens") {
  ModelSpec model = divisible_mixture();
  model.experts.capacity_factor = 0.5;
  const auto trained = [&](std::int64_t etp, std::int64_t ep) {
    TrainingRun run = run_of(model, layout_of(model, {.tp = 2, .dp = 2, .ep = ep, .etp = etp}, 2));
    run.steps = 2;
    return trained_on_cpu(run);
  };
  const test::Trained cut = trained(2, 1);
  for (const std::int64_t ep : {1, 2, 4}) check_same(trained(1, ep), cut);
  check_same(trained(4, 1), cut);
}

TEST_CASE("dropless experts drop no token in any layout") {
  ModelSpec model = divisible_mixture();
  model.experts.dropless = true;
  model.experts.capacity_factor = 1;
  TrainingRun alone = run_of(model, layout_of(model, {}, 8));
  alone.steps = 2;
  const test::Trained wanted = trained_slowly(alone);
  for (const ParallelDegrees& degrees :
       {ParallelDegrees{.tp = 2, .dp = 4, .ep = 8, .etp = 1},
        ParallelDegrees{.tp = 2, .pp = 2, .dp = 2, .ep = 4, .etp = 1},
        ParallelDegrees{.tp = 2, .dp = 2, .cp = 2, .ep = 4, .etp = 2}}) {
    TrainingRun run = run_of(model, layout_of(model, degrees, 1));
    run.steps = 2;
    run.plan.zero = 1;
    INFO(short_name(run.plan));
    check_same(trained_on_cpu(run), wanted);
  }
}

TEST_CASE("dropless experts allocate slots for the busiest expert") {
  ModelSpec dropless = divisible_mixture();
  dropless.seq = 64;
  dropless.experts.dropless = true;
  dropless.experts.capacity_factor = 1;
  ModelSpec roomy = dropless;
  roomy.experts.dropless = false;
  roomy.experts.capacity_factor = static_cast<double>(dropless.experts.count);
  const auto trained = [&](const ModelSpec& model, const ParallelDegrees& degrees) {
    TrainingRun run = run_of(model, layout_of(model, degrees, 4));
    run.steps = 2;
    return trained_on_cpu(run);
  };
  for (const ParallelDegrees& degrees :
       {ParallelDegrees{}, ParallelDegrees{.tp = 2, .dp = 2, .ep = 4, .etp = 1}}) {
    const test::Trained needed = trained(dropless, degrees), all = trained(roomy, degrees);
    check_same(needed, all);
    CHECK(needed.reports.back().peak_bytes < all.reports.back().peak_bytes);
  }
}

TEST_CASE("a state of folded experts is read in every other layout") {
  const ModelSpec model = divisible_mixture();
  const test::Trained wanted = trained_slowly(run_of(model, layout_of(model, {}, 8)));
  test::check_resumes(model, layout_of(model, {.tp = 4, .dp = 2, .ep = 2, .etp = 1}, 2),
                      {{.tp = 2, .dp = 4, .ep = 8, .etp = 1},
                       {.tp = 2, .dp = 1, .ep = 1, .etp = 1},
                       {.tp = 1, .pp = 2, .dp = 4, .ep = 2, .etp = 2}},
                      wanted);
}

}  // namespace tpsim
