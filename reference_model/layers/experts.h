// Mixture of experts: the MLP of a block in which a router sends each token to a few experts.
// Megatron's SwitchMLP, and MoELayer with TopKRouter in Megatron-Core.
//
// 1. Each rank routes the tokens that it holds outside the tensor-parallel region. An expert takes
//    up to `capacity` tokens of a rank, so that all shapes are static; further tokens are dropped
//    (ExpertShape). Without dropping, the host reads the router's choices in every forward pass,
//    and all experts get as many slots as the busiest one needs.
// 2. An all-to-all over the expert group sends each expert its slots. An all-gather over the
//    expert-tensor group gives each rank with a shard of the expert the slots of all these ranks.
// 3. The experts run as batched GEMMs.
// 4. A reduce-scatter and an all-to-all return the slots. The result is a total, not a partial sum.
//
// With latent experts (ExpertShape::latent) a replicated matrix projects tokens down before the
// all-to-all, and another projects results up. `width` is the width of the experts' input.
#pragma once

#include <string>
#include <vector>

#include "reference_model/layers/weight_names.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {

// Sizes: T tokens of this rank, E experts of the model, C slots of each expert for this rank's
// tokens, N slots that each of this rank's experts receives from all ranks.
struct ExpertsSaved {
  Tensor x;                                // [seq_share, batch, hidden]
  Tensor combined;                         // [seq_share, batch, width], with latent experts
  Tensor logits;                           // [T, E] fp32
  Tensor weights, chosen, slots, choices;  // results of RouteForward
  Tensor input;                            // [experts here, N, width]
  Tensor up, active;                       // [experts here, N, ffn], up twice as wide for SwiGLU
  Tensor output;                           // [E, C, width]: results for this rank's tokens
  std::vector<Tensor> reduced;             // scale x A x of each adapter, [experts here, N, rank]
  float adapter_beta = 1;                  // accumulation_beta() of all adapters
};

class Experts {
 public:
  // Adds the router's parameters to the block's unit.
  static void specify_router(SpecList& specs);
  // Adds the unit of this rank's experts.
  static ParameterUnit& add_to(const RankContext& context, ParameterStore& store,
                               const std::string& block);
  Experts(const RankContext& context, ParameterStore& store, ParameterUnit& block_unit,
          ParameterUnit& expert_unit, const std::string& block);

  // x and the result have residual_shape(context).
  Tensor forward(const Tensor& x, ExpertsSaved& saved) const;
  // Returns the gradient of x.
  Tensor backward(const Tensor& dz, ExpertsSaved saved) const;

 private:
  // A batched weight: the same matrix of every local expert, run as one batched GEMM. `offset`:
  // element offset of the first matrix in the unit.
  struct Stack {
    std::int64_t offset = 0;
    std::int64_t rows = 0, cols = 0;
    const Parameter* first = nullptr;  // has the FP8 scales of the stack
  };
  // Returns the name of an expert's matrix, without the block's prefix and without ".weight".
  static std::string expert_name(const WeightNames& names, std::int64_t expert,
                                 const std::string& matrix);
  // Returns the name of the down or up projection of latent experts, without the block's prefix.
  static std::string latent_name(bool down);
  static std::int64_t first_expert(const RankContext& context);

  // Returns a view of a column range of [experts, N, width], as one matrix for each expert.
  static Matrix columns_of(const Tensor& x, std::int64_t first, std::int64_t count);
  Matrix stacked(const Tensor& flat, const Stack& stack) const;

  void route(ExpertsSaved& saved) const;
  // Returns the number of slots per expert that drops no token: the tokens of the busiest expert
  // over all ranks that exchange tokens, rounded up. Returns `capacity_` if tokens may be dropped,
  // or if the device computes nothing. Collective.
  std::int64_t slots_needed(const Tensor& chosen) const;
  std::int64_t most_over_ranks(std::int64_t count) const;
  // to_experts(): all-to-all of token slots over ep ranks, then all-gather over etp ranks:
  // [experts, C, width] -> [local experts, ep x etp x C, width], where C is the slots per expert
  // and rank. from_experts(): the reverse, with a reduce-scatter over etp ranks.
  Tensor to_experts(Tensor slots) const;
  Tensor from_experts(Tensor slots) const;
  // Permutes between the order of sending ranks and the order of experts.
  Tensor reordered(const Tensor& slots, bool by_expert) const;
  // Returns the gradient of `input` from the gradient of the down projection's result. Accumulates
  // wgrads.
  Tensor experts_backward(Tensor ddown, ExpertsSaved& saved) const;
  void multiply(Matmul product, const Stack& stack) const;

  // The adapters of one matrix of every local expert (adapters.h): those of the first expert, and
  // the elements to the next expert's.
  struct StackedAdapter {
    Parameter *down = nullptr, *up = nullptr;
    std::int64_t down_stride = 0, up_stride = 0;
    std::int64_t column = 0;  // first column of its output in `up`
  };
  void add_adapter(const std::string& block, const std::string& matrix, std::int64_t column,
                   std::vector<StackedAdapter>& adapters);
  void adapter_forward(const StackedAdapter& adapter, const Tensor& x, const Tensor& y,
                       ExpertsSaved& saved) const;
  // Marks the gradients of all adapters as written, and sets saved.adapter_beta.
  void begin_adapter_gradients(ExpertsSaved& saved) const;
  // dx += the adapter's input gradient; adds to the gradients of its matrices. Takes the last
  // tensor of saved.reduced.
  void adapter_backward(const StackedAdapter& adapter, const Tensor& dy, const Tensor& x,
                        const Tensor& dx, ExpertsSaved& saved) const;
  // Returns the latent projection of x, or x if `by` is null. project_backward() returns the
  // gradient of x.
  Tensor project(const Tensor& x, const Parameter* by) const;
  Tensor project_backward(Tensor dy, const Tensor& x, Parameter* by) const;

  bool gated() const { return is_gated(context_.model.mlp); }
  // Biases of one matrix of the local experts, expert by expert.
  struct Biases {
    std::vector<Parameter*> of_experts;
    std::int64_t column = 0;  // first column to which the biases are added
  };
  void add_biases(const Tensor& rows, const Biases& biases, bool first_rank_alone) const;
  void bias_gradients(const Tensor& drows, const Biases& biases, bool first_rank_alone) const;

  // Adds the gradient of the auxiliary loss to dlogits, and counts tokens by expert.
  void balance(const ExpertsSaved& saved, const Tensor& dlogits) const;

  const RankContext& context_;
  std::string layer_;  // the block's prefix
  LocalSizes sizes_;
  std::int64_t capacity_;  // maximum slots of one expert for this rank's tokens
  std::int64_t width_;     // of an expert's input and output
  Parameter& router_;
  Parameter *latent_down_, *latent_up_;  // null without latent experts
  ParameterUnit& unit_;
  std::vector<Stack> up_;  // one, or gate and up if they are not adjacent in memory
  Stack down_;
  Parameter* router_bias_ = nullptr;
  Tensor correction_;                            // [E] fp32, without gradient; may be undefined
  std::vector<Biases> up_biases_, down_biases_;  // empty if experts have no biases
  std::int64_t stride_ = 0;                      // elements from one expert to the next
  std::vector<StackedAdapter> up_adapters_, down_adapters_;
};

}  // namespace tpsim
