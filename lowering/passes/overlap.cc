// The pass that sets the compute with which each collective overlaps.
#include "lowering/passes/linear_gemm.h"
#include "lowering/passes/lower.h"
#include "lowering/passes/quantization.h"

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;

// Merged 1F1B (ep_overlap): forward of one micro-batch and backward of another alternate, and each
// overlaps with the all-to-alls of the other. Without delay_wgrad, nothing overlaps with wgrad, a
// third of a layer's GEMMs.
constexpr double kBesideWeightGradients = 2.0 / 3;

bool is_linear(const OpRecord& op) {
  return is_linear_layer(op) || op.label.part == ModelPart::kHead;
}

bool is_overlapped_by_phase(const CollectiveRecord& record, const TrainingOptions& training) {
  if (record.group != GroupKind::kData && record.group != GroupKind::kExpertData) return false;
  return record.kind == CollectiveKind::kAllGather ? training.overlap_parameter_gather
                                                   : training.overlap_gradient_reduction;
}

// Overlap of the tensor-parallel collectives of a phase with GEMMs.
class TensorOverlap {
 public:
  TensorOverlap(LoweredLayer& layer, const LayerInputs& inputs,
                const std::vector<LoweredEvent>& events)
      : layer_(layer), inputs_(inputs), events_(events) {}

  // Sets the overlap of the collective at event `i`. In backward, the dgrad reduction overlaps with
  // wgrad. Except for kReductions, the repeated gather of the input overlaps with dgrad.
  // Userbuffers exchange pieces during the GEMMs.
  void set(LoweredCollective& record, std::size_t i) const {
    const StackSpec& stack = inputs_.scenario.stack;
    const TpOverlap overlap = stack.parts.tp_overlap;
    const bool in_pieces =
        overlap == TpOverlap::kUserbuffers && record.group == GroupKind::kTensor &&
        record.kind != CollectiveKind::kAllToAll && inputs_.plan.sequence_parallel;
    if (in_pieces) record.exposed = 1 - stack.tp_overlap;
    const bool gathers = record.kind == CollectiveKind::kAllGather;
    const bool only_reductions = overlap == TpOverlap::kReductions;
    const bool waits = record.label.part != ModelPart::kColumnParallelBackward ||
                       overlap == TpOverlap::kNone || (only_reductions && gathers);
    if (waits) return;
    record.overlap = Overlap::kGemms;
    record.beside = gathers           ? input_gradient_of(i)
                    : only_reductions ? weight_gradients_after(i)
                                      : weight_gradient_before(i);
  }

 private:
  bool is_gemm(std::size_t i) const {
    if (events_[i].kind != Kind::kOp) return false;
    const LoweredOp& op = layer_.ops[events_[i].index];  // a cast of its operands is linear too
    return is_linear(op) && op.key.kind == OpKind::kMatmul;
  }

  // Whether the GEMM sums over tokens. 8-bit GEMMs do not transpose their first operand for that.
  bool is_wgrad(std::size_t i) const {
    const LoweredOp& op = layer_.ops[events_[i].index];
    const Plan& plan = inputs_.plan;
    const std::int64_t tokens = plan.micro_batch * inputs_.scenario.model.seq / plan.degrees.cp;
    return is_weight_gradient(op) ||
           (is_narrow(op.key.dtype) && dim_of(op.key, GemmDim::kK) == tokens);
  }

  // Returns the GEMM at event `i` with the quantizations of its traced event.
  OpRange gemm_at(std::size_t i) const {
    std::size_t first = i;
    while (!events_[first].is_first || events_[first].kind != Kind::kOp) --first;
    return {events_[first].index, events_[i].index + 1};
  }

  // Returns the dgrad GEMM of the column-parallel layer that gathers its input at event `i`. The
  // head runs dgrad before the gather, other layers after.
  OpRange input_gradient_of(std::size_t i) const {
    const bool is_before = layer_.kind == LayerKind::kHead;
    while (i < events_.size() && !is_gemm(i)) i = is_before ? i - 1 : i + 1;
    return i < events_.size() ? gemm_at(i) : OpRange();
  }

  // Returns the last wgrad GEMM before the event, up to the previous collective.
  OpRange weight_gradient_before(std::size_t i) const {
    while (i-- > 0 && events_[i].kind != Kind::kCollective) {
      if (is_gemm(i) && is_wgrad(i)) return gemm_at(i);
    }
    return {};
  }

  // Returns the wgrad GEMMs after the event, up to the first other op or collective.
  OpRange weight_gradients_after(std::size_t i) const {
    OpRange gemms;
    while (++i < events_.size() && events_[i].kind != Kind::kCollective) {
      if (events_[i].kind != Kind::kOp) continue;
      if (!is_gemm(i) || !is_wgrad(i)) break;
      if (gemms.last == 0) gemms.first = events_[i].index;
      gemms.last = events_[i].index + 1;
    }
    return gemms;
  }

  LoweredLayer& layer_;
  const LayerInputs& inputs_;
  const std::vector<LoweredEvent>& events_;
};

}  // namespace

void overlap_collectives(LoweredLayer& layer, const LayerInputs& inputs) {
  const StackSpec& stack = inputs.scenario.stack;
  for (const Phase phase : all_of<Phase>()) {
    const std::vector<LoweredEvent>& events = layer.phase(phase).events;
    const TensorOverlap tensor(layer, inputs, events);
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (events[i].kind != Kind::kCollective) continue;
      LoweredCollective& record = layer.collectives[events[i].index];
      if (is_overlapped_by_phase(record, stack.training)) {
        record.overlap = Overlap::kPhase;
      } else if (record.label.part == ModelPart::kDispatch) {
        if (!stack.parts.ep_overlap || phase == Phase::kRecompute) continue;
        record.overlap = Overlap::kOtherMicroBatch;
        record.share = stack.parts.delay_wgrad ? 1 : kBesideWeightGradients;
      } else if (record.overlap == Overlap::kNone) {
        tensor.set(record, i);
      }
    }
  }
}

}  // namespace tpsim
