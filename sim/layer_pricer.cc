#include "sim/layer_pricer.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "sim/low_precision.h"
#include "sim/memory_of_parts.h"
#include "sim/plain_kernels.h"
#include "sim/shard_groups.h"

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

// Weights kept in 8 bits are gathered in them; MXFP8's are in 16, of which both orientations
// follow.
std::int64_t gathered_weight_bytes(const CollectiveRecord& record, const Plan& plan) {
  if (!plan.fp8_param_gather || plan.precision == Precision::kMxFp8) return record.bytes;
  return record.bytes / size_of(plan.dtype);
}

// The plan whose data-parallel ranks are those of one shard group.
Plan shard_plan(const Scenario& scenario, Plan plan) {
  const std::int64_t shards = shard_ranks(scenario, plan);
  if (plan.zero > 0 && shards < data_ranks(plan)) {
    plan.degrees.dp = shards / plan.degrees.cp;
  }
  return plan;
}

// One trace stands for all data-parallel degrees where ZeRO leaves layers whole. Left out is the
// padding of a unit to their number: where gradients are kept apart, one fill of less than 64 dp
// elements.
Plan traced_plan(const LayerKey& key, const Plan& plan) {
  Plan traced = plan;
  traced.zero = key.zero;
  if (key.degrees.dp == 0) traced.degrees.dp = 1;
  traced.degrees.ep = std::max<std::int64_t>(1, key.degrees.ep);
  return traced;
}

// What a launch takes the host, where each waits for its kernel.
Scenario with_blocking_launches(Scenario scenario) {
  if (!scenario.stack.parts.blocking_launches) return scenario;
  HostCost& host = scenario.stack.host;
  host.per_op += std::exchange(host.blocking_op, Seconds());
  host.per_collective += std::exchange(host.blocking_collective, Seconds());
  return scenario;
}

}  // namespace

HostDeviceTime launch(const Scenario& scenario, Seconds issue, Seconds run) {
  const bool host_waits =
      scenario.stack.parts.blocking_launches || !scenario.profile.device.asynchronous;
  return host_waits ? blocking_op_cost(issue, run) : op_cost(issue, run);
}

PhaseCost PhaseCost::then(const PhaseCost& first, const PhaseCost& second) {
  PhaseCost result = first;
  result.time = tpsim::then(first.time, second.time);
  result.work += second.work;
  result.by_source += second.by_source;
  result.memory = MemoryChange::then(first.memory, second.memory);
  return result;
}

PhaseCost PhaseCost::repeat(const PhaseCost& once, std::int64_t n) {
  PhaseCost result;
  result.time = tpsim::repeat(once.time, n);
  const auto times = static_cast<double>(n);
  result.work = times * once.work;
  result.by_source = times * once.by_source;
  result.memory = MemoryChange::repeat(once.memory, n);
  return result;
}

PriceLists::PriceLists(const Scenario& s)
    : scenario(with_blocking_launches(s)), ops(s.profile), collectives(s.profile, s.cluster) {}

LayerPricer::LayerPricer(const Scenario& scenario)
    : LayerPricer(std::make_shared<const PriceLists>(scenario)) {}

LayerPricer::LayerPricer(std::shared_ptr<const PriceLists> prices) : prices_(std::move(prices)) {}

double LayerPricer::stack_factor(const OpRecord& op) const {
  const StackSpec& stack = scenario().stack;
  if (is_flash(op.key.kind)) {
    return 1 / (stack.flash_speed * ops().attention_speed(stack.parts.attention));
  }
  const bool as_traced =
      op.key.kind == OpKind::kMatmul || op.label.part == ModelPart::kGradientAccumulation;
  return as_traced ? 1.0 : stack.eager_traffic * plain_kernel(op, stack).traffic;
}

Seconds LayerPricer::collective(const CollectiveRecord& record, const Plan& plan) const {
  if (record.kind == CollectiveKind::kReceive) return Seconds();
  const Bytes bytes(static_cast<double>(record.bytes));
  const GroupPlacement group =
      place_group(plan, record.group, node_size(scenario().cluster, gpu_count(plan)));
  const std::int64_t shards = shard_ranks(scenario(), plan);
  const bool in_shards = record.group == GroupKind::kData && shards < group.ranks;
  const GroupPlacement inner = in_shards ? shard_placement(group, shards) : group;
  const DataParallelSync sync = scenario().stack.parts.sync;
  const bool to_owners = sync == DataParallelSync::kOwners && moves_slices(record);
  Seconds time =
      sync == DataParallelSync::kSlices && moves_slices(record)
          ? collectives().price_by_owners(bytes, inner)
          : collectives().price(to_owners ? CollectiveKind::kBroadcast : record.kind, bytes, inner);
  // Shards of gradients are added up over the ranks that hold the same one.
  if (in_shards && record.kind != CollectiveKind::kAllGather) {
    time +=
        collectives().price(CollectiveKind::kAllReduce, (1 / static_cast<double>(shards)) * bytes,
                            replica_placement(group, shards));
  }
  return time;
}

// Equal keys take equal time.
OpPrice LayerPricer::op_price(const OpRecord& op) {
  const auto found = op_prices_.find(op.key);
  if (found != op_prices_.end()) return found->second;
  return op_prices_.emplace(op.key, ops().price(op)).first->second;
}

HostDeviceTime LayerPricer::price_op(const OpRecord& op, PhaseCost& phase) {
  const OpPrice price = op_price(op);
  const Seconds time = stack_factor(op) * price.time;
  phase.work[work_term(op)] += time;
  phase.by_source[price.source] += time;
  const std::int64_t launches = plain_kernel(op, scenario().stack).launches;
  const auto n = static_cast<double>(launches);
  return repeat(launch(scenario(), issue_time(), (1 / n) * time), launches);
}

HostDeviceTime LayerPricer::price_rounded(const std::vector<OpRecord>& ops, PhaseCost& phase) {
  HostDeviceTime time;
  for (const OpRecord& op : ops) time = then(time, price_op(op, phase));
  return time;
}

// A layer's launches that a graph replays cost the host nothing.
Seconds LayerPricer::issue_time() const {
  const bool is_replayed = scenario().stack.parts.cuda_graphs != CudaGraphs::kNone;
  return is_replayed ? Seconds() : scenario().stack.host.per_op;
}

// What of a tensor-parallel collective stays outside the products beside it. In backward a layer's
// input gradient is reduced while its weight gradient is computed, and its input gathered again
// while its input gradient is; products slow down meanwhile.
Seconds LayerPricer::exposed_tensor_collective(const CollectiveRecord& record, const Plan& plan,
                                               Seconds whole, Seconds beside) const {
  const StackSpec& stack = scenario().stack;
  Seconds hidden;
  if (stack.parts.tensor_overlap != TensorOverlap::kNone) hidden = std::min(whole, beside);
  Seconds left = whole - hidden;
  const bool in_pieces = stack.parts.tensor_overlap == TensorOverlap::kUserbuffers &&
                         record.group == GroupKind::kTensor && plan.sequence_parallel;
  if (in_pieces) left = (1 - stack.tensor_overlap) * left;
  return left + (stack.overlap_slowdown - 1) * hidden;
}

PhaseCost LayerPricer::price_phase(const LayerTrace& trace, Phase kind, const Plan& plan) {
  PhaseCost phase;
  Seconds product;  // the last one of a linear layer
  Seconds beside;   // ZeRO's collectives of layers, as far as they run beside compute
  RoundedOperands rounded(scenario(), plan);
  const auto [begin, end] = trace.span(kind);
  for (std::size_t i = begin; i < end; ++i) {
    const ProgramEvent& event = trace.program.events[i];
    if (event.kind == ProgramEvent::Kind::kOp) {
      const OpRecord& op = trace.program.ops[event.index];
      const HostDeviceTime time = price_rounded(rounded.ops_for(op), phase);
      if (is_linear_layer(op) || op.label.part == ModelPart::kHead) product = time.device;
      phase.time = then(phase.time, time);
    } else if (event.kind == ProgramEvent::Kind::kCollective) {
      const CollectiveRecord record = rounded.sent(trace.program.collectives[event.index]);
      const Seconds whole = collective(record, plan);
      if (runs_beside_layers(record)) {
        beside += whole;
        continue;
      }
      const bool beside_product = record.label.part == ModelPart::kColumnParallelBackward;
      const Seconds time =
          exposed_tensor_collective(record, plan, whole, beside_product ? product : Seconds());
      phase.work[work_term(record)] += time;
      phase.time = then(phase.time, launch(scenario(), scenario().stack.host.per_collective, time));
    }
  }
  // The next layer's weights are gathered, and the last one's gradients reduced, beside this one.
  const Seconds hidden = std::min(beside, phase.time.device);
  const Seconds seen = beside - hidden + (scenario().stack.overlap_slowdown - 1) * hidden;
  phase.work[StepTerm::kZeroCommunication] += seen;
  phase.time = then(phase.time, HostDeviceTime{Seconds(), seen, seen});
  return phase;
}

bool LayerPricer::runs_beside_layers(const CollectiveRecord& record) const {
  if (record.group != GroupKind::kData && record.group != GroupKind::kExpertData) return false;
  const TrainingOptions& training = scenario().stack.training;
  return record.kind == CollectiveKind::kAllGather ? training.overlap_parameter_gather
                                                   : training.overlap_gradient_reduction;
}

void LayerPricer::add_recomputed(PhaseCost& backward, const std::vector<OpRecord>& ops,
                                 const Plan& plan) {
  RoundedOperands rounded(scenario(), plan);
  for (const OpRecord& op : ops) {
    backward.time = then(price_rounded(rounded.ops_for(op), backward), backward.time);
  }
}

// The tensor group gathers its logits, and every rank takes the loss of all of them.
void LayerPricer::add_gathered_logits(LayerCost& head, const LayerTrace& trace,
                                      const Plan& plan) const {
  if (scenario().stack.parts.loss_head != LossHead::kGathered || plan.degrees.tp == 1) return;
  const CollectiveRecord gather{.kind = CollectiveKind::kAllGather,
                                .group = GroupKind::kTensor,
                                .bytes = plan.degrees.tp * logits_of(trace) * size_of(plan.dtype),
                                .label = {ModelPart::kLoss, "head.gather"}};
  const Seconds time = collective(gather, plan);
  head.forward.work[StepTerm::kTensorCommunication] += time;
  head.forward.time =
      then(head.forward.time, launch(scenario(), scenario().stack.host.per_collective, time));
  const auto others = static_cast<double>(plan.degrees.tp - 1);
  for (PhaseCost* phase : {&head.forward, &head.backward}) {
    const Seconds more = others * phase->work[StepTerm::kElementwise];
    phase->work[StepTerm::kElementwise] += more;
    phase->by_source[PriceSource::kModel] += more;
    phase->time = then(phase->time, HostDeviceTime{Seconds(), more, more});
  }
}

LayerCost LayerPricer::price_layer(LayerKind kind, const LayerTrace& trace,
                                   const LayerMemory& memory, const Plan& plan) {
  LayerCost cost{price_phase(trace, Phase::kForward, plan),
                 price_phase(trace, Phase::kBackward, plan),
                 price_phase(trace, Phase::kAccumulate, plan)};
  cost.forward.memory = memory.forward;
  cost.backward.memory = memory.backward;
  cost.accumulate.memory = memory.accumulate;
  if (kind == LayerKind::kHead) add_gathered_logits(cost, trace, plan);
  if (kind != LayerKind::kBlock) return cost;
  if (plan.recompute == Recompute::kOps) {
    add_recomputed(cost.backward, recomputed_ops(trace), plan);
  }
  if (plan.recompute == Recompute::kSelective && plan.attention == AttentionKind::kFlash) {
    add_recomputed(cost.backward, attention_core_ops(trace), plan);
  }
  if (scenario().stack.parts.cuda_graphs != CudaGraphs::kNone) return cost;
  const HostCost& host = scenario().stack.host;
  const auto with_host = [](PhaseCost phase, Seconds time) {
    phase.time = then(HostDeviceTime{time, Seconds(), time}, phase.time);
    return phase;
  };
  const bool again = plan.recompute == Recompute::kFull;
  cost.forward = with_host(cost.forward, host.per_block_forward);
  cost.backward = with_host(cost.backward,
                            host.per_block_backward + (again ? host.per_block_forward : Seconds()));
  return cost;
}

// An offloaded optimizer's ops are bound by the link to the host and by the host's memory, which
// the ranks of a node share. Where the host is the device they are ops like any other.
Seconds LayerPricer::end_op_time(const OpRecord& op) {
  const ModelPart part = op.label.part;
  const bool copies = part == ModelPart::kGradientsToHost || part == ModelPart::kWeightsToDevice;
  const bool offloaded = copies || part == ModelPart::kHostOptimizer;
  if (host_is_device(scenario()) || !offloaded) {
    return plain_kernel(op, scenario().stack).traffic * op_price(op).time;
  }
  const HostSpec& host = scenario().cluster.host;
  const Bytes bytes(op.bytes);
  if (copies) return 0.5 * bytes / (host.link_efficiency * host.link);  // read here, written there
  const auto sharers = static_cast<double>(host_size(scenario().cluster));
  return sharers * bytes / (host.memory_efficiency * host.memory_bandwidth);
}

// Owners broadcast one tensor after the other, each around the whole ring.
Seconds LayerPricer::gather_by_tensor(CollectiveRecord record, const StepEndTrace& trace,
                                      const Plan& plan) const {
  const std::int64_t pieces = std::max<std::int64_t>(1, trace.tensors / trace.units);
  record.bytes /= pieces;
  return static_cast<double>(pieces) * collective(record, plan);
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
        CollectiveRecord record = trace.program.collectives[event.index];
        if (record.label.part == ModelPart::kParameterGather) {
          record.bytes = gathered_weight_bytes(record, plan);
        }
        if (record.group == GroupKind::kModel || record.group == GroupKind::kWorld) continue;
        const bool by_tensor =
            scenario().stack.parts.sync == DataParallelSync::kOwners && gathers_weights(record);
        const Seconds time =
            by_tensor ? gather_by_tensor(record, trace, plan) : collective(record, plan);
        end[end_part(record.label)] += issued_and_run(scenario(), host.per_collective, time);
      }
    }
  };
  price(trace.clear, trace.end);
  return end;
}

LayerPricer::Layer& LayerPricer::traced_layer(LayerKind kind, const Plan& plan,
                                              std::int64_t block) {
  const auto [place, is_new] = layers_.try_emplace(layer_key(kind, plan, block));
  Layer& layer = place->second;
  if (!is_new && (layer.cost || layer.trace)) return layer;
  layer.trace = std::make_unique<LayerTrace>(trace_layers(
      kind, with_block_kind(scenario().model, block),
      shard_plan(scenario(), traced_plan(place->first, plan)), scenario().stack.training));
  unpriced_.push_back(&layer);
  const LayerTrace& trace = *layer.trace;
  const auto memory = [&](Phase phase) {
    const auto [begin, end] = trace.span(phase);
    return memory_change(trace.program, begin, end, scenario().stack.memory.allocation_granularity);
  };
  layer.memory = {memory(Phase::kForward), memory(Phase::kBackward), memory(Phase::kAccumulate)};
  add_memory_of_parts(layer.memory, kind, trace, plan, scenario());
  if (kind == LayerKind::kBlock && plan.recompute == Recompute::kOps) {
    keep_half_of_products(layer.memory, layer_memory(kind, with_whole_recompute(plan, true), block),
                          trace);
  }
  return layer;
}

const LayerMemory& LayerPricer::layer_memory(LayerKind kind, const Plan& plan, std::int64_t block) {
  const auto found = layers_.find(layer_key(kind, plan, block));
  return found != layers_.end() ? found->second.memory : traced_layer(kind, plan, block).memory;
}

const LayerCost& LayerPricer::layer(LayerKind kind, const Plan& plan, std::int64_t block) {
  Layer& layer = traced_layer(kind, plan, block);
  if (!layer.cost) {
    layer.cost = price_layer(kind, *layer.trace, layer.memory, plan);
    layer.trace.reset();
  }
  return *layer.cost;
}

void LayerPricer::drop_traces() {
  for (Layer* layer : unpriced_) layer->trace.reset();
  unpriced_.clear();
}

const FixedCost& LayerPricer::fixed(LayerKind kind, const Plan& plan, std::int64_t block) {
  const auto [place, is_new] = fixed_.try_emplace(fixed_key(kind, plan, block));
  if (!is_new) return place->second;
  const StepEndTrace trace =
      trace_step_end(kind, with_block_kind(scenario().model, block), shard_plan(scenario(), plan),
                     scenario().stack.training);
  const Bytes granularity = scenario().stack.memory.allocation_granularity;
  FixedCost& fixed = place->second;
  fixed.held = memory_change(trace.program, 0, trace.clear, granularity).left;
  fixed.update = memory_change(trace.program, trace.reduce, trace.end, granularity).highest;
  fixed.end = price_end(trace, plan);
  if (kind == LayerKind::kBlock) add_weight_copies(fixed, plan);
  fixed.host = host_bytes(trace.program);
  if (host_is_device(scenario())) {  // one memory
    fixed.held[static_cast<std::size_t>(MemoryCategory::kOptimizer)] += fixed.host.value();
    fixed.host = Bytes();
  }
  return fixed;
}

const TransferCost& LayerPricer::transfer(const Plan& plan) {
  const LayerKey key = transfer_key(plan);
  const auto [place, is_new] = transfers_.try_emplace(key);
  if (!is_new) return place->second;
  LayerKey traced = key;  // what is sent does not depend on where it goes
  traced.degrees.pp = traced.degrees.dp = traced.virtual_stages = 0;
  traced.rank_order = {};
  const auto [trace, traced_now] = transfer_traces_.try_emplace(traced);
  if (traced_now) {
    trace->second = trace_transfer(scenario().model, plan, scenario().stack.training);
  }
  return place->second = price_transfer(trace->second.program, plan);
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
