#include "sim/piece_costs.h"

#include <algorithm>
#include <string_view>

namespace tpsim {
namespace {

bool starts_with(const char* label, std::string_view prefix) {
  return std::string_view(label).substr(0, prefix.size()) == prefix;
}

WorkKind work_of(const OpRecord& op) {
  for (const char* core : {"attention.scores", "attention.values", "attention.softmax",
                           "attention.dropout", "attention.flash"}) {
    if (starts_with(op.label, core)) return WorkKind::kAttention;
  }
  return op.key.kind == OpKind::kMatmul ? WorkKind::kMatmul : WorkKind::kElementwise;
}

bool is_product(OpKind kind) {
  return kind == OpKind::kMatmul || kind == OpKind::kFlashForward || kind == OpKind::kFlashBackward;
}

// Which part of a step's end an op or collective belongs to.
Seconds& end_part(StepEndCost& end, const char* label) {
  if (starts_with(label, "clear_gradients")) return end.clear;
  if (starts_with(label, "sequence_parallel")) return end.partials;
  if (starts_with(label, "tied_embedding")) return end.tied;
  if (starts_with(label, "data.reduce")) return end.reduction;
  if (starts_with(label, "gradient_norm")) return end.norm;
  if (starts_with(label, "data.gather")) return end.gather;
  return end.optimizer;
}

QueueCost launch(const HostCost& host, Seconds issue, Seconds run) {
  return host.blocking_launches ? blocking_op_cost(issue, run) : op_cost(issue, run);
}

}  // namespace

PhaseCost PhaseCost::then(const PhaseCost& first, const PhaseCost& second) {
  PhaseCost result = first;
  result.queue = tpsim::then(first.queue, second.queue);
  for (std::size_t i = 0; i < result.work.size(); ++i) result.work[i] += second.work[i];
  for (std::size_t i = 0; i < result.by_source.size(); ++i) {
    result.by_source[i] += second.by_source[i];
  }
  result.memory = MemoryChange::then(first.memory, second.memory);
  return result;
}

PhaseCost PhaseCost::repeat(const PhaseCost& once, std::int64_t n) {
  PhaseCost result;
  PhaseCost power = once;
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) result = then(result, power);
    power = then(power, power);
  }
  return result;
}

StepEndCost& StepEndCost::operator+=(const StepEndCost& other) {
  clear += other.clear;
  partials += other.partials;
  tied += other.tied;
  reduction += other.reduction;
  norm += other.norm;
  optimizer += other.optimizer;
  gather += other.gather;
  return *this;
}

StepEndCost operator*(double n, const StepEndCost& once) {
  return {n * once.clear, n * once.partials,  n * once.tied,  n * once.reduction,
          n * once.norm,  n * once.optimizer, n * once.gather};
}

PieceCosts::PieceCosts(const Scenario& scenario)
    : scenario_(scenario),
      ops_(scenario.profile),
      collectives_(scenario.profile, scenario.cluster) {}

Seconds PieceCosts::price_collective(const CollectiveRecord& record, const Plan& plan) const {
  return collectives_.price(record.kind, Bytes(static_cast<double>(record.bytes)),
                            place_group(plan, record.group, scenario_.cluster.gpus_per_node));
}

QueueCost PieceCosts::price_op(const OpRecord& op, PhaseCost& phase) const {
  const OpPrice price = ops_.price(op);
  const bool as_traced = is_product(op.key.kind) || starts_with(op.label, "accumulate_gradients");
  const Seconds time = as_traced ? price.time : scenario_.stack.eager_traffic * price.time;
  phase.work[static_cast<std::size_t>(work_of(op))] += time;
  phase.by_source[static_cast<std::size_t>(price.source)] += time;
  return launch(scenario_.stack.host, scenario_.stack.host.per_op, time);
}

PhaseCost PieceCosts::price_phase(const PieceTrace& trace, std::size_t begin, std::size_t end,
                                  const Plan& plan) const {
  PhaseCost phase;
  for (std::size_t i = begin; i < end; ++i) {
    const ProgramEvent& event = trace.program.events[i];
    if (event.kind == ProgramEvent::Kind::kOp) {
      phase.queue = then(phase.queue, price_op(trace.program.ops[event.index], phase));
    } else if (event.kind == ProgramEvent::Kind::kCollective) {
      const CollectiveRecord& record = trace.program.collectives[event.index];
      const Seconds whole = price_collective(record, plan);
      const bool hides = record.group == GroupKind::kTensor && plan.sequence_parallel;
      const Seconds time = hides ? (1 - scenario_.stack.tensor_overlap) * whole : whole;
      const WorkKind kind = record.group == GroupKind::kTensor ? WorkKind::kTensorCommunication
                                                               : WorkKind::kZeroCommunication;
      phase.work[static_cast<std::size_t>(kind)] += time;
      const HostCost& host = scenario_.stack.host;
      phase.queue = then(phase.queue, launch(host, host.per_collective, time));
    }
  }
  phase.memory =
      memory_change(trace.program, begin, end, scenario_.stack.memory.allocation_granularity);
  return phase;
}

PieceCosts::LayerCost PieceCosts::price_layer(PieceKind kind, const PieceTrace& trace,
                                              const Plan& plan) const {
  LayerCost cost{price_phase(trace, trace.forward, trace.forward_end, plan),
                 price_phase(trace, trace.backward, trace.backward_end, plan),
                 price_phase(trace, trace.backward_end, trace.reduce, plan)};
  if (kind != PieceKind::kBlock) return cost;
  const HostCost& host = scenario_.stack.host;
  const auto with_host = [](PhaseCost phase, Seconds time) {
    phase.queue = then(QueueCost{time, Seconds(), time}, phase.queue);
    return phase;
  };
  const bool again = plan.recompute == Recompute::kFull;
  cost.forward = with_host(cost.forward, host.per_block_forward);
  cost.backward = with_host(cost.backward,
                            host.per_block_backward + (again ? host.per_block_forward : Seconds()));
  return cost;
}

StepEndCost PieceCosts::price_end(const PieceTrace& trace, const Plan& plan) const {
  StepEndCost end;
  const HostCost& host = scenario_.stack.host;
  const auto price = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const ProgramEvent& event = trace.program.events[i];
      if (event.kind == ProgramEvent::Kind::kOp) {
        const OpRecord& op = trace.program.ops[event.index];
        end_part(end, op.label) += std::max(host.per_op, ops_.price(op).time);
      } else if (event.kind == ProgramEvent::Kind::kCollective) {
        const CollectiveRecord& record = trace.program.collectives[event.index];
        if (record.group == GroupKind::kModel || record.group == GroupKind::kWorld) continue;
        end_part(end, record.label) +=
            std::max(host.per_collective, price_collective(record, plan));
      }
    }
  };
  price(trace.clear, trace.forward);
  price(trace.reduce, trace.end);
  return end;
}

const PieceCost& PieceCosts::piece(PieceKind kind, const Plan& plan) {
  const ParallelDegrees& d = plan.degrees;
  const int zero = d.dp == 1 ? 0 : plan.zero;
  const bool around_layers = zero >= 2;
  const bool placed_by_pp = kind == PieceKind::kWordTable || plan.rank_order == RankOrder::kTpPpDp;
  const LayerKey layer_key{
      kind,           d.tp,           plan.micro_batch,         plan.sequence_parallel,
      plan.recompute, plan.attention, around_layers ? zero : 0, around_layers ? d.dp : 1,
      plan.dtype};
  const EndKey end_key{kind,      d.tp, d.dp, placed_by_pp ? d.pp : 1, zero, plan.sequence_parallel,
                       plan.dtype};
  const auto key = std::pair(layer_key, end_key);
  const auto found = pieces_.find(key);
  if (found != pieces_.end()) return found->second;

  const auto layer = layers_.find(layer_key);
  const auto end = ends_.find(end_key);
  if (layer == layers_.end() || end == ends_.end()) {
    const PieceTrace trace = trace_piece(kind, scenario_.model, plan, scenario_.stack.training);
    if (layer == layers_.end()) layers_[layer_key] = price_layer(kind, trace, plan);
    if (end == ends_.end()) {
      const MemoryChange allocated = memory_change(trace.program, trace.allocate, trace.clear,
                                                   scenario_.stack.memory.allocation_granularity);
      const MemoryChange updated = memory_change(trace.program, trace.reduce, trace.end,
                                                 scenario_.stack.memory.allocation_granularity);
      ends_[end_key] = {allocated.left, updated.highest, price_end(trace, plan)};
    }
  }
  const LayerCost& l = layers_[layer_key];
  const EndCost& e = ends_[end_key];
  return pieces_[key] = PieceCost{l.forward, l.backward, l.accumulate, e.fixed, e.update, e.end};
}

const TransferCost& PieceCosts::transfer(const Plan& plan) {
  const ParallelDegrees& d = plan.degrees;
  const auto key = std::tuple(d.tp, d.pp, d.dp, plan.micro_batch, plan.sequence_parallel);
  const auto found = transfers_.find(key);
  if (found != transfers_.end()) return found->second;

  TransferCost cost;
  const TransferTrace trace = trace_transfer(scenario_.model, plan, scenario_.stack.training);
  const GroupPlacement placement =
      place_group(plan, GroupKind::kPipeline, scenario_.cluster.gpus_per_node);
  for (const CollectiveRecord& record : trace.program.collectives) {
    const Bytes bytes(static_cast<double>(record.bytes));
    if (record.kind == CollectiveKind::kSend) {
      cost.wire +=
          collectives_.price_point_to_point(bytes, placement.nodes > 1, placement.groups_per_node);
    } else if (record.kind == CollectiveKind::kAllGather) {
      cost.gather += price_collective(record, plan);
    }
  }
  cost.bytes = static_cast<double>(trace.program.allocations.front().bytes);
  return transfers_[key] = cost;
}

Seconds PieceCosts::global_norm(const Plan& plan) {
  if (!scenario_.stack.training.clip_gradients) return Seconds();
  const GroupPlacement placement =
      place_group(plan, GroupKind::kWorld, scenario_.cluster.gpus_per_node);
  return collectives_.price(CollectiveKind::kAllReduce, Bytes(4), placement);
}

}  // namespace tpsim
