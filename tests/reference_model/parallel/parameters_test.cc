// Weights of ranks, on the meta device.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <tuple>

#include "core/model/model_json.h"
#include "core/plan/rank_layout.h"
#include "lowering/trace/meta_rank.h"
#include "lowering/trace/rank_trace.h"
#include "reference_model/step/rank_model.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

// Weights that this rank contributes to the model, without padding. Replicated tensors count on the
// first tensor-parallel rank.
std::int64_t own_parameters(const ModelSpec& model, const Plan& plan, std::int64_t rank,
                            bool counts_dense = true) {
  MetaRank meta(model, plan, {}, coordinates(plan, rank));
  RankModel rank_model(meta.context(), {});
  std::int64_t count = 0;
  for (const ParameterUnit& unit : rank_model.store().units()) {
    if (unit.repeats_first_stage() || (!counts_dense && !unit.holds_experts())) continue;
    for (const Parameter& p : unit.parameters()) {
      const bool is_whole =
          p.spec.sharding == Sharding::kReplicated || p.spec.sharding == Sharding::kPartial;
      const std::int64_t place = unit.holds_experts()
                                     ? group_position(plan, GroupKind::kExpertTensor, rank).index
                                     : meta.context().at.tp;
      if (is_whole && place != 0) continue;
      std::int64_t rows = p.spec.shape[0];
      if (p.spec.sharding == Sharding::kRows) {
        rows = std::clamp<std::int64_t>(p.spec.global_rows - place * rows, 0, rows);
      }
      count += rows * (p.spec.shape.elements() / p.spec.shape[0]);
    }
  }
  return count;
}

std::int64_t bytes_cleared(const Program& program) {
  double bytes = 0;
  for (const OpRecord& op : program.ops) {
    if (op.label.part == ModelPart::kZeroGrad) bytes += op.bytes;
  }
  return static_cast<std::int64_t>(bytes);
}

bool is_weight_gradient(const OpRecord& op) {
  const bool is_linear = op.label.part == ModelPart::kAttentionLinear ||
                         op.label.part == ModelPart::kMlpLinear ||
                         op.label.part == ModelPart::kHead;
  return is_linear && op.key.kind == OpKind::kMatmul && (op.key.variant & kTransposeA) != 0;
}

}  // namespace

TEST_CASE("weights over the ranks of one replica add up to the model in every layout") {
  for (const ModelSpec& model :
       {test::small_bloom(), test::small_llama(), test::small_gpt(), test::small_hybrid(),
        test::small_delta_net(), test::small_planned()}) {
    for (const std::int64_t tp : {1, 2, 4}) {
      if (!divides_by_tp(model, tp)) continue;
      for (const std::int64_t pp : {1, 2, 4, 8}) {
        Plan plan = test::plan_of(model, {tp, pp, 1, 1}, 8);
        plan.sequence_parallel = tp > 1;
        std::int64_t sum = 0;
        for (std::int64_t rank = 0; rank < tp * pp; ++rank) {
          sum += own_parameters(model, plan, rank);
        }
        INFO(model.name << " tp " << tp << " pp " << pp);
        CHECK(sum == parameter_count(model));
      }
    }
  }
}

TEST_CASE("experts over the ranks of an expert group add up to the model") {
  const ModelSpec model = test::small_mixture();
  for (const std::int64_t tp : {1, 2}) {
    for (const std::int64_t ep : {1, 2, 4}) {
      Plan plan = test::plan_of(model, {tp, 2, 4, 1, ep}, 8);
      plan.sequence_parallel = tp > 1;
      std::int64_t sum = 0;
      for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
        if (group_position(plan, GroupKind::kExpertData, rank).index != 0) continue;
        const bool first = group_position(plan, GroupKind::kExpert, rank).index == 0;
        sum += own_parameters(model, plan, rank, first);
      }
      INFO("tp " << tp << " ep " << ep);
      CHECK(sum == parameter_count(model));
    }
  }
}

// One block of each kind, and a sequence that is short enough to shard.
ModelSpec one_of_each(ModelSpec model) {
  std::vector<BlockShape> blocks;
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    blocks.push_back(block_of_kind(model, kind));
  }
  model.layers = block_kind_count(model);
  set_blocks(model, blocks);
  model.seq = 64;
  return model;
}

// Parameters that plans omit as too small to matter (check_trainable), and MTP layers, which no
// rank runs.
std::int64_t left_out(const ModelSpec& model) {
  ModelSpec executed = model;
  executed.ends.prediction_layers = 0;
  std::int64_t count = parameter_count(model) - parameter_count(executed);
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    if (block_of_kind(model, kind).experts.shared_gate) count += model.hidden;
  }
  return count;
}

TEST_CASE("weights of public models over the ranks of any layout add up to the model") {
  const std::filesystem::path folder =
      std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/core/model/configs";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".json") continue;
    const ModelSpec model = one_of_each(read_model(file.path()).value());
    for (const auto& [tp, ep, etp] : {std::tuple{1, 1, 1}, {2, 1, 2}, {2, 2, 1}, {1, 4, 1}}) {
      if (!divides_by_tp(model, tp) || !divides_by_etp(model, etp)) continue;
      if (!has_experts(model) && ep > 1) continue;
      Plan plan = test::plan_of(model, {tp, 1, 4, 1, ep, has_experts(model) ? etp : 0}, 8);
      plan.stage_layers = {model.layers};
      plan.sequence_parallel = tp > 1;
      const Status legal = validate(plan, model);
      if (!legal.ok()) FAIL(to_string(legal.error()));
      std::int64_t sum = 0;
      for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
        const RankCoordinates at = coordinates(plan, rank);
        // Counts experts on the first rank that holds them, and the other weights on one replica.
        const bool holds_first = group_position(plan, GroupKind::kExpertData, rank).index == 0;
        const std::int64_t all = own_parameters(model, plan, rank, true);
        const std::int64_t experts =
            has_experts(model) ? own_parameters(model, plan, rank, false) : 0;
        if (at.dp == 0) sum += all - experts;
        if (holds_first) sum += experts;
      }
      INFO(file.path().filename() << " tp " << tp << " ep " << ep << " etp " << etp);
      CHECK(sum == parameter_count(model) - left_out(model));
    }
  }
}

TEST_CASE("ZeRO shards cover a unit without overlap") {
  const ModelSpec model = test::small_bloom();
  Plan plan = test::plan_of(model, {2, 1, 4, 1}, 2);
  plan.zero = 1;
  for (std::int64_t dp = 0; dp < 4; ++dp) {
    MetaRank meta(model, plan, {}, {1, dp, 0});
    RankModel rank_model(meta.context(), {});
    for (const ParameterUnit& unit : rank_model.store().units()) {
      CHECK(rank_model.store().share_size(unit) * 4 == unit.size());
      CHECK(rank_model.store().share_begin(unit) == dp * rank_model.store().share_size(unit));
    }
  }
}

TEST_CASE("segments cover a unit in order and separate parameters with weight decay") {
  const ModelSpec model = test::small_bloom();
  const Plan plan = test::plan_of(model, {2, 1, 1, 1}, 2);
  MetaRank meta(model, plan, {}, {1, 0, 0});
  RankModel rank_model(meta.context(), {});
  for (const ParameterUnit& unit : rank_model.store().units()) {
    std::int64_t at = 0;
    for (const Segment& segment : unit.segments()) {
      CHECK(segment.begin == at);
      at = segment.end;
    }
    CHECK(at == unit.size());
    for (const Parameter& p : unit.parameters()) {
      for (const Segment& segment : unit.segments()) {
        if (p.offset >= segment.begin && p.offset < segment.end) {
          CHECK(segment.decay == p.is_matrix());
          CHECK(segment.counts_in_norm == (p.spec.sharding != Sharding::kReplicated));
        }
      }
    }
  }
}

TEST_CASE("gradients without a GEMM are cleared, and GEMMs overwrite once a step") {
  const ModelSpec model = test::small_bloom();
  Plan plan = test::plan_of(model, {1, 1, 1, 1}, 3);
  TrainingOptions options;
  const Program cleared = trace_rank(model, plan, options, 0).program;
  options.gradient_accumulation = GradientAccumulation::kOverwriting;
  const Program overwritten = trace_rank(model, plan, options, 0).program;
  CHECK(bytes_cleared(overwritten) < bytes_cleared(cleared) / 20);
  CHECK(bytes_cleared(overwritten) > 0);
  const auto products = [](const Program& program, bool adding) {
    return std::count_if(program.ops.begin(), program.ops.end(), [&](const OpRecord& op) {
      return is_weight_gradient(op) && ((op.key.variant & kAccumulate) != 0) == adding;
    });
  };
  CHECK(products(cleared, false) == 0);
  CHECK(products(overwritten, false) * 3 == products(cleared, true));
  CHECK(products(overwritten, true) == 2 * products(overwritten, false));
}

}  // namespace tpsim
