// One rank routes each token. Two ranks with different GEMM algorithms for the router, and so
// different last bits, therefore cannot send one token to different experts.
#include <catch2/catch.hpp>

#include "core/model/model_json.h"
#include "lowering/trace/rank_trace.h"

namespace tpsim {
namespace {

ModelSpec mixture() {
  ModelSpec model = read_model(TPSIM_SOURCE_DIR "/tests/golden/mixtral-tiny/config.json").value();
  model.seq = 16;
  return model;
}

Plan plan_of(const ModelSpec& model, const ParallelDegrees& degrees) {
  Plan plan;
  plan.degrees = degrees;
  plan.sequence_parallel = degrees.tp > 1;
  plan.recompute = Recompute::kNone;
  plan.dtype = DType::kFloat32;
  plan.micro_batch = 2;
  plan.global_batch = 8;
  plan.stage_layers = default_stage_layers(model.layers, degrees.pp);
  return plan;
}

std::int64_t tokens_routed(const ModelSpec& model, const Plan& plan) {
  std::int64_t tokens = 0;
  for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
    for (const OpRecord& op : trace_rank(model, plan, {}, rank).program.ops) {
      if (op.key.kind == OpKind::kRouteForward) tokens += op.key.dims[0];
    }
  }
  return tokens;
}

}  // namespace

TEST_CASE("every token of a step is routed by exactly one rank") {
  const ModelSpec model = mixture();
  for (const ParallelDegrees& degrees :
       {ParallelDegrees{}, ParallelDegrees{.tp = 2}, ParallelDegrees{.tp = 2, .etp = 1},
        ParallelDegrees{.tp = 2, .dp = 2, .ep = 4, .etp = 1}, ParallelDegrees{.dp = 4, .ep = 2},
        ParallelDegrees{.dp = 4, .ep = 2, .etp = 2}, ParallelDegrees{.tp = 2, .pp = 2, .cp = 2},
        ParallelDegrees{.dp = 2, .cp = 2, .ep = 2}}) {
    const Plan plan = plan_of(model, degrees);
    INFO(short_name(plan));
    const Status legal = validate(plan, model);
    INFO((legal.ok() ? std::string() : legal.error().message));
    REQUIRE(legal.ok());
    CHECK(tokens_routed(model, plan) == plan.global_batch * model.seq * model.layers);
  }
}

TEST_CASE("tensor-parallel ranks that would all route the same tokens are refused") {
  const ModelSpec model = mixture();
  Plan plan = plan_of(model, {.tp = 2});
  plan.sequence_parallel = false;
  const Status refused = validate(plan, model);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("sequence parallelism") != std::string::npos);
}

}  // namespace tpsim
