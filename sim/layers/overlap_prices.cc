// Exposed time of a layer's collectives, and the compute they overlap with.
#include <algorithm>

#include "sim/layers/expert_prices.h"
#include "sim/layers/layer_pricer.h"
#include "sim/layers/low_precision.h"
#include "sim/layers/memory_of_parts.h"

namespace tpsim {

// Returns the exposed time of a tensor-parallel collective that overlaps with a GEMM of time
// `beside`. In backward, the dgrad reduction overlaps with wgrad. Except for kReductions, the
// repeated gather of the input overlaps with dgrad. The slowdown of overlapped GEMMs is included.
Seconds LayerPricer::exposed_tensor_collective(const CollectiveRecord& record, const Plan& plan,
                                               Seconds whole, Seconds beside) const {
  const StackSpec& stack = scenario().stack;
  const TpOverlap overlap = stack.parts.tp_overlap;
  const bool waits = overlap == TpOverlap::kNone || (overlap == TpOverlap::kReductions &&
                                                     record.kind == CollectiveKind::kAllGather);
  const Seconds hidden = waits ? Seconds() : std::min(whole, beside);
  Seconds left = whole - hidden;
  const bool in_pieces = stack.parts.tp_overlap == TpOverlap::kUserbuffers &&
                         record.group == GroupKind::kTensor && plan.sequence_parallel;
  if (in_pieces) left = (1 - stack.tp_overlap) * left;
  return left + (stack.overlap_slowdown - 1) * hidden;
}

// Returns the time of the GEMMs that overlap with the collective at `event`. kReductions: the wgrad
// GEMMs after the dgrad reduction, up to the first other op. Otherwise `last`, the time of the GEMM
// before the collective.
Seconds LayerPricer::overlapped_gemm_time(const LayerTrace& trace, std::size_t event,
                                          Seconds last) {
  if (scenario().stack.parts.tp_overlap != TpOverlap::kReductions) return last;
  Seconds beside;
  for (std::size_t i = event + 1; i < trace.program.events.size(); ++i) {
    const ProgramEvent& next = trace.program.events[i];
    if (next.kind == ProgramEvent::Kind::kCollective) break;
    if (next.kind != ProgramEvent::Kind::kOp) continue;
    const OpRecord& op = trace.program.ops[next.index];
    const bool is_linear = is_linear_layer(op) || op.label.part == ModelPart::kHead;
    const bool is_weight_gradient =
        is_linear && op.key.kind == OpKind::kMatmul && (op.key.variant & kTransposeA) != 0;
    if (!is_weight_gradient) break;
    beside += op_price(op).time;
  }
  return beside;
}

// For tensor-parallel experts with kUnfusedSeq. An all-to-all in the tensor group exchanges a
// rank's tokens for hidden slices of all tokens of the group, or back (one copy). An all-gather
// along the hidden dimension arrives rank by rank and is reordered row by row: split and
// concatenated (two copies). A reduce-scatter needs one copy before it.
void LayerPricer::add_hidden_slices(const CollectiveRecord& record, const Plan& plan,
                                    PhaseCost& phase) const {
  const bool is_of_experts =
      record.label.part == ModelPart::kDispatch && record.kind != CollectiveKind::kAllToAll;
  if (!is_of_experts || scenario().stack.parts.permute != PermuteKernel::kUnfusedSeq) return;
  const ParallelDegrees& d = plan.degrees;
  const ModelSpec& model = scenario().model;
  const std::int64_t tokens = plan.micro_batch * model.seq / (d.cp * d.tp);
  const Bytes own(static_cast<double>(tokens * model.hidden * size_of(plan.dtype)));
  const GroupPlacement group =
      place_group(plan, GroupKind::kTensor, node_size(scenario().cluster, gpu_count(plan)));
  const Seconds exchange = collectives().price(CollectiveKind::kAllToAll, own, group);
  const double copies = record.kind == CollectiveKind::kAllGather ? 2 : 1;
  const Bytes moved = 2 * (copies * Bytes(static_cast<double>(record.bytes)) + own);
  const Seconds copying =
      (copies + 1) * scenario().profile.model.kernel_latency + streaming_time(moved);
  phase.work[StepTerm::kTensorCommunication] += exchange;
  phase.time = then(phase.time, launch(scenario(), scenario().stack.host.per_collective, exchange));
  add_copies(phase, StepTerm::kPermute, copying, copies + 1);
}

// Adds the exposed time of the exchanges. `pass`: time of one attention pass, which overlaps with
// an exchange and is slowed down.
void LayerPricer::add_ring(const RingExchanges& ring, const Plan& plan, Seconds pass,
                           PhaseCost& phase) const {
  const StackSpec& stack = scenario().stack;
  for (const RingExchange& sent : ring.sent) {
    const Seconds each = collective(sent.record, plan);
    const Seconds hidden = sent.beside * std::min(each, pass);
    const Seconds seen = sent.calls * each - hidden + (stack.overlap_slowdown - 1) * hidden;
    phase.work[StepTerm::kContextCommunication] += seen;
    phase.time = then(phase.time, launch(scenario(), sent.calls * stack.host.per_collective, seen));
  }
  add_copies(phase, StepTerm::kElementwise, streaming_time(ring.copied));
}

// The stash's kernels read and write the received tokens, once after forward and once before
// backward. They run in a separate stream but take memory bandwidth from concurrent ops, so their
// whole time counts.
void LayerPricer::add_stash_copies(LayerCost& cost, const LayerTrace& trace,
                                   const Plan& plan) const {
  const StashedBytes bytes = stashed_bytes(trace, scenario().stack, scenario().model, plan);
  if (bytes.tokens <= 0) return;
  const Seconds time = streaming_time(Bytes(2 * bytes.tokens));
  add_copies(cost.forward, StepTerm::kPermute, time);
  add_copies(cost.backward, StepTerm::kPermute, time);
}

void LayerPricer::add_copies(PhaseCost& phase, StepTerm term, Seconds time, double kernels) const {
  phase.work[term] += time;
  phase.by_source[PriceSource::kModel] += time;
  phase.time = then(phase.time, launch(scenario(), kernels * scenario().stack.host.per_op, time));
}

HostDeviceTime LayerPricer::price_dispatch(const CollectiveRecord& record, Seconds whole,
                                           PhaseCost& phase) const {
  phase.work[work_term(record)] += whole;
  phase.work[StepTerm::kImbalance] += (phase.load - 1) * whole;
  return launch(scenario(), scenario().stack.host.per_collective, phase.load * whole);
}

// Adds the exposed time of collectives that overlap with at most `share` of the phase's device
// time, and the slowdown of the overlapped compute.
void LayerPricer::add_overlapped(PhaseCost& phase, StepTerm term, Seconds collectives,
                                 double share) const {
  const Seconds hidden = std::min(collectives, share * phase.time.device);
  const Seconds seen = collectives - hidden + (scenario().stack.overlap_slowdown - 1) * hidden;
  phase.work[term] += seen;
  phase.time = then(phase.time, HostDeviceTime{Seconds(), seen, seen});
}

bool LayerPricer::is_overlapped(const CollectiveRecord& record) const {
  if (record.group != GroupKind::kData && record.group != GroupKind::kExpertData) return false;
  const TrainingOptions& training = scenario().stack.training;
  return record.kind == CollectiveKind::kAllGather ? training.overlap_parameter_gather
                                                   : training.overlap_gradient_reduction;
}

// For LossHead::kGathered: the tensor group all-gathers the logits, and every rank computes the
// loss over the full vocab.
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

}  // namespace tpsim
