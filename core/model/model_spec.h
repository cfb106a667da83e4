// The shape of a decoder-only transformer. Plain values, no parallelism.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/model/block_shape.h"

namespace tpsim {

// Position of a block's norms. kBefore: before each of the two branches. kAfter: after each, before
// the residual is added (OLMo 2). kAround: both (Gemma 2). kOneParallel, kTwoParallel: before both
// branches, which run in parallel, with one norm for both or one for each.
enum class NormPlace : std::uint8_t { kBefore, kAfter, kAround, kOneParallel, kTwoParallel };

template <>
inline constexpr auto kEnumNames<NormPlace> =
    words<5>("before after around one_parallel two_parallel");

// The parts around the blocks.
struct EndShape {
  double embedding_scale = 1;  // factor on the embedding, the input of the first block
  double logit_scale = 1;
  double logit_cap = 0;  // logits become cap tanh(logit / cap); 0: no cap
  bool head_bias = false;
  std::int64_t positions = 0;  // minimum rows of a learned position table; seq may need more
  // Multi-token prediction (MTP): layers that predict later tokens. Each has the blocks of
  // prediction_kinds() and another pass through the head. Planned, not executed. Times, memory and
  // counts omit the two norms of an MTP layer and its projection from 2 x hidden to hidden.
  std::int64_t prediction_layers = 0;
  bool prediction_shared = false;  // one layer's weights serve all prediction layers
  // Residual streams (hyper-connections): stages send this many hidden states per token.
  std::int64_t streams = 1;
  // Parts on the first stage: encoders, per-layer tables.
  std::vector<OuterPart> parts = {};
  friend bool operator==(const EndShape&, const EndShape&) = default;
};

// Cluster and batch of the original training; defaults for options that are not given.
struct UsualRun {
  std::string cluster;  // catalogue name; empty: unknown
  std::int64_t global_batch = 0;
  friend bool operator==(const UsualRun&, const UsualRun&) = default;
};

// The inherited BlockShape is the block of all layers, or of the layers with kind 0 in
// `block_kinds`.
struct ModelSpec : BlockShape {
  std::string name;
  std::string source;  // of the numbers
  std::string family;  // model_type whose checkpoint names the weights use; may be empty
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;  // as published, before padding
  // The vocab size per rank is padded to a multiple of this; 1: no padding.
  std::int64_t vocab_multiple = 128;
  std::int64_t seq = 2048;   // training sequence length
  std::int64_t context = 0;  // longest sequence the model supports; 0: not stated
  // If blocks differ: further kinds, and the kind of every layer. Kind 0 is the inherited
  // BlockShape, kind n is other_blocks[n - 1]. Empty if all blocks are alike.
  std::vector<BlockShape> other_blocks;
  std::vector<std::int64_t> block_kinds;
  // Common to all blocks.
  NormKind norm = NormKind::kLayerNorm;
  NormPlace norm_place = NormPlace::kBefore;
  bool norm_bias = true;       // of a LayerNorm
  bool norm_plus_one = false;  // norms multiply by 1 + weight
  MlpKind mlp = MlpKind::kGelu;
  double mlp_limit = 0;  // limit of kClampedSwiglu
  ActivationOps activation_ops = ActivationOps::kOneKernel;
  bool mlp_bias = false;  // the MLP has biases even if linear_bias is false
  bool linear_bias = true;
  bool fused_qkv = true;  // BLOOM's per-head interleaved q, k, v; else three matrices
  bool tied_embedding = true;
  bool embedding_norm = false;  // BLOOM's LayerNorm after the embedding
  EndShape ends;
  double attention_dropout = 0.0;         // of the attention probabilities
  double hidden_dropout = 0.0;            // of the embedding and of each branch's output
  bool residual_from_after_norm = false;  // BLOOM's apply_residual_connection_post_layernorm
  double norm_epsilon = 1e-5;
  double initializer_range = 0.02;
  UsualRun usual;
  // Remarks about the source file, shown to users. They do not affect a training step.
  std::vector<std::string> notes;
};

// Number of block kinds, and the kind of `layer`.
std::int64_t block_kind_count(const ModelSpec& model);
std::int64_t block_kind(const ModelSpec& model, std::int64_t layer);
std::int64_t layers_of_kind(const ModelSpec& model, std::int64_t kind);
// Number of blocks of a kind, including those of MTP layers. blocks_of_kind() counts every
// execution, weights_of_kind() every set of weights.
std::int64_t blocks_of_kind(const ModelSpec& model, std::int64_t kind);
std::int64_t weights_of_kind(const ModelSpec& model, std::int64_t kind);
// Number of MTP layers with weights of their own.
std::int64_t prediction_weights(const ModelSpec& model);
BlockShape block_of_kind(const ModelSpec& model, std::int64_t kind);
// Returns the model with all blocks of this kind. Layers are traced with this model.
ModelSpec with_block_kind(const ModelSpec& model, std::int64_t kind);
// Sets the blocks of all layers, one shape per layer. Kinds with experts come first, then the most
// frequent ones.
void set_blocks(ModelSpec& model, const std::vector<BlockShape>& layers);

bool has_qkv_bias(const ModelSpec& model);
bool has_output_bias(const ModelSpec& model);
bool has_mlp_bias(const ModelSpec& model);
inline bool has_feed_forward(const ModelSpec& model) { return model.ffn_hidden > 0; }
// The next functions describe the block of kind 0.
inline bool is_recurrent(const ModelSpec& model) {
  return model.mixer == MixerKind::kMamba2 || model.mixer == MixerKind::kDeltaNet;
}
// Whether the mixer needs whole sequences on one rank: recurrences and planned mixers.
inline bool takes_whole_sequences(const ModelSpec& model) {
  return is_recurrent(model) || model.mixer == MixerKind::kPlanned;
}
// Number of branches: mixer and feed-forward part.
inline int branch_count(const BlockShape& block) {
  return (block.mixer == MixerKind::kNone ? 0 : 1) + (block.ffn_hidden > 0 ? 1 : 0);
}
// Whether any block is recurrent.
bool has_recurrences(const ModelSpec& model);
// Whether any block takes_whole_sequences().
bool needs_whole_sequences(const ModelSpec& model);
// Whether any block or part has planned ops.
bool has_planned_ops(const ModelSpec& model);
// Widths of a recurrence: all values; inputs of the convolution (values, queries and keys; Mamba-2:
// x, C and B); step sizes, decays and write strengths; all outputs of the input projection.
std::int64_t recurrent_values(const RecurrentShape& recurrent);
std::int64_t recurrent_channels(const RecurrentShape& recurrent);
std::int64_t recurrent_rates(const ModelSpec& model);
std::int64_t recurrent_inputs(const ModelSpec& model);
// Input and output width of the experts: hidden, or their latent.
inline std::int64_t expert_width(const ModelSpec& model) {
  return model.experts.latent > 0 ? model.experts.latent : model.hidden;
}
// Returns the block kinds of an MTP layer: the kind of the last layer. If the last layer has no
// mixer, an attention block precedes it.
std::vector<std::int64_t> prediction_kinds(const ModelSpec& model);

// Query width = heads * head_dim; usually equal to hidden.
std::int64_t query_width(const ModelSpec& model);
// Key (or value) width = kv_heads * head_dim.
std::int64_t kv_width(const ModelSpec& model);
// Width of a value head: from latent attention, else AttentionShape::value_dim, else head_dim.
std::int64_t value_dim(const AttentionShape& attention);
// Input width of the output projection: heads * value_dim().
std::int64_t attention_width(const ModelSpec& model);
// Rows of the key and value matrices together. Less than both widths if one matrix gives both; 0 if
// an earlier layer provides them.
std::int64_t projected_kv_width(const ModelSpec& model);
// Number of positions that a query sees: the window, or the positions that an indexer selects. 0:
// all.
std::int64_t reach(const AttentionShape& attention);

// Rows of a learned position table.
std::int64_t position_rows(const ModelSpec& model);

// Whether any block has experts; kind 0 then has them.
inline bool has_experts(const ModelSpec& model) { return model.experts.count > 0; }
// Returns the capacity of an expert in tokens if a rank has `tokens` tokens: rounded up, at most
// `tokens`.
std::int64_t expert_capacity(const ExpertShape& experts, std::int64_t tokens);

// Matrices per feed-forward part or expert.
inline std::int64_t mlp_matrices(const ModelSpec& model) { return is_gated(model.mlp) ? 3 : 2; }

// Number of weights of one block of kind 0, and of the model including MTP layers. Tied weights
// count once; vocab padding and buffers are excluded. BLOOM-176B: 176,247,271,424.
std::int64_t block_parameter_count(const ModelSpec& model);
std::int64_t parameter_count(const ModelSpec& model);
// Returns the number of weights of linear layers in all blocks: no norms, biases, embeddings, head.
std::int64_t block_matrix_parameters(const ModelSpec& model);
// Number of weights and biases of the norms in one block of kind 0, and around the blocks.
std::int64_t block_norm_parameters(const ModelSpec& model);
std::int64_t outer_norm_parameters(const ModelSpec& model);
// Number of weights that one token uses, without the experts that its router does not select.
std::int64_t active_parameter_count(const ModelSpec& model);

// FLOPs of one training step over `global_batch` sequences. Causal attention counts as the full
// square, as in the papers. Counts only the selected experts; includes MTP layers and their passes
// through the head. Forward + backward = 3 x forward. Full recompute adds a fourth forward of the
// blocks ("hardware" FLOPs, Narayanan et al. 2021 eq. 3 for the GPT shape: 96 B s L h^2 (1 + s/6h +
// V/16Lh)).
Flops model_flops_per_step(const ModelSpec& model, std::int64_t global_batch);
// The same with half of every attention core: the convention of Megatron's log since 2024
// (num_floating_point_operations() in megatron/training/training.py). torchtitan counts the full
// square.
Flops half_mask_flops_per_step(const ModelSpec& model, std::int64_t global_batch);
// Forward FLOPs of the attention cores of all blocks for one sequence.
Flops attention_core_forward_flops(const ModelSpec& model);

// Forward FLOPs of one block of kind 0 for one sequence, by the parts that recompute may repeat.
struct BlockFlops {
  double attention_core = 0;
  double recurrence = 0;   // the scan of a block without attention
  double indexer = 0;      // scores of planned ops next to an attention core
  double latent_up = 0;    // up-projections of latent attention
  double projections = 0;  // other projections of attention or of a recurrence
  double shared_experts = 0;
  double feed_forward = 0;  // or other GEMMs of experts, including the router's

  double products() const { return latent_up + projections + shared_experts + feed_forward; }
  double total() const { return attention_core + recurrence + indexer + products(); }
};
BlockFlops block_forward_flops(const ModelSpec& model);

// Vocab size after padding to a multiple of vocab_multiple * tp, as in Megatron.
std::int64_t padded_vocab(const ModelSpec& model, std::int64_t tp);

// Checks the rules of usable models (positive sizes, heads % kv_heads == 0, per_token <= experts,
// countable weights, ...).
Status validate(const ModelSpec& model);

}  // namespace tpsim
