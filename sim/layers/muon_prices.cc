// Muon at the end of a step: the time that its iterations add to the traced AdamW ops.
//
// Five Newton-Schulz iterations orthogonalize the momentum of every matrix (Jordan et al. 2024;
// megatron/core/optimizer/emerging_optimizers.py). Each iteration has three fp32 GEMMs: the product
// X X' (r x r), its square, and the product of an r x r matrix with X. For an r x c matrix X with r
// <= c, they have 2 r r c, 2 r r r and 2 r r c FLOPs. A tensor-parallel rank orthogonalizes its
// shard (muon_tp_mode blockwise). Ranks that shard the optimizer state own whole matrices; an even
// share of the matrices is counted per rank. The traffic of AdamW's second moment, which Muon does
// not have, is counted for reading and writing X.
#include <algorithm>

#include "lowering/passes/quantization.h"
#include "lowering/passes/shard_groups.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {
namespace {

constexpr double kIterations = 5;

OpRecord fp32_product(std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto size = [](std::int64_t rows, std::int64_t cols) {
    return static_cast<double>(rows) * static_cast<double>(cols);
  };
  return {.key = {.kind = OpKind::kMatmul, .dtype = DType::kFloat32, .dims = {1, m, n, k}},
          .flops = 2 * size(m, n) * static_cast<double>(k),
          .bytes = sizeof(float) * (size(m, k) + size(k, n) + size(m, n)),
          .label = {ModelPart::kOptimizer, "optimizer.newton_schulz"}};
}

}  // namespace

void LayerPricer::add_orthogonalization(FixedCost& fixed, const Plan& plan, std::int64_t block) {
  if (scenario().stack.parts.optimizer_kind != OptimizerKind::kMuon) return;
  const bool shares = plan.zero > 0;
  const auto owners = [&](const OpRecord& op) {
    if (!shares) return 1.0;
    return static_cast<double>(op.label.part == ModelPart::kExperts
                                   ? expert_data_ranks(plan)
                                   : shard_ranks(scenario(), plan));
  };
  Seconds run, issue;
  const LoweredLayer traced = layer_program_after(0, LayerKind::kBlock, plan, block);
  for_each_op(traced, LayerPhase::kForward, [&](const LoweredOp& op) {
    if (op.key.kind != OpKind::kMatmul || !is_linear_layer(op)) return;
    const std::int64_t rows = std::min(op.key.dims[2], op.key.dims[3]);
    const std::int64_t cols = std::max(op.key.dims[2], op.key.dims[3]);
    const double matrices = static_cast<double>(op.key.dims[0]) / owners(op);
    const Seconds iteration = op_price(fp32_product(rows, rows, cols)).time +
                              op_price(fp32_product(rows, rows, rows)).time +
                              op_price(fp32_product(rows, cols, rows)).time;
    run += matrices * kIterations * iteration;
    issue += matrices * kIterations * 3 * scenario().stack.host.per_op;
  });
  fixed.end[StepEndPart::kOptimizer] +=
      scenario().profile.device.asynchronous ? std::max(issue, run) : issue + run;
}

}  // namespace tpsim
