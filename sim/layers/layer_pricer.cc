#include "sim/layers/layer_pricer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lowering/passes/recompute.h"
#include "lowering/passes/shard_groups.h"
#include "lowering/passes/step_habits.h"

namespace tpsim {
namespace {

bool host_is_device(const Scenario& scenario) { return !scenario.profile.device.asynchronous; }

// Returns the plan in which the data-parallel ranks are those of one shard group.
Plan shard_plan(const Scenario& scenario, Plan plan) {
  const std::int64_t shards = shard_ranks(scenario, plan);
  if (plan.zero > 0 && shards < data_ranks(plan)) plan.degrees.dp = shards / plan.degrees.cp;
  return plan;
}

// Returns the smallest data-parallel degree with which a stage has enough ranks for all experts.
std::int64_t least_replicas(const Plan& plan) {
  const std::int64_t of_experts = expert_tensor_ranks(plan) * plan.degrees.ep;
  return of_experts / std::gcd(of_experts, plan.degrees.tp * plan.degrees.cp);
}

// Returns the plan that is traced for a layer. Below ZeRO 2, one trace serves all data-parallel
// degrees, so the smallest degree is traced.
Plan traced_plan(const Scenario& scenario, const LayerKey& key, const Plan& plan) {
  Plan traced = plan;
  traced.recompute = traced_recompute(key.kind, plan.recompute, scenario.stack);
  traced.degrees.ep = key.kind == LayerKind::kBlock ? std::max<std::int64_t>(1, key.degrees.ep) : 1;
  traced.degrees.etp = key.degrees.etp;
  traced.zero = key.zero;
  if (key.zero == 0) {
    traced.degrees.dp = least_replicas(traced);
    traced.rank_order = {};
  }
  return traced;
}

// Decides about whole gradients with the original plan, because the plan of a shard group has
// another number of micro-batches.
TrainingOptions traced_options(const Scenario& scenario, const Plan& plan) {
  TrainingOptions options = scenario.stack.training;
  options.optimizer_kind = traced_row(options.optimizer_kind).kind;
  if (!holds_whole_gradients(plan, options)) options.gradient_sync = GradientSync::kEveryMicroBatch;
  return options;
}

// Drops all fields for placement, which do not change the trace, if the layer's ZeRO stage is 0.
LayerKey placeless(LayerKey key) {
  if (key.zero != 0) return key;
  key.node = key.world = key.placement = key.degrees.dp = key.degrees.pp = 0;
  key.rank_order = {};
  return key;
}

double whole_gradients(const LoweredLayer& layer) {
  double bytes = 0;
  for (const LoweredEvent& event : layer.phase(Phase::kBackward).events) {
    if (event.kind != LoweredEvent::Kind::kAllocate) continue;
    const LoweredAllocation& made = layer.allocations[event.index];
    if (made.category == MemoryCategory::kGradients) bytes += static_cast<double>(made.bytes);
  }
  return bytes;
}

}  // namespace

HostDeviceTime launch(const Scenario& scenario, Seconds issue, Seconds run) {
  return host_waits(scenario) ? blocking_op_cost(issue, run) : op_cost(issue, run);
}

PriceLists::PriceLists(const Scenario& s, std::shared_ptr<const OpCostModel> shared_ops)
    : scenario(resolved(s)),
      ops(shared_ops ? std::move(shared_ops)
                     : std::make_shared<const OpCostModel>(
                           scenario.profile, fp32_matmul(scenario.stack), s.cluster.gpu_clock)),
      collectives(s.profile, s.cluster) {}

LayerPricer::LayerPricer(const Scenario& scenario)
    : LayerPricer(std::make_shared<const PriceLists>(scenario)) {}

LayerPricer::LayerPricer(std::shared_ptr<const PriceLists> prices, bool verifies)
    : prices_(std::move(prices)), verifies_(verifies) {
  const ModelSpec& model = scenario().model;
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    models_.push_back(with_block_kind(model, kind));
  }
}

// Without sharded weights, the nodes matter only through the placement of groups, and the expert
// degrees do not change a block without experts.
LayerKey LayerPricer::key_of(LayerKind kind, const Plan& plan, std::int64_t block) {
  LayerKey key = layer_key(kind, plan, scenario(), block);
  if (key.zero != 0) return key;
  const bool routes = kind == LayerKind::kBlock && has_experts(model_of(block));
  key = placed_key(key, plan, routes);
  if (kind == LayerKind::kBlock && has_experts(scenario().model) && !routes) {
    key.degrees.ep = 1;
    key.degrees.etp = 0;
  }
  return key;
}

LayerKey LayerPricer::model_key(LayerKey key, const Plan& plan) {
  return key.zero != 0 ? key : placed_key(key, plan, has_experts(scenario().model));
}

// Replaces the fields that placement depends on by the number of the placement.
LayerKey LayerPricer::placed_key(const LayerKey& key, const Plan& plan, bool has_experts) {
  LayerKey placed = placeless(key);
  placed.placement = placement_number(key, plan, has_experts);
  return placed;
}

// `key`: has the fields that placement depends on.
std::int64_t LayerPricer::placement_number(const LayerKey& key, const Plan& plan,
                                           bool has_experts) {
  LayerKey where{.block = has_experts ? 1 : 0, .degrees = key.degrees, .node = key.node};
  where.world = key.world;
  where.rank_order = key.rank_order;
  const auto [number, is_new] = placement_numbers_.try_emplace(where, 0);
  if (!is_new) return number->second;
  std::array<GroupPlacement, 4> groups = {placed(plan, GroupKind::kTensor),
                                          placed(plan, GroupKind::kContext)};
  if (has_experts) {
    groups[2] = placed(plan, GroupKind::kExpert);
    groups[3] = placed(plan, GroupKind::kExpertTensor);
  }
  const auto known = std::find(placements_.begin(), placements_.end(), groups);
  number->second = known - placements_.begin();
  if (known == placements_.end()) placements_.push_back(groups);
  return number->second;
}

LoweredLayer LayerPricer::layer_program(LayerKind kind, const Plan& plan, std::int64_t block,
                                        const PassChoice& choice) {
  const LayerKey key = key_of(kind, plan, block);
  const ModelSpec& model = model_of(block);
  LayerInputs inputs{scenario(), plan, model};
  if (kind == LayerKind::kBlock && plan.recompute == Recompute::kOps) {
    const LayerMemory& full = layer_memory(kind, with_whole_recompute(plan, true), block);
    inputs.checkpoint = full[TaskKind::kForward].left[memory_index::kActivations];
  }
  return lower(kind, sized_trace(key, plan, block), inputs, choice);
}

// Searches request all plans of a TP degree before the next degree.
const LayerTrace& LayerPricer::sized_trace(const LayerKey& key, const Plan& plan,
                                           std::int64_t block) {
  constexpr std::size_t kMostTraces = 400;  // about 150 KB each
  const bool is_new_degree = std::exchange(traced_tp_, plan.degrees.tp) != plan.degrees.tp;
  if (is_new_degree || sized_traces_.size() >= kMostTraces) sized_traces_.clear();
  const Plan traced = shard_plan(scenario(), traced_plan(scenario(), key, plan));
  LayerKey sizeless = placeless(key);
  sizeless.micro_batch = 0;
  sizeless.recompute = traced.recompute;
  return sized_traces_[sizeless].at(key.kind, model_of(block), traced,
                                    traced_options(scenario(), plan));
}

LoweredLayer LayerPricer::step_end_program(LayerKind kind, const Plan& plan, std::int64_t block,
                                           const PassChoice& choice) const {
  const ModelSpec& model = model_of(block);
  const StepEndTrace trace =
      trace_step_end(kind, model, shard_plan(scenario(), plan), traced_options(scenario(), plan));
  return lower_step_end(kind, {{scenario(), plan, model}, trace}, choice);
}

LayerPricer::Traced LayerPricer::trace_layer(LayerKind kind, const Plan& plan, std::int64_t block) {
  LoweredLayer layer = layer_program(kind, plan, block, {.is_verified = verifies_});
  const AllocationRounding rounding = allocation_rounding(scenario().stack);
  const auto memory = [&](std::initializer_list<Phase> phases) {
    return memory_change(layer, phases, rounding);
  };
  LayerMemory all;
  all[TaskKind::kForward] = memory({Phase::kForward});
  all[TaskKind::kBackward] = memory({Phase::kRecompute, Phase::kBackward});
  all[TaskKind::kWeightGradient] = memory({Phase::kWeightGradient});
  all.accumulate = memory({Phase::kAccumulate});
  all.gradients = whole_gradients(layer);
  return {std::make_shared<const LoweredLayer>(std::move(layer)), all};
}

// Programs are kept for one micro-batch size, because searches request all layouts of a size before
// the next size.
LayerPricer::Layer& LayerPricer::traced_layer(LayerKind kind, const Plan& plan,
                                              std::int64_t block) {
  const LayerKey placed = key_of(kind, plan, block);
  Layer& layer = layers_.place(placed).first;
  if (layer.cost || layer.program) return layer;
  if (std::exchange(traced_micro_batch_, plan.micro_batch) != plan.micro_batch) traced_.clear();
  const LayerKey key = placeless(placed);
  auto found = traced_.find(key);
  if (found == traced_.end()) {
    Traced traced = trace_layer(kind, plan, block);
    found = traced_.emplace(key, std::move(traced)).first;
  }
  static_cast<Traced&>(layer) = found->second;
  unpriced_.push_back(&layer);
  return layer;
}

const LayerMemory& LayerPricer::layer_memory(LayerKind kind, const Plan& plan, std::int64_t block) {
  const auto [layer, is_new] = layers_.place(key_of(kind, plan, block));
  return is_new ? traced_layer(kind, plan, block).memory : layer.memory;
}

const LayerCost& LayerPricer::layer(LayerKind kind, const Plan& plan, std::int64_t block) {
  Layer& layer = traced_layer(kind, plan, block);
  if (!layer.cost) {
    layer.cost = price_layer(*layer.program, plan);
    layer.program.reset();
  }
  return *layer.cost;
}

void LayerPricer::drop_programs() {
  for (Layer* layer : unpriced_) layer->program.reset();
  unpriced_.clear();
  traced_.clear();
}

// Counts the weights of one expert only, because the experts of a rank have equal shapes.
Bytes LayerPricer::distinct_weights(const FixedCost& fixed, const Plan& plan,
                                    std::int64_t block) const {
  const Bytes all(fixed.held[static_cast<std::size_t>(MemoryCategory::kWeights)]);
  const ModelSpec& model = model_of(block);
  if (!has_experts(model)) return all;
  const std::int64_t of_expert =
      mlp_matrices(model) * expert_width(model) * model.ffn_hidden / expert_tensor_ranks(plan);
  const std::int64_t alike = model.experts.count / plan.degrees.ep - 1;
  return all - Bytes(static_cast<double>(alike * of_expert * size_of(plan.dtype)));
}

// Returns the key of fixed(). The expert degrees change layers without experts only through shard
// groups, gathered weights, and whether data-parallel ranks hold different gradients.
LayerKey LayerPricer::end_key(LayerKind kind, const Plan& plan, std::int64_t block) const {
  LayerKey key = fixed_key(kind, plan, scenario(), block);
  const bool routes = kind == LayerKind::kBlock && has_experts(model_of(block));
  if (routes || (key.zero > 0 && has_shard_groups(scenario().stack)) ||
      gathered_degrees(scenario().stack, key.zero).expert)
    return key;
  key.degrees.ep = folds_experts(plan) ? 2 : 1;
  key.degrees.etp = 0;
  return key;
}

const FixedCost& LayerPricer::fixed(LayerKind kind, const Plan& plan, std::int64_t block) {
  const auto [fixed, is_new] = fixed_.place(end_key(kind, plan, block));
  if (!is_new) return fixed;
  const LoweredLayer layer = step_end_program(kind, plan, block, {.is_verified = verifies_});
  // Frameworks keep weights, gradients and optimizer state in few large buffers.
  const AllocationRounding rounding{scenario().stack.memory.allocation_granularity};
  fixed.held = memory_change(layer, {Phase::kAllocate}, rounding).left;
  fixed.update = memory_change(layer, {Phase::kUpdate}, rounding).highest;
  fixed.end = price_end(layer, plan);
  constexpr auto kWeights = static_cast<std::size_t>(MemoryCategory::kWeights);
  const double shards = fixed.held[kWeights];
  if (kind == LayerKind::kBlock) {
    fixed.stand_ins = distinct_weights(fixed, plan, block);
    add_weight_copies(fixed, plan);
  }
  // With ZeRO 3 and replicas, 16-bit weights are gathered from fp32 weights. Without replicas,
  // nothing is gathered, and 16-bit weights are persistent. Frozen weights have one copy.
  const bool has_master = plan.zero == 3 && has_replicas(plan) && plan.dtype != DType::kFloat32 &&
                          !offloads_optimizer(plan);
  const bool is_frozen =
      std::any_of(layer.allocations.begin(), layer.allocations.end(), holds_frozen_weights);
  if (has_master && !is_frozen && keeps_fp32_weights_alone(scenario().stack, plan.dtype)) {
    fixed.held[kWeights] -= shards;
  }
  fixed.host = host_bytes(layer);
  if (host_is_device(scenario())) {  // host and device memory are the same
    fixed.held[static_cast<std::size_t>(MemoryCategory::kOptimizer)] += fixed.host.value();
    fixed.host = Bytes();
  }
  return fixed;
}

const TransferCost& LayerPricer::transfer(const Plan& plan) {
  const LayerKey key = transfer_key(plan, scenario());
  const auto [transfer, is_new] = transfers_.place(key);
  if (!is_new) return transfer;
  LayerKey traced = key;  // the sent tensors do not depend on placement
  traced.degrees.pp = traced.degrees.dp = traced.virtual_stages = 0;
  traced.rank_order = {};
  const auto [trace, traced_now] = transfer_traces_.place(traced);
  if (traced_now) trace = trace_transfer(scenario().model, plan, scenario().stack.training);
  return transfer = price_transfer(trace.program, plan);
}

}  // namespace tpsim
