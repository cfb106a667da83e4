#include "sim/layers/layer_pricer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "reference_model/layers/rotary_table.h"
#include "sim/layers/expert_prices.h"
#include "sim/layers/low_precision.h"
#include "sim/layers/memory_of_parts.h"
#include "sim/layers/plain_kernels.h"
#include "sim/layers/recomputed_ops.h"
#include "sim/layers/shard_groups.h"

namespace tpsim {
namespace {

bool host_is_device(const Scenario& scenario) { return !scenario.profile.device.asynchronous; }

// In a row of ops that the host issues ahead, the slower of the two queues counts.
Seconds issued_and_run(const Scenario& scenario, Seconds issue, Seconds run) {
  return !scenario.profile.device.asynchronous ? issue + run : std::max(issue, run);
}

bool gathers_weights(const CollectiveRecord& record) {
  return record.label.part == ModelPart::kParameterGather;
}

bool moves_slices(const CollectiveRecord& record) {
  return record.label.part == ModelPart::kDataParallelReduction || gathers_weights(record);
}

// Two moments in 16 bits, read and written, are eight bytes fewer a weight.
double moments_traffic(const OpRecord& op, const StackSpec& stack) {
  if (op.key.kind != OpKind::kAdamW || stack.parts.optimizer_dtype == DType::kFloat32) return 1;
  return 1 - 8 * static_cast<double>(op.key.dims[0]) / op.bytes;
}

// The plan whose data-parallel ranks are those of one shard group.
Plan shard_plan(const Scenario& scenario, Plan plan) {
  const std::int64_t shards = shard_ranks(scenario, plan);
  if (plan.zero > 0 && shards < data_ranks(plan)) plan.degrees.dp = shards / plan.degrees.cp;
  return plan;
}

// The least data-parallel degree whose ranks hold all experts.
std::int64_t least_replicas(const Plan& plan) {
  const std::int64_t of_experts = expert_tensor_ranks(plan) * plan.degrees.ep;
  return of_experts / std::gcd(of_experts, plan.degrees.tp * plan.degrees.cp);
}

// One trace stands for all data-parallel degrees where ZeRO leaves layers whole. Left out is the
// padding of a unit to their number: where gradients are kept apart, one fill of less than 64 dp
// elements. Embeddings and head are never recomputed.
Plan traced_plan(const Scenario& scenario, const LayerKey& key, const Plan& plan) {
  Plan traced = plan;
  const bool attends_once =
      plan.recompute == Recompute::kSelective && !recomputes_core_attention(scenario.stack.parts);
  if (attends_once || key.kind != LayerKind::kBlock) traced.recompute = Recompute::kNone;
  traced.degrees.ep = std::max<std::int64_t>(1, key.degrees.ep);
  traced.degrees.etp = key.degrees.etp;
  traced.zero = key.zero;
  if (key.zero == 0) {
    traced.degrees.dp = least_replicas(traced);
    traced.rank_order = {};
  }
  return traced;
}

// A shard group's plan has other micro-batches.
TrainingOptions traced_options(const Scenario& scenario, const Plan& plan) {
  TrainingOptions options = scenario.stack.training;
  if (!holds_whole_gradients(plan, options)) options.gradient_sync = GradientSync::kEveryMicroBatch;
  return options;
}

// What a launch takes the host, where each waits for its kernel.
Scenario with_blocking_launches(Scenario scenario) {
  if (!scenario.stack.parts.blocking_launches) return scenario;
  HostCost& host = scenario.stack.host;
  host.per_op += std::exchange(host.blocking_op, Seconds());
  host.per_collective += std::exchange(host.blocking_collective, Seconds());
  return scenario;
}

// A fused rotary kernel that takes no scale leaves the model's scaled cosines to plain ops.
Scenario with_rotary_kernel(Scenario scenario) {
  RotaryKernel& rotary = scenario.stack.parts.rotary;
  if (rotary != RotaryKernel::kFusedUnscaled) return scenario;
  const bool turns = scenario.model.attention.position == PositionKind::kRotary;
  const bool scaled = turns && rotary_table(scenario.model).magnitude != 1;
  rotary = scaled ? RotaryKernel::kTorch : RotaryKernel::kFused;
  return scenario;
}

// Whose GPUs run at the clocks of their site.
Scenario at_site_clock(Scenario scenario) {
  scenario.profile.model.sustained_clock =
      std::min(1.0, scenario.cluster.gpu_clock * scenario.profile.model.sustained_clock);
  scenario.profile.model.narrow_sustained_clock =
      std::min(1.0, scenario.cluster.gpu_clock * scenario.profile.model.narrow_sustained_clock);
  return scenario;
}

// Without what only places groups of replicas: a layer that works around no shards has none.
LayerKey without_replicas(LayerKey key) {
  if (key.zero != 0) return key;
  key.degrees.dp = key.degrees.pp = 0;
  key.rank_order = {};
  return key;
}

// Without what only places groups: a trace that works around no shards depends on none of them.
LayerKey placeless(LayerKey key) {
  if (key.zero == 0) key.node = key.world = 0;
  return without_replicas(key);
}

}  // namespace

HostDeviceTime launch(const Scenario& scenario, Seconds issue, Seconds run) {
  const bool host_waits =
      scenario.stack.parts.blocking_launches || !scenario.profile.device.asynchronous;
  return host_waits ? blocking_op_cost(issue, run) : op_cost(issue, run);
}

PriceLists::PriceLists(const Scenario& s)
    : scenario(at_site_clock(with_rotary_kernel(with_blocking_launches(s)))),
      ops(scenario.profile),
      collectives(s.profile, s.cluster) {}

LayerPricer::LayerPricer(const Scenario& scenario)
    : LayerPricer(std::make_shared<const PriceLists>(scenario)) {}

LayerPricer::LayerPricer(std::shared_ptr<const PriceLists> prices) : prices_(std::move(prices)) {
  const ModelSpec& model = scenario().model;
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    lacks_experts_.push_back(has_experts(model) && !has_experts(with_block_kind(model, kind)));
  }
}

// Blocks without experts are the same wherever those of other blocks lie.
LayerKey LayerPricer::key_of(LayerKind kind, const Plan& plan, std::int64_t block) const {
  LayerKey key = layer_key(kind, plan, scenario(), block);
  const bool shares = kind == LayerKind::kBlock && lacks_experts_[static_cast<std::size_t>(block)];
  if (!shares || key.zero != 0) return key;
  key.degrees.ep = 1;
  key.degrees.etp = 0;
  return without_replicas(key);
}

Seconds LayerPricer::collective(const CollectiveRecord& record, const Plan& plan) const {
  if (record.kind == CollectiveKind::kReceive) return Seconds();
  const Bytes bytes(static_cast<double>(record.bytes));
  const GroupPlacement group =
      place_group(plan, record.group, node_size(scenario().cluster, gpu_count(plan)));
  if (record.group == GroupKind::kExpert) {
    return dispatch_time(scenario(), collectives(), record, group);
  }
  const std::int64_t shards = shard_ranks(scenario(), plan);
  const bool in_shards = record.group == GroupKind::kData && shards < group.ranks;
  const GroupPlacement inner = in_shards ? shard_placement(group, shards) : group;
  const DataParallelSync sync = scenario().stack.parts.sync;
  const bool owned = sync == DataParallelSync::kOwners && moves_slices(record);
  if (owned && record.kind != CollectiveKind::kAllGather) {
    return collectives().price(CollectiveKind::kAllReduce, bytes, group);
  }
  Seconds time =
      sync == DataParallelSync::kSlices && moves_slices(record)
          ? collectives().price_owner_broadcasts(bytes, inner)
          : collectives().price(owned ? CollectiveKind::kBroadcast : record.kind, bytes, inner);
  // Shards of gradients are added up over the ranks that hold the same one.
  if (in_shards && record.kind != CollectiveKind::kAllGather) {
    time +=
        collectives().price(CollectiveKind::kAllReduce, (1 / static_cast<double>(shards)) * bytes,
                            replica_placement(group, shards));
  }
  return time;
}

// An offloaded optimizer's ops are bound by the link to the host and by the host's memory, which
// the ranks of a node share. Where the host is the device they are ops like any other.
Seconds LayerPricer::end_op_time(const OpRecord& op) {
  const ModelPart part = op.label.part;
  const bool copies = part == ModelPart::kGradientsToHost || part == ModelPart::kWeightsToDevice;
  const bool offloaded = copies || part == ModelPart::kHostOptimizer;
  if (host_is_device(scenario()) || !offloaded) {
    return plain_kernel(op, scenario().stack).traffic * moments_traffic(op, scenario().stack) *
           op_price(op).time;
  }
  const HostSpec& host = scenario().cluster.host;
  const Bytes bytes(op.bytes);
  if (copies) return 0.5 * bytes / (host.link_efficiency * host.link);  // read here, written there
  const auto sharers = static_cast<double>(host_size(scenario().cluster));
  return sharers * bytes / (host.memory_efficiency * host.memory_bandwidth);
}

// Owners broadcast one after the other, each around the whole ring what it owns of a stage: parts
// of a block, or several.
Seconds LayerPricer::owner_broadcast_time(const CollectiveRecord& record, const StepEndTrace& trace,
                                          const Plan& plan) const {
  const auto blocks =
      static_cast<double>(scenario().model.layers) / static_cast<double>(plan.degrees.pp);
  const double owners = static_cast<double>(shard_ranks(scenario(), plan)) / std::max(1.0, blocks);
  const double calls = std::min(owners, static_cast<double>(trace.tensors));
  return in_calls(record, calls, plan);
}

// Gradients that are copied into buckets are reduced a bucket at a time.
Seconds LayerPricer::reduce_in_buckets(const CollectiveRecord& record, const Plan& plan) const {
  const auto bucket =
      static_cast<double>(scenario().stack.memory.reduction_bucket * size_of(plan.gradient_dtype));
  return in_calls(record, static_cast<double>(record.bytes) / bucket, plan);
}

// Fewer than one where a call carries several records like this one.
Seconds LayerPricer::in_calls(CollectiveRecord record, double calls, const Plan& plan) const {
  if (record.bytes <= 0) return Seconds();
  record.bytes = std::llround(static_cast<double>(record.bytes) / calls);
  return calls * collective(record, plan);
}

Seconds LayerPricer::end_collective(const CollectiveRecord& record, const StepEndTrace& trace,
                                    const Plan& plan) const {
  const bool owned = scenario().stack.parts.sync == DataParallelSync::kOwners;
  if (owned && gathers_weights(record)) return owner_broadcast_time(record, trace, plan);
  const bool reduces = record.label.part == ModelPart::kDataParallelReduction;
  if (reduces && scenario().stack.memory.reduction_bucket > 0) {
    return reduce_in_buckets(record, plan);
  }
  return collective(record, plan);
}

StepEndCost LayerPricer::price_end(const StepEndTrace& trace, const Plan& plan) {
  StepEndCost end;
  const HostCost& host = scenario().stack.host;
  const auto price = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const ProgramEvent& event = trace.program.events[i];
      if (event.kind == ProgramEvent::Kind::kOp) {
        const OpRecord& op = trace.program.ops[event.index];
        const auto launches = static_cast<double>(plain_kernel(op, scenario().stack).launches);
        end[end_part(op.label)] +=
            issued_and_run(scenario(), launches * host.per_op, end_op_time(op));
      } else if (event.kind == ProgramEvent::Kind::kCollective) {
        const CollectiveRecord record = as_gathered(trace.program.collectives[event.index], plan);
        if (record.group == GroupKind::kModel || record.group == GroupKind::kWorld) continue;
        const Seconds time = end_collective(record, trace, plan);
        end[end_part(record.label)] += issued_and_run(scenario(), host.per_collective, time);
      }
    }
  };
  price(trace.clear, trace.end);
  return end;
}

namespace {

double whole_gradients(const LayerTrace& trace) {
  double bytes = 0;
  const auto [begin, end] = trace.span(Phase::kBackward);
  for (std::size_t i = begin; i < end; ++i) {
    const ProgramEvent& event = trace.program.events[i];
    if (event.kind != ProgramEvent::Kind::kAllocate) continue;
    const AllocationRecord& made = trace.program.allocations[event.index];
    if (made.category == MemoryCategory::kGradients) bytes += static_cast<double>(made.bytes);
  }
  return bytes;
}

}  // namespace

LayerTrace LayerPricer::traced_program(LayerKind kind, const LayerKey& key, const Plan& plan,
                                       std::int64_t block) const {
  LayerTrace trace = trace_layers(kind, with_block_kind(scenario().model, block),
                                  shard_plan(scenario(), traced_plan(scenario(), key, plan)),
                                  traced_options(scenario(), plan));
  grow_arrivals(trace.program, scenario().model,
                busiest_load(scenario().stack, scenario().model, plan));
  return trace;
}

LayerTrace LayerPricer::layer_program(LayerKind kind, const Plan& plan, std::int64_t block) const {
  return traced_program(kind, key_of(kind, plan, block), plan, block);
}

StepEndTrace LayerPricer::step_end_program(LayerKind kind, const Plan& plan,
                                           std::int64_t block) const {
  StepEndTrace trace =
      trace_step_end(kind, with_block_kind(scenario().model, block), shard_plan(scenario(), plan),
                     traced_options(scenario(), plan));
  narrow_moments(trace.program, scenario().stack);
  return trace;
}

LayerPricer::Traced LayerPricer::trace_layer(LayerKind kind, const LayerKey& key, const Plan& plan,
                                             std::int64_t block) {
  LayerTrace trace = traced_program(kind, key, plan, block);
  const auto memory = [&](Phase phase) {
    const auto [begin, end] = trace.span(phase);
    return memory_change(trace.program, begin, end, scenario().stack.memory.allocation_granularity);
  };
  LayerMemory all{memory(Phase::kForward), memory(Phase::kBackward), memory(Phase::kAccumulate),
                  whole_gradients(trace)};
  add_memory_of_parts(all, kind, trace, plan, scenario());
  if (kind == LayerKind::kBlock && plan.recompute == Recompute::kOps) {
    keep_half_of_products(all, layer_memory(kind, with_whole_recompute(plan, true), block), trace);
  }
  if (kind == LayerKind::kBlock && plan.recompute == Recompute::kSelective) {
    drop_modules(all, trace, scenario().stack.parts.recompute_modules);
  }
  return {std::make_shared<const LayerTrace>(std::move(trace)), all};
}

// Searches ask for all layouts of a micro-batch before those of the next.
LayerPricer::Layer& LayerPricer::traced_layer(LayerKind kind, const Plan& plan,
                                              std::int64_t block) {
  const LayerKey placed = key_of(kind, plan, block);
  Layer& layer = layers_.place(placed).first;
  if (layer.cost || layer.trace) return layer;
  if (std::exchange(traced_micro_batch_, plan.micro_batch) != plan.micro_batch) traced_.clear();
  const LayerKey key = placeless(placed);
  auto found = traced_.find(key);
  if (found == traced_.end()) {
    Traced traced = trace_layer(kind, placed, plan, block);
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
    layer.cost = price_layer(kind, *layer.trace, layer.memory, plan, block);
    layer.trace.reset();
  }
  return *layer.cost;
}

void LayerPricer::drop_traces() {
  for (Layer* layer : unpriced_) layer->trace.reset();
  unpriced_.clear();
  traced_.clear();
}

// A rank's experts are matrices of the same shapes.
Bytes LayerPricer::distinct_weights(const FixedCost& fixed, const Plan& plan,
                                    std::int64_t block) const {
  const Bytes all(fixed.held[static_cast<std::size_t>(MemoryCategory::kWeights)]);
  const ModelSpec model = with_block_kind(scenario().model, block);
  if (!has_experts(model)) return all;
  const std::int64_t of_expert =
      mlp_matrices(model) * expert_width(model) * model.ffn_hidden / expert_tensor_ranks(plan);
  const std::int64_t alike = model.experts.count / plan.degrees.ep - 1;
  return all - Bytes(static_cast<double>(alike * of_expert * size_of(plan.dtype)));
}

const FixedCost& LayerPricer::fixed(LayerKind kind, const Plan& plan, std::int64_t block) {
  const auto [fixed, is_new] = fixed_.place(fixed_key(kind, plan, scenario(), block));
  if (!is_new) return fixed;
  const StepEndTrace trace = step_end_program(kind, plan, block);
  const Bytes granularity = scenario().stack.memory.allocation_granularity;
  fixed.held = memory_change(trace.program, 0, trace.clear, granularity).left;
  fixed.update = memory_change(trace.program, trace.reduce, trace.end, granularity).highest;
  fixed.end = price_end(trace, plan);
  if (kind == LayerKind::kBlock) {
    fixed.stand_ins = distinct_weights(fixed, plan, block);
    add_weight_copies(fixed, plan);
  }
  fixed.host = host_bytes(trace.program);
  if (host_is_device(scenario())) {  // one memory
    fixed.held[static_cast<std::size_t>(MemoryCategory::kOptimizer)] += fixed.host.value();
    fixed.host = Bytes();
  }
  return fixed;
}

const TransferCost& LayerPricer::transfer(const Plan& plan) {
  const LayerKey key = transfer_key(plan);
  const auto [transfer, is_new] = transfers_.place(key);
  if (!is_new) return transfer;
  LayerKey traced = key;  // what is sent does not depend on where it goes
  traced.degrees.pp = traced.degrees.dp = traced.virtual_stages = 0;
  traced.rank_order = {};
  const auto [trace, traced_now] = transfer_traces_.place(traced);
  if (traced_now) trace = trace_transfer(scenario().model, plan, scenario().stack.training);
  return transfer = price_transfer(trace.program, plan);
}

TransferCost LayerPricer::price_transfer(const Program& program, const Plan& plan) const {
  TransferCost cost;
  const auto [leaving, senders] =
      place_transfers(plan, node_size(scenario().cluster, gpu_count(plan)));
  for (const CollectiveRecord& record : program.collectives) {
    const Bytes bytes(static_cast<double>(record.bytes));
    if (record.kind == CollectiveKind::kSend) {
      cost.wire += leaving * collectives().price_point_to_point(bytes, true, senders) +
                   (1 - leaving) * collectives().price_point_to_point(bytes, false, 0);
    } else if (record.kind == CollectiveKind::kAllGather) {
      cost.gather += collective(record, plan);
    }
  }
  cost.wire += scenario().stack.host.per_transfer;
  cost.bytes = static_cast<double>(program.allocations.front().bytes);
  return cost;
}

Seconds LayerPricer::global_norm(const Plan& plan) {
  if (!scenario().stack.training.clip_gradients) return Seconds();
  const GroupPlacement placement =
      place_group(plan, GroupKind::kWorld, node_size(scenario().cluster, gpu_count(plan)));
  return collectives().price(CollectiveKind::kAllReduce, Bytes(4), placement);
}

}  // namespace tpsim
