// Gradient reduction over the groups that hold the same weights (Megatron's finalize_model_grads).
// Reductions run at the end of the step, or unit by unit, overlapped with backward. The order of
// additions is the same in both cases, and therefore the result.
#include <utility>

#include "reference_model/parallel/parameters.h"

namespace tpsim {
namespace {

constexpr Label kReducePartials{ModelPart::kSequenceParallelGradients,
                                "sequence_parallel.reduce_gradients"};
constexpr Label kReduceIntoShare{ModelPart::kDataParallelReduction, "zero.reduce_gradients"};
constexpr Label kReduce{ModelPart::kDataParallelReduction, "data.reduce_gradients"};
constexpr Label kStore{ModelPart::kDataParallelReduction, kStoreGradients};
constexpr Label kAccumulateOnHost{ModelPart::kGradientAccumulation, kAddGradients};
constexpr Label kAccumulateShare{ModelPart::kGradientAccumulation, "accumulate_gradients"};

}  // namespace

Communicator& ParameterStore::reduction_group(const ParameterUnit& unit) const {
  return unit.holds_experts() ? context_.groups.expert_reduction : context_.groups.reduction;
}

void ParameterStore::reduce_sequence_partials(ParameterUnit& unit, const Tensor& gradients) {
  const std::int64_t begin =
      context_.plan.sequence_parallel ? unit.replicated_begin() : unit.partial_begin();
  if (begin == unit.size()) return;
  tensor_group(unit).all_reduce(gradients.slice(begin, unit.size() - begin), ReduceOp::kSum,
                                kReducePartials);
}

void ParameterStore::reduce_partials(ParameterUnit& unit) {
  if (unit.gradients.defined() && !unit.is_reduced_) reduce_sequence_partials(unit, unit.gradients);
}

// The gradient of a tied table is complete only after the stages that share it have reduced it at
// the step's end.
void ParameterStore::gradients_complete(ParameterUnit& unit) {
  const bool is_tied = context_.model.tied_embedding && unit.holds_word_embeddings();
  if (!overlaps_reduction() || !is_last_backward_ || is_tied) return;
  reduce_partials(unit);
  reduce_over_data_parallel(unit);
}

void ParameterStore::reduce_over_data_parallel(ParameterUnit& unit) {
  if (!unit.gradients.defined() || unit.is_reduced_) return;
  unit.is_reduced_ = true;
  if (has_own_share(unit)) return reduce_into_share(unit, unit.gradients);
  Communicator& group = reduction_group(unit);
  // ZeRO 2 and 3 keep a share alone, whatever the reduction of the other stages.
  const int zero = zero_stage(unit);
  const bool scatters = zero >= 2 || (zero == 1 && context_.options.gradient_reduction ==
                                                       GradientReduction::kReduceScatter);
  if (overlaps_reduction()) {
    if (scatters) return group.begin_reduce_scatter(unit.gradients, unit.gradient_share, kReduce);
    return group.begin_all_reduce(unit.gradients, ReduceOp::kSum, kReduce);
  }
  if (scatters) return group.reduce_scatter(unit.gradients, unit.gradient_share, kReduce);
  group.all_reduce(unit.gradients, ReduceOp::kSum, kReduce);
}

// With overlap, the reduce-scatter of a layer's gradients is in flight during the next layer's
// backward.
void ParameterStore::reduce_into_share(ParameterUnit& unit, const Tensor& whole) {
  const Tensor share = whole.slice(share_begin(unit), share_size(unit));
  on_their_way_.push_back({&unit, share});
  if (overlaps_reduction()) {
    reduction_group(unit).begin_reduce_scatter(whole, share, kReduceIntoShare);
  } else {
    reduction_group(unit).reduce_scatter(whole, share, kReduceIntoShare);
    finish_shares();
  }
}

void ParameterStore::finish_shares() {
  if (on_their_way_.empty()) return;
  context_.groups.reduction.finish();
  context_.groups.expert_reduction.finish();
  for (const ShareOnItsWay& one : on_their_way_) {
    const Tensor& kept = one.unit->gradient_share;
    const bool is_fresh = std::exchange(one.unit->share_is_fresh_, false);
    const bool is_stored = is_on_host(*one.unit);
    if (!is_fresh && !is_stored) {
      context_.device.run(Add{one.share, kept, kAccumulateShare});
      continue;
    }
    Tensor arrived = kept;
    if (!is_fresh) {
      arrived = context_.device.allocate(kept.shape(), kept.dtype(), MemoryCategory::kHost,
                                         kStoreGradients);
    }
    const Label& label = is_stored ? kStore : kAccumulateShare;
    if (one.share.dtype() == kept.dtype()) {
      context_.device.run(Copy{one.share, arrived, label});
    } else {
      context_.device.run(Cast{one.share, arrived, label});
    }
    if (!is_fresh) context_.device.run(Add{arrived, kept, kAccumulateOnHost});
  }
  on_their_way_.clear();
}

void ParameterStore::finish_reductions() {
  finish_shares();
  context_.groups.reduction.finish();
  context_.groups.expert_reduction.finish();
}

}  // namespace tpsim
