// Low-rank adapters of linear layers: y += scale x B (A x) (core/software/finetune.h).
//
// With tensor parallelism, the adapter of a column-parallel layer has a replicated A and a B that
// is sharded by rows; of a row-parallel layer an A that is sharded by columns and a replicated B.
// The results are then partial sums wherever those of the layer are, so that the layer's own
// collectives complete them. Gradients of the replicated matrix are partial sums too
// (Sharding::kPartial). Megatron-Bridge and peft shard the same matrices.
#pragma once

#include <utility>
#include <vector>

#include "reference_model/parallel/parameters.h"
#include "reference_model/parallel/rank_context.h"

namespace tpsim {

// Label of the adapters of experts.
inline constexpr const char* kExpertAdapters = "experts.adapter";

// Tensors of the adapters of a module, for backward.
class AdapterSaved {
 public:
  struct Entry {
    const Parameter* weight = nullptr;
    Tensor reduced;      // scale x A x, [seq, batch, rank]
    Tensor input, mask;  // with dropout: the dropped input, and its mask
    Tensor slope;        // gradient of A x, from the input gradient to the weight gradient
  };
  Entry& of(const Parameter& weight);

 private:
  std::vector<Entry> entries_;
};

// Whether the gradients of a weight or of its adapter need the layer's input.
inline bool needs_input(const Parameter& weight) {
  return weight.is_trained() || weight.is_adapted();
}
bool needs_input(const std::vector<Parameter*>& weights);

// All functions do nothing if the weight has no adapter. Matrices as in linear.h. Forward: y += the
// adapter's output.
void adapter_forward(const RankContext& context, const Matrix& x, const Parameter& weight,
                     const Matrix& y, AdapterSaved& saved);
// dx += the adapter's input gradient. Keeps the gradient of A x for adapter_weight_gradient().
void adapter_input_gradient(const RankContext& context, const Matrix& dy, const Parameter& weight,
                            const Matrix& dx, AdapterSaved& saved);
// Adds to the gradients of A and B, and frees the saved tensors.
void adapter_weight_gradient(const RankContext& context, const Matrix& dy, const Matrix& x,
                             const Parameter& weight, AdapterSaved& saved);

}  // namespace tpsim
