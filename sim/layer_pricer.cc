#include "sim/layer_pricer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include "sim/fp8.h"

namespace tpsim {
namespace {

bool host_waits(const Scenario& scenario) {
  return scenario.stack.host.blocking_launches || !scenario.profile.device.asynchronous;
}

// Host and device are one queue where the host waits for every op.
HostDeviceTime launch(const Scenario& scenario, Seconds issue, Seconds run) {
  return host_waits(scenario) ? blocking_op_cost(issue, run) : op_cost(issue, run);
}

bool host_is_device(const Scenario& scenario) { return !scenario.profile.device.asynchronous; }

// In a row of ops that the host issues ahead, the slower of the two queues counts.
Seconds issued_and_run(const Scenario& scenario, Seconds issue, Seconds run) {
  return !scenario.profile.device.asynchronous ? issue + run : std::max(issue, run);
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

}  // namespace

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

LayerKey layer_key(LayerKind kind, const Plan& plan, std::int64_t block) {
  const bool is_block = kind == LayerKind::kBlock;
  const bool cuts_layers = data_ranks(plan) > 1 && plan.zero >= 2;  // ZeRO works around every layer
  LayerKey key{
      .kind = kind, .block = block, .dtype = plan.dtype, .gradient_dtype = plan.gradient_dtype};
  key.degrees.tp = plan.degrees.tp;
  key.degrees.cp = plan.degrees.cp;
  key.micro_batch = plan.micro_batch;
  key.sequence_parallel = plan.sequence_parallel;
  if (is_block) {
    key.recompute = plan.recompute;
    key.attention = plan.attention;
  }
  if (is_block) key.degrees.ep = plan.degrees.ep;
  if (cuts_layers) key.zero = plan.zero;
  if (cuts_layers || key.degrees.ep > 1) {  // groups of replicas lie somewhere
    key.degrees.dp = plan.degrees.dp;
    key.rank_order = plan.rank_order;
    key.degrees.pp = plan.rank_order == RankOrder::kTpPpDp ? plan.degrees.pp : 0;
  }
  return key;
}

LayerKey fixed_key(LayerKind kind, const Plan& plan, std::int64_t block) {
  LayerKey key{
      .kind = kind, .block = block, .dtype = plan.dtype, .gradient_dtype = plan.gradient_dtype};
  key.degrees = {plan.degrees.tp, 0, plan.degrees.dp, plan.degrees.cp, plan.degrees.ep};
  key.zero = data_ranks(plan) == 1 ? 0 : plan.zero;
  key.sequence_parallel = plan.sequence_parallel;
  key.rank_order = plan.rank_order;
  key.offload = plan.offload;
  // Where groups lie: those of the tied table always, the others where pp is inside of dp.
  const bool placed_by_pp =
      kind == LayerKind::kWordEmbeddings || plan.rank_order == RankOrder::kTpPpDp;
  if (placed_by_pp) key.degrees.pp = plan.degrees.pp;
  return key;
}

LayerKey transfer_key(const Plan& plan) {
  LayerKey key{.degrees = plan.degrees, .micro_batch = plan.micro_batch};
  key.degrees.ep = 0;
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
            key.rank_order, key.offload, key.dtype, key.gradient_dtype);
  for (const std::int64_t n : {key.degrees.tp, key.degrees.pp, key.degrees.dp, key.degrees.cp,
                               key.degrees.ep, key.micro_batch, key.virtual_stages}) {
    hash = std::rotl(hash ^ static_cast<std::uint64_t>(n), 29) * 0x9E3779B97F4A7C15ULL;
  }
  return hash ^ hash >> 32;
}

PriceLists::PriceLists(const Scenario& s)
    : scenario(s), ops(s.profile), collectives(s.profile, s.cluster) {}

LayerPricer::LayerPricer(const Scenario& scenario)
    : LayerPricer(std::make_shared<const PriceLists>(scenario)) {}

LayerPricer::LayerPricer(std::shared_ptr<const PriceLists> prices) : prices_(std::move(prices)) {}

double LayerPricer::stack_factor(const OpRecord& op) const {
  const StackSpec& stack = scenario().stack;
  if (is_flash(op.key.kind)) return 1 / stack.flash_speed;
  const bool as_traced =
      op.key.kind == OpKind::kMatmul || op.label.part == ModelPart::kGradientAccumulation;
  return as_traced ? 1.0 : stack.eager_traffic;
}

Seconds LayerPricer::collective(const CollectiveRecord& record, const Plan& plan) const {
  if (record.kind == CollectiveKind::kReceive) return Seconds();
  return collectives().price(record.kind, Bytes(static_cast<double>(record.bytes)),
                             place_group(plan, record.group, scenario().cluster.gpus_per_node));
}

// Equal keys take equal time.
OpPrice LayerPricer::op_price(const OpRecord& op) {
  const auto found = op_prices_.find(op.key);
  if (found != op_prices_.end()) return found->second;
  return op_prices_.emplace(op.key, ops().price(op)).first->second;
}

HostDeviceTime LayerPricer::price_op(const OpRecord& op, PhaseCost& phase) {
  if (scenario().stack.fp8_products && is_linear_layer(op) && op.key.dtype != DType::kFloat8) {
    const std::optional<OpRecord> cast = cast_before(op);
    const HostDeviceTime before = cast ? price_op(*cast, phase) : HostDeviceTime{};
    return then(before, price_op(in_fp8(op), phase));
  }
  const OpPrice price = op_price(op);
  const Seconds time = stack_factor(op) * price.time;
  phase.work[work_term(op)] += time;
  phase.by_source[price.source] += time;
  return launch(scenario(), scenario().stack.host.per_op, time);
}

PhaseCost LayerPricer::price_phase(const LayerTrace& trace, std::size_t begin, std::size_t end,
                                   const Plan& plan) {
  PhaseCost phase;
  for (std::size_t i = begin; i < end; ++i) {
    const ProgramEvent& event = trace.program.events[i];
    if (event.kind == ProgramEvent::Kind::kOp) {
      phase.time = then(phase.time, price_op(trace.program.ops[event.index], phase));
    } else if (event.kind == ProgramEvent::Kind::kCollective) {
      const CollectiveRecord& record = trace.program.collectives[event.index];
      const Seconds whole = collective(record, plan);
      const bool hides = record.group == GroupKind::kTensor && plan.sequence_parallel;
      const Seconds time = hides ? (1 - scenario().stack.tensor_overlap) * whole : whole;
      phase.work[work_term(record)] += time;
      phase.time = then(phase.time, launch(scenario(), scenario().stack.host.per_collective, time));
    }
  }
  phase.memory =
      memory_change(trace.program, begin, end, scenario().stack.memory.allocation_granularity);
  return phase;
}

LayerCost LayerPricer::price_layer(LayerKind kind, const LayerTrace& trace, const Plan& plan) {
  LayerCost cost{price_phase(trace, trace.forward, trace.forward_end, plan),
                 price_phase(trace, trace.backward, trace.backward_end, plan),
                 price_phase(trace, trace.backward_end, trace.end, plan)};
  if (kind != LayerKind::kBlock) return cost;
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
  if (host_is_device(scenario()) || !offloaded) return op_price(op).time;
  const HostSpec& host = scenario().cluster.host;
  const Bytes bytes(op.bytes);
  if (copies) return 0.5 * bytes / (host.link_efficiency * host.link);  // read here, written there
  const auto sharers = static_cast<double>(scenario().cluster.gpus_per_node);
  return sharers * bytes / (host.memory_efficiency * host.memory_bandwidth);
}

StepEndCost LayerPricer::price_end(const StepEndTrace& trace, const Plan& plan) {
  StepEndCost end;
  const HostCost& host = scenario().stack.host;
  const auto price = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const ProgramEvent& event = trace.program.events[i];
      if (event.kind == ProgramEvent::Kind::kOp) {
        const OpRecord& op = trace.program.ops[event.index];
        end[end_part(op.label)] += issued_and_run(scenario(), host.per_op, end_op_time(op));
      } else if (event.kind == ProgramEvent::Kind::kCollective) {
        const CollectiveRecord& record = trace.program.collectives[event.index];
        if (record.group == GroupKind::kModel || record.group == GroupKind::kWorld) continue;
        end[end_part(record.label)] +=
            issued_and_run(scenario(), host.per_collective, collective(record, plan));
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
  layer.trace = std::make_unique<LayerTrace>(
      trace_layers(kind, with_block_kind(scenario().model, block), traced_plan(place->first, plan),
                   scenario().stack.training));
  unpriced_.push_back(&layer);
  const LayerTrace& trace = *layer.trace;
  const auto memory = [&](std::size_t begin, std::size_t end) {
    return memory_change(trace.program, begin, end, scenario().stack.memory.allocation_granularity);
  };
  layer.memory = {memory(trace.forward, trace.forward_end),
                  memory(trace.backward, trace.backward_end),
                  memory(trace.backward_end, trace.end)};
  return layer;
}

const LayerMemory& LayerPricer::layer_memory(LayerKind kind, const Plan& plan, std::int64_t block) {
  const auto found = layers_.find(layer_key(kind, plan, block));
  return found != layers_.end() ? found->second.memory : traced_layer(kind, plan, block).memory;
}

const LayerCost& LayerPricer::layer(LayerKind kind, const Plan& plan, std::int64_t block) {
  Layer& layer = traced_layer(kind, plan, block);
  if (!layer.cost) {
    layer.cost = price_layer(kind, *layer.trace, plan);
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
  const StepEndTrace trace = trace_step_end(kind, with_block_kind(scenario().model, block), plan,
                                            scenario().stack.training);
  const Bytes granularity = scenario().stack.memory.allocation_granularity;
  FixedCost& fixed = place->second;
  fixed.held = memory_change(trace.program, 0, trace.clear, granularity).left;
  fixed.update = memory_change(trace.program, trace.reduce, trace.end, granularity).highest;
  fixed.end = price_end(trace, plan);
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
  const auto [leaving, senders] = place_transfers(plan, scenario().cluster.gpus_per_node);
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
      place_group(plan, GroupKind::kWorld, scenario().cluster.gpus_per_node);
  return collectives().price(CollectiveKind::kAllReduce, Bytes(4), placement);
}

}  // namespace tpsim
