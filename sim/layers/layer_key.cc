#include "sim/layers/layer_key.h"

#include <bit>

#include "lowering/passes/quantization.h"
#include "lowering/passes/step_habits.h"
#include "reference_model/parallel/schedule.h"

namespace tpsim {
namespace {

// Adds what determines the placement of groups on nodes: the node size, and the total number of
// GPUs if they do not fill whole nodes. On nodes that differ, all degrees do.
void add_nodes(LayerKey& key, const Plan& plan, const ClusterSpec& cluster) {
  if (!cluster.unequal_nodes.empty()) {
    key.degrees = plan.degrees;
    key.rank_order = plan.rank_order;
  }
  const std::int64_t gpus = gpu_count(plan);
  key.node = node_size(cluster, gpus);
  if (gpus % key.node != 0) key.world = gpus;
}

}  // namespace

// Embedding and head do not use the low-precision recipe, so their keys leave it out.
LayerKey layer_key(LayerKind kind, const Plan& plan, const Scenario& scenario, std::int64_t block) {
  const bool is_block = kind == LayerKind::kBlock;
  const bool cuts_layers =
      has_replicas(plan) && plan.zero >= 2;  // with ZeRO 2 and 3 every layer has collectives
  LayerKey key{
      .kind = kind, .block = block, .dtype = plan.dtype, .gradient_dtype = plan.gradient_dtype};
  key.degrees.tp = plan.degrees.tp;
  key.degrees.cp = plan.degrees.cp;
  key.micro_batch = plan.micro_batch;
  key.sequence_parallel = plan.sequence_parallel;
  if (is_block) {
    key.recompute = plan.recompute;
    key.attention = plan.attention;
    key.precision = plan.precision;
    key.fp8_param_gather = plan.fp8_param_gather;
    key.degrees.ep = plan.degrees.ep;
    key.degrees.etp = plan.degrees.etp;
  }
  if (cuts_layers) key.zero = plan.zero;
  if (offloads_weights(plan)) key.offload = plan.offload;
  key.whole_gradients = holds_whole_gradients(plan, scenario.stack.training);
  key.splits_backward = splits_backward(plan.schedule);
  // The placement of data-parallel ranks matters.
  if (cuts_layers || (is_block && folds_experts(plan))) {
    key.degrees.dp = plan.degrees.dp;
    key.rank_order = plan.rank_order;
    key.degrees.pp = plan.rank_order == RankOrder::kTpPpDp ? plan.degrees.pp : 0;
  }
  const GatheredDegrees gathered = gathered_degrees(scenario.stack, key.zero);
  if (gathered.expert) key.degrees.ep = plan.degrees.ep;
  if (gathered.pipeline) key.degrees.pp = plan.degrees.pp;
  add_nodes(key, plan, scenario.cluster);
  return key;
}

LayerKey fixed_key(LayerKind kind, const Plan& plan, const Scenario& scenario, std::int64_t block) {
  LayerKey key{
      .kind = kind, .block = block, .dtype = plan.dtype, .gradient_dtype = plan.gradient_dtype};
  key.degrees = plan.degrees;
  key.degrees.pp = 0;
  key.zero = has_replicas(plan) ? plan.zero : 0;
  key.whole_gradients = holds_whole_gradients(plan, scenario.stack.training);
  key.sequence_parallel = plan.sequence_parallel;
  key.rank_order = plan.rank_order;
  key.offload = plan.offload;
  key.precision = plan.precision;
  key.fp8_param_gather = plan.fp8_param_gather;
  // pp changes the placement of the tied table's group, and of all groups if pp ranks are placed
  // before dp ranks. pp also changes the size of an owner's broadcast.
  // Owners of whole tensors share the blocks of a stage.
  const bool placed_by_pp = kind < LayerKind::kEmbedding || plan.rank_order == RankOrder::kTpPpDp ||
                            has_owners(scenario.stack, key.zero);
  if (placed_by_pp) key.degrees.pp = plan.degrees.pp;
  add_nodes(key, plan, scenario.cluster);
  return key;
}

// With delayed scaling, the ranks of a stage exchange scales after every chunk, which depends on dp
// and pp.
LayerKey chunk_key(const Plan& plan, const Scenario& scenario) {
  LayerKey key = layer_key(LayerKind::kBlock, plan, scenario);
  if (!exchanges_scales(scenario.stack, plan)) return key;
  key.degrees.dp = plan.degrees.dp;
  key.degrees.pp = plan.degrees.pp;
  key.rank_order = plan.rank_order;
  return key;
}

// All degrees count, because the total number of GPUs determines how many of a node are used.
LayerKey transfer_key(const Plan& plan, const Scenario& scenario) {
  LayerKey key{.degrees = plan.degrees, .micro_batch = plan.micro_batch};
  // Groups of experts decide where ranks run if nodes differ.
  if (scenario.cluster.unequal_nodes.empty()) key.degrees.ep = key.degrees.etp = 0;
  key.virtual_stages = plan.virtual_stages;
  key.sequence_parallel = plan.sequence_parallel;
  key.rank_order = plan.rank_order;
  key.dtype = plan.dtype;
  return key;
}

std::size_t LayerKeyHash::operator()(const LayerKey& key) const noexcept {
  const auto small = [](auto... values) {
    std::uint64_t packed = 0;
    ((packed = packed << 4 | static_cast<std::uint64_t>(values)), ...);
    return packed;
  };
  std::uint64_t hash =
      small(key.kind, key.block, key.zero, key.sequence_parallel, key.recompute, key.attention,
            key.rank_order, key.offload, key.dtype, key.gradient_dtype, key.precision,
            key.fp8_param_gather, key.whole_gradients, key.splits_backward);
  for (const std::int64_t n :
       {key.degrees.tp, key.degrees.pp, key.degrees.dp, key.degrees.cp, key.degrees.ep,
        key.degrees.etp, key.micro_batch, key.virtual_stages, key.node, key.world, key.placement}) {
    hash = std::rotl(hash ^ static_cast<std::uint64_t>(n), 29) * 0x9E3779B97F4A7C15ULL;
  }
  return hash ^ hash >> 32;
}

}  // namespace tpsim
