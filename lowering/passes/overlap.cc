// The pass that sets the compute with which each collective overlaps.
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

  // Call for every event of the phase in order.
  void visit(std::size_t i) {
    const LoweredEvent& event = events_[i];
    if (event.kind == Kind::kOp) {
      if (event.is_first) first_ = event.index;
      if (is_linear(layer_.ops[event.index])) last_gemm_ = {first_, event.index + 1};
    } else if (event.kind == Kind::kCollective) {
      set(layer_.collectives[event.index], i);
    }
  }

 private:
  // In backward, the dgrad reduction overlaps with wgrad. Except for kReductions, the repeated
  // gather of the input overlaps with dgrad. Userbuffers exchange pieces during the GEMMs.
  void set(LoweredCollective& record, std::size_t i) const {
    const StackSpec& stack = inputs_.scenario.stack;
    const TpOverlap overlap = stack.parts.tp_overlap;
    const bool in_pieces =
        overlap == TpOverlap::kUserbuffers && record.group == GroupKind::kTensor &&
        record.kind != CollectiveKind::kAllToAll && inputs_.plan.sequence_parallel;
    if (in_pieces) record.exposed = 1 - stack.tp_overlap;
    const bool waits =
        record.label.part != ModelPart::kColumnParallelBackward || overlap == TpOverlap::kNone ||
        (overlap == TpOverlap::kReductions && record.kind == CollectiveKind::kAllGather);
    if (waits) return;
    record.overlap = Overlap::kGemms;
    record.beside = overlap == TpOverlap::kReductions ? weight_gradients_after(i) : last_gemm_;
  }

  // Returns the wgrad GEMMs after the event, up to the first other op or collective.
  OpRange weight_gradients_after(std::size_t i) const {
    OpRange gemms;
    for (std::size_t next = i + 1; next < events_.size(); ++next) {
      const LoweredEvent& event = events_[next];
      if (event.kind == Kind::kCollective) break;
      if (event.kind != Kind::kOp) continue;
      const LoweredOp& op = layer_.ops[event.index];
      const bool is_wgrad =
          is_linear(op) && op.key.kind == OpKind::kMatmul && (op.key.variant & kTransposeA) != 0;
      if (!is_wgrad) break;
      if (gemms.last == 0) gemms.first = event.index;
      gemms.last = event.index + 1;
    }
    return gemms;
  }

  LoweredLayer& layer_;
  const LayerInputs& inputs_;
  const std::vector<LoweredEvent>& events_;
  std::uint32_t first_ = 0;  // op of the last traced event
  OpRange last_gemm_;
};

}  // namespace

void overlap_collectives(LoweredLayer& layer, const LayerInputs& inputs) {
  const StackSpec& stack = inputs.scenario.stack;
  for (const Phase phase : all_of<Phase>()) {
    const std::vector<LoweredEvent>& events = layer.phase(phase).events;
    TensorOverlap tensor(layer, inputs, events);
    for (std::size_t i = 0; i < events.size(); ++i) {
      const bool is_collective = events[i].kind == Kind::kCollective;
      if (!is_collective) {
        tensor.visit(i);
        continue;
      }
      LoweredCollective& record = layer.collectives[events[i].index];
      if (is_overlapped_by_phase(record, stack.training)) {
        record.overlap = Overlap::kPhase;
      } else if (record.label.part == ModelPart::kDispatch) {
        if (!stack.parts.ep_overlap || phase == Phase::kRecompute) continue;
        record.overlap = Overlap::kOtherMicroBatch;
        record.share = stack.parts.delay_wgrad ? 1 : kBesideWeightGradients;
      } else if (record.overlap == Overlap::kNone) {
        tensor.visit(i);
      }
    }
  }
}

}  // namespace tpsim
