// The feed-forward part of a block with experts: a router sends every token to a few of them.
//
// Each rank routes the tokens that it holds outside the tensor-parallel region. An expert takes up
// to `capacity` of them, so that all shapes are known beforehand; what it cannot take passes it by
// (core/model/model_spec.h). The expert group shares the experts: an all-to-all brings every expert
// its slots, an all-gather over the expert-tensor group brings each of its ranks, which hold a part
// of the expert's matrices, the slots of all of them. The way back is the same in reverse, a
// reduce-scatter in place of the gather. The result is whole, not a partial sum. Where experts are
// whole on a rank, the ranks of a tensor group are merely ranks with other tokens.
//
// Experts of a latent (ExpertShape::latent) get tokens projected down by a matrix that every rank
// repeats, and what comes back is projected up by another: `width` is that of what experts get.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference_model/layers/weight_names.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {

// Whether an allocation, by its label, holds rows of tokens for this rank's experts, whoever sent
// them: their number follows how many tokens chose these experts, where none is dropped.
bool is_dispatched_tokens(std::string_view allocation);

// E experts of C slots from this rank's T tokens; N slots arrive for each of this rank's experts.
struct ExpertsSaved {
  Tensor x;                                // [seq_share, batch, hidden]
  Tensor combined;                         // [seq_share, batch, width], of experts of a latent
  Tensor logits;                           // [T, E] fp32
  Tensor weights, chosen, slots, choices;  // of RouteForward
  Tensor input;                            // [experts here, N, width]
  Tensor up, active;                       // [experts here, N, ffn], up twice as wide for SwiGLU
  Tensor output;                           // [E, C, width]: what came back for this rank's tokens
};

class Experts {
 public:
  // What the router adds to the block's unit.
  static void specify_router(SpecList& specs);
  // The unit of this rank's experts.
  static ParameterUnit& add_to(const RankContext& context, ParameterStore& store,
                               const std::string& block);
  Experts(const RankContext& context, ParameterStore& store, ParameterUnit& block_unit,
          ParameterUnit& expert_unit, const std::string& block);

  // x and the result: residual_shape(context).
  Tensor forward(const Tensor& x, ExpertsSaved& saved) const;
  // Gradient of x. Consumes `saved`.
  Tensor backward(const Tensor& dz, ExpertsSaved saved) const;

 private:
  // Matrices of all experts here, one in each, that multiply as one batch: the first one's place in
  // the unit.
  struct Stack {
    std::int64_t offset = 0;
    std::int64_t rows = 0, cols = 0;
    const Parameter* first = nullptr;  // whose scales are those of all
  };
  // Behind the block's prefix, without ".weight".
  static std::string expert_name(const WeightNames& names, std::int64_t expert,
                                 const std::string& matrix);
  // Of the projection of latents, down or up, behind the block's prefix.
  static std::string latent_name(bool down);
  static std::int64_t first_expert(const RankContext& context);

  // A column range of [experts, N, width], as one matrix for each expert.
  static Matrix columns_of(const Tensor& x, std::int64_t first, std::int64_t count);
  Matrix stacked(const Tensor& flat, const Stack& stack) const;

  void route(ExpertsSaved& saved) const;
  // [E, C, width] of this rank's tokens -> [experts here, N, width], and back.
  Tensor to_experts(Tensor slots) const;
  Tensor from_experts(Tensor slots) const;
  // Between the order in which ranks send and that of experts.
  Tensor reordered(const Tensor& slots, bool by_expert) const;
  // Gradient of `input` from that of the down projection's result; adds to the weights' gradients.
  Tensor experts_backward(Tensor ddown, ExpertsSaved& saved) const;
  void multiply(Matmul product, const Stack& stack) const;
  // x times a projection of latents, or x itself without; and the gradient of x.
  Tensor project(const Tensor& x, const Parameter* by) const;
  Tensor project_backward(Tensor dy, const Tensor& x, Parameter* by) const;

  bool gated() const { return is_gated(context_.model.mlp); }
  // Biases of the experts here, stacked like their matrices.
  struct Biases {
    std::vector<Parameter*> of_experts;
    std::int64_t column = 0;  // in the rows that they are added to
  };
  void add_biases(const Tensor& rows, const Biases& biases, bool first_rank_alone) const;
  void bias_gradients(const Tensor& drows, const Biases& biases, bool first_rank_alone) const;

  // What balancing adds to the gradient of the router's logits, and counts.
  void balance(const ExpertsSaved& saved, const Tensor& dlogits) const;

  const RankContext& context_;
  std::string layer_;  // the block's prefix
  LocalSizes sizes_;
  std::int64_t capacity_;  // of one expert for this rank's tokens
  std::int64_t width_;     // of what experts get and give
  Parameter& router_;
  Parameter *latent_down_, *latent_up_;  // null where experts get whole tokens
  ParameterUnit& unit_;
  std::vector<Stack> up_;  // one, or gate and up where they do not lie together
  Stack down_;
  Parameter* router_bias_ = nullptr;
  Tensor correction_;                            // [E] fp32, not trained; undefined without
  std::vector<Biases> up_biases_, down_biases_;  // empty without
  std::int64_t stride_ = 0;                      // from one expert to the next
};

}  // namespace tpsim
