// Key/value heads shared by several tensor-parallel ranks: every layout trains like one rank.
#include <catch2/catch.hpp>

#include "core/plan/plan_settings.h"
#include "tests/reference_model/expert_training.h"

namespace tpsim {
namespace {

using test::check_same, test::layout_of, test::run_of, test::trained_on_cpu, test::trained_slowly;

ModelSpec with_few_heads(std::int64_t kv_heads, QkNorm norm) {
  ModelSpec model = test::mixture(32, 32);
  model.experts = {};
  model.seq = 16;
  model.attention.heads = 8;
  model.attention.kv_heads = kv_heads;
  model.attention.head_dim = 8;
  model.attention.qk_norm = norm;
  return model;
}

}  // namespace

TEST_CASE("ranks that share key heads train like one rank") {
  int layouts = 0;
  for (const auto& [kv_heads, norm] :
       {std::pair{std::int64_t{1}, QkNorm::kNone}, std::pair{std::int64_t{2}, QkNorm::kHead},
        std::pair{std::int64_t{2}, QkNorm::kNone}}) {
    ModelSpec model = with_few_heads(kv_heads, norm);
    model.attention.qkv_bias = kv_heads == 2 && norm == QkNorm::kNone;
    TrainingRun alone = run_of(model, layout_of(model, {}, 8));
    alone.steps = 2;
    const test::Trained wanted = trained_slowly(alone);
    for (const ParallelDegrees& degrees :
         {ParallelDegrees{.tp = 4}, ParallelDegrees{.tp = 4, .dp = 2},
          ParallelDegrees{.tp = 4, .cp = 2}, ParallelDegrees{.tp = 8},
          ParallelDegrees{.tp = 4, .pp = 2}}) {
      TrainingRun run = run_of(model, layout_of(model, degrees, 1));
      run.steps = alone.steps;
      run.plan.zero = degrees.dp > 1 ? 3 : 0;
      if (layouts % 2 == 0) run.plan.recompute = Recompute::kFull;
      if (layouts % 3 == 0) run.plan.sequence_parallel = false;
      INFO(short_name(run.plan) << ", " << kv_heads << " key heads");
      REQUIRE(validate(run.plan, model).ok());
      check_same(trained_on_cpu(run), wanted);
      ++layouts;
    }
  }
}

}  // namespace tpsim
