// The pass that moves starts and waits of collectives to where the framework has them.
#include <algorithm>
#include <optional>
#include <utility>

#include "lowering/passes/linear_gemm.h"
#include "lowering/passes/lower.h"
#include "lowering/passes/quantization.h"

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;
using Events = std::vector<LoweredEvent>;

bool is_linear(const OpRecord& op) {
  return is_linear_layer(op) || op.label.part == ModelPart::kHead;
}

bool is_overlapped_by_layers(const CollectiveRecord& record, const TrainingOptions& training) {
  if (record.group != GroupKind::kData && record.group != GroupKind::kExpertData) return false;
  return record.kind == CollectiveKind::kAllGather ? training.overlap_parameter_gather
                                                   : training.overlap_gradient_reduction;
}

// Starts and waits of the collectives of a phase.
class PhaseOverlap {
 public:
  PhaseOverlap(LoweredLayer& layer, const LayerInputs& inputs, Phase phase)
      : layer_(layer),
        inputs_(inputs),
        phase_(phase),
        events_(std::move(layer.phase(phase).events)) {}

  void place() {
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (events_[i].kind == Kind::kCollective) place(i);
    }
    Events& events = layer_.phase(phase_).events;
    if (placed_.empty()) {
      events = std::move(events_);
      return;
    }
    events.clear();
    events.reserve(events_.size() + placed_.size());
    std::stable_sort(placed_.begin(), placed_.end(),
                     [](const Placed& a, const Placed& b) { return a.before < b.before; });
    auto next = placed_.begin();
    for (std::size_t i = 0; i <= events_.size(); ++i) {
      for (; next != placed_.end() && next->before == i; ++next) events.push_back(next->event);
      if (i < events_.size() && is_moved_[i] == 0) events.push_back(events_[i]);
    }
  }

 private:
  // An event that comes before event `before` of the phase, or at its end.
  struct Placed {
    std::size_t before = 0;
    LoweredEvent event;
  };

  // Puts the start of the collective at event `i` before event `start`, the wait before `wait`.
  void move(std::size_t i, std::size_t start, std::size_t wait) {
    is_moved_[i] = 1;
    placed_.push_back({start, with_kind(events_[i], Kind::kStart)});
    placed_.push_back({wait, with_kind(events_[i], Kind::kWait)});
  }
  void carry(std::size_t i, std::size_t wait) {
    layer_.collectives[events_[i].index].is_carried = true;
    move(i, i, wait);
  }

  void place(std::size_t i) {
    const StackSpec& stack = inputs_.scenario.stack;
    const LoweredCollective& record = layer_.collectives[events_[i].index];
    // The weight gather of the next layer and the gradient reduction of the previous layer overlap
    // with this layer.
    if (is_overlapped_by_layers(record, stack.training)) return carry(i, events_.size());
    // Merged 1F1B (ep_overlap): forward of one micro-batch and backward of another alternate, and
    // each overlaps with the all-to-alls of the other. Without delay_wgrad, nothing overlaps with
    // wgrad.
    if (record.label.part == ModelPart::kDispatch) {
      if (!stack.parts.ep_overlap || phase_ == Phase::kRecompute) return;
      return carry(i, stack.parts.delay_wgrad ? events_.size() : end_without_wgrad());
    }
    if (record.label.part == ModelPart::kColumnParallelBackward) return place_in_backward(i);
    exchange_in_pieces(i);
  }

  // In backward, the dgrad reduction overlaps with wgrad. Except for kReductions, the repeated
  // gather of the input overlaps with dgrad.
  void place_in_backward(std::size_t i) {
    const TpOverlap overlap = inputs_.scenario.stack.parts.tp_overlap;
    const bool gathers = layer_.collectives[events_[i].index].kind == CollectiveKind::kAllGather;
    const bool only_reductions = overlap == TpOverlap::kReductions;
    if (overlap == TpOverlap::kNone || (only_reductions && gathers)) return;
    if (only_reductions) return move(i, i, end_of_weight_gradients(i + 1));
    if (gathers && layer_.kind != LayerKind::kHead) {
      if (const auto dgrad = gemm_after(i)) move(i, i, *dgrad + 1);
      return;
    }
    // The head runs dgrad before the gather.
    if (const auto gemm = gathers ? gemm_before(i) : wgrad_before(i)) move(i, first_of(*gemm), i);
  }

  // Userbuffers exchange a part of the call in pieces, with copy engines, during the GEMM that
  // reads or writes the tensor.
  void exchange_in_pieces(std::size_t i) {
    const StackSpec& stack = inputs_.scenario.stack;
    const LoweredCollective whole = layer_.collectives[events_[i].index];
    const bool in_pieces = stack.parts.tp_overlap == TpOverlap::kUserbuffers &&
                           stack.tp_overlap > 0 && whole.group == GroupKind::kTensor &&
                           whole.kind != CollectiveKind::kAllToAll &&
                           inputs_.plan.sequence_parallel;
    if (!in_pieces) return;
    const bool gathers = whole.kind == CollectiveKind::kAllGather;
    const std::optional<std::size_t> gemm = gathers ? gemm_after(i) : gemm_before(i);
    if (!gemm) return;
    LoweredCollective pieces = whole;
    pieces.calls = stack.tp_overlap * whole.calls;
    pieces.mover = Mover::kCopyEngine;
    layer_.collectives[events_[i].index].calls = whole.calls - pieces.calls;
    const LoweredEvent event = added(layer_, pieces);
    placed_.push_back({gathers ? i + 1 : first_of(*gemm), with_kind(event, Kind::kStart)});
    placed_.push_back({gathers ? *gemm + 1 : i, with_kind(event, Kind::kWait)});
  }

  const LoweredOp* op_at(std::size_t i) const {
    return events_[i].kind == Kind::kOp ? &layer_.ops[events_[i].index] : nullptr;
  }
  bool is_gemm(std::size_t i) const {
    const LoweredOp* op = op_at(i);  // a cast of its operands is linear too
    return op != nullptr && is_linear(*op) && op->key.kind == OpKind::kMatmul;
  }

  // Whether the GEMM sums over tokens. 8-bit GEMMs do not transpose their first operand for that.
  bool is_wgrad(std::size_t i) const {
    const LoweredOp& op = *op_at(i);
    const Plan& plan = inputs_.plan;
    const std::int64_t tokens = plan.micro_batch * inputs_.scenario.model.seq / plan.degrees.cp;
    return is_weight_gradient(op) || (op.key.variant & kSumsRows) != 0 ||
           (is_narrow(op.key.dtype) && dim_of(op.key, GemmDim::kK) == tokens);
  }

  // Returns the first quantization of the traced event to which the GEMM at event `i` belongs.
  std::size_t first_of(std::size_t i) const {
    while (!events_[i].is_first || events_[i].kind != Kind::kOp) --i;
    return i;
  }

  // Return the nearest GEMM up to the next collective.
  std::optional<std::size_t> gemm_after(std::size_t i) const {
    while (++i < events_.size() && events_[i].kind != Kind::kCollective) {
      if (is_gemm(i)) return i;
    }
    return std::nullopt;
  }
  std::optional<std::size_t> gemm_before(std::size_t i) const {
    return last_before(i, [this](std::size_t at) { return is_gemm(at); });
  }
  std::optional<std::size_t> wgrad_before(std::size_t i) const {
    return last_before(i, [this](std::size_t at) { return is_gemm(at) && is_wgrad(at); });
  }
  template <class Is>
  std::optional<std::size_t> last_before(std::size_t i, const Is& is) const {
    while (i-- > 0 && events_[i].kind != Kind::kCollective) {
      if (is(i)) return i;
    }
    return std::nullopt;
  }

  // Returns the first op from `i` on that is not part of a wgrad, or the next collective.
  std::size_t end_of_weight_gradients(std::size_t i) const {
    for (; i < events_.size() && events_[i].kind != Kind::kCollective; ++i) {
      const LoweredOp* op = op_at(i);
      if (op == nullptr) continue;
      const bool casts = is_linear(*op) && op->key.kind != OpKind::kMatmul;
      if (!casts && !(is_gemm(i) && is_wgrad(i))) break;
    }
    return i;
  }

  // Returns the event up to which the phase runs as many FLOPs as it has without wgrad.
  std::size_t end_without_wgrad() const {
    const auto flops_of = [this](std::size_t i) {
      const LoweredOp* op = op_at(i);
      return op != nullptr ? op->repeats * op->flops : 0;
    };
    double of_wgrad = 0, after = 0;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (is_gemm(i) && is_wgrad(i)) of_wgrad += flops_of(i);
    }
    std::size_t end = events_.size();
    while (end > 0 && after < of_wgrad) after += flops_of(--end);
    return end;
  }

  LoweredLayer& layer_;
  const LayerInputs& inputs_;
  Phase phase_;
  Events events_;  // before this pass
  std::vector<std::uint8_t> is_moved_ = std::vector<std::uint8_t>(events_.size());
  std::vector<Placed> placed_;
};

}  // namespace

void overlap_collectives(LoweredLayer& layer, const LayerInputs& inputs) {
  for (const Phase phase : all_of<Phase>()) PhaseOverlap(layer, inputs, phase).place();
}

}  // namespace tpsim
