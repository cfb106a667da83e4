// Cost of a lowered layer for one micro-batch: prices its events in order.
#include <algorithm>

#include "costs/matmul_model.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

using Kind = LoweredEvent::Kind;

// The added unfused kernels are mostly elementwise, even where the fused kernel is a reduction.
double LayerPricer::time_factor(const LoweredOp& op) const {
  const double work = op.uncalibrated * op.repeats;
  if (is_flash(op.key.kind)) return work / ops().attention_speed(op.attention);
  return work * (1 + (op.traffic - 1) * ops().streaming_cost(op.key.kind));
}

OpPrice LayerPricer::op_price(const OpRecord& op) {
  const PricedOp priced{op.key, op.flops, op.bytes, is_grouped_product(op)};
  const auto found = op_prices_.find(priced);
  if (found != op_prices_.end()) return found->second;
  return op_prices_.emplace(priced, ops().price(op)).first->second;
}

OpPrice LayerPricer::kernel_price(const LoweredOp& op) {
  OpPrice price = op_price(op);
  price.time = time_factor(op) * price.time;
  // Kernels over few elements are bound by latency, so many launches take at least their latencies.
  // GEMMs of experts are launched side by side.
  if (op.traffic == 1 && op.launches > 1 && op.label.part != ModelPart::kExperts) {
    const auto others = static_cast<double>(op.launches - 1);
    price.time = std::max(price.time, others * scenario().profile.model.kernel_latency);
  }
  return price;
}

HostDeviceTime LayerPricer::price_op(const LoweredOp& op, PhaseCost& phase) {
  const OpPrice price = kernel_price(op);
  phase.work[work_term(op)] += price.time;
  phase.work[StepTerm::kImbalance] += (op.load - 1) * price.time;
  phase.by_source[price.source] += op.load * price.time;
  const Seconds each = (op.load / static_cast<double>(op.launches)) * price.time;
  return repeat(launch(scenario(), op.issue, each), op.launches);
}

Seconds LayerPricer::compute_beside(const LoweredLayer& layer,
                                    const LoweredCollective& collective) {
  Seconds time;
  for (std::uint32_t i = collective.beside.first; i < collective.beside.last; ++i) {
    const LoweredOp& op = layer.ops[i];
    const bool is_other =
        collective.overlap == Overlap::kAttentionPass && op.label.part != ModelPart::kAttentionCore;
    if (!is_other) time += op.load * kernel_price(op).time;
  }
  return collective.share * time;
}

// Returns the time for which the compute stream waits, and the slowdown of the overlapped compute.
Seconds LayerPricer::exposed_time(Seconds whole, Seconds hidden, double exposed) const {
  return exposed * (whole - hidden) + (scenario().stack.overlap_slowdown - 1) * hidden;
}

HostDeviceTime LayerPricer::price_collective(const LoweredLayer& layer,
                                             const LoweredCollective& record, const Plan& plan,
                                             PhaseCost& phase, OverlappedTimes& later) {
  const Seconds each = collective(record, plan);
  const Seconds whole = record.calls * each;
  if (record.overlap == Overlap::kPhase) {
    later.by_phase += whole;
    return {};
  }
  if (record.overlap == Overlap::kOtherMicroBatch) {
    later.by_other_micro_batch += record.load * whole;
    later.share = record.share;
    return {};
  }
  Seconds hidden;
  if (record.overlap != Overlap::kNone) {
    hidden = record.overlapped_calls * std::min(each, compute_beside(layer, record));
  }
  const Seconds time = exposed_time(whole, hidden, record.exposed);
  phase.work[work_term(record)] += time;
  phase.work[StepTerm::kImbalance] += (record.load - 1) * time;
  return launch(scenario(), record.issue, record.load * time);
}

Seconds LayerPricer::copy_time(const LoweredCopy& copy) const {
  const Seconds time = streaming_time(copy.moved);
  if (!copy.adds_latency) return time;
  return copy.kernels * scenario().profile.model.kernel_latency + time;
}

HostDeviceTime LayerPricer::price_copy(const LoweredCopy& copy, PhaseCost& phase) const {
  const Seconds time = copy_time(copy);
  phase.work[work_term_of_copy(copy.label)] += time;
  phase.by_source[PriceSource::kModel] += time;
  return launch(scenario(), copy.issue, time);
}

// Adds the exposed time of collectives that overlap with at most `share` of the phase's device
// time.
void LayerPricer::add_overlapped(PhaseCost& phase, StepTerm term, Seconds collectives,
                                 double share) const {
  const Seconds hidden = std::min(collectives, share * phase.time.device);
  const Seconds seen = exposed_time(collectives, hidden, 1);
  phase.work[term] += seen;
  phase.time = then(phase.time, HostDeviceTime{Seconds(), seen, seen});
}

PhaseCost LayerPricer::price_phase(const LoweredLayer& layer, Phase which, const Plan& plan) {
  PhaseCost phase;
  OverlappedTimes later;
  const LoweredPhase& lowered = layer.phase(which);
  const Seconds between = lowered.host_per_event;
  for (const LoweredEvent& event : lowered.events) {
    if (event.is_first) phase.time = then(phase.time, HostDeviceTime{between, Seconds(), between});
    switch (event.kind) {
      case Kind::kOp: phase.time = then(phase.time, price_op(layer.ops[event.index], phase)); break;
      case Kind::kCollective:
        phase.time = then(phase.time, price_collective(layer, layer.collectives[event.index], plan,
                                                       phase, later));
        break;
      case Kind::kCopy:
        phase.time = then(phase.time, price_copy(layer.copies[event.index], phase));
        break;
      case Kind::kHost: {
        const HostWork& work = layer.host[event.index];
        if (work.synchronizes) phase.time = then(phase.time, synchronization(work.latency));
        phase.time = then(phase.time, HostDeviceTime{work.busy, Seconds(), work.busy});
        break;
      }
      case Kind::kAllocate:
      case Kind::kFree: break;
    }
  }
  // The weight gather of the next layer and the gradient reduction of the previous layer overlap
  // with this layer.
  add_overlapped(phase, StepTerm::kZeroCommunication, later.by_phase, 1);
  add_overlapped(phase, StepTerm::kExpertCommunication, later.by_other_micro_batch, later.share);
  return phase;
}

LayerCost LayerPricer::price_layer(const LoweredLayer& layer, const Plan& plan) {
  const auto priced = [&](Phase phase) { return price_phase(layer, phase, plan); };
  LayerCost cost;
  cost[TaskKind::kForward] = priced(Phase::kForward);
  cost[TaskKind::kBackward] = then(priced(Phase::kRecompute), priced(Phase::kBackward));
  cost[TaskKind::kWeightGradient] = priced(Phase::kWeightGradient);
  cost.accumulate = priced(Phase::kAccumulate);
  return cost;
}

}  // namespace tpsim
