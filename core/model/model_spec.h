// What is trained: the shape of a decoder-only transformer. Plain values, no parallelism.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/model/block_shape.h"

namespace tpsim {

// Where a block's norms stand: before each of its two branches; after each, before the residual is
// added (OLMo 2); both (Gemma 2); or before both branches at once, which then run side by side
// (one norm for both, or one for each).
enum class NormPlace : std::uint8_t { kBefore, kAfter, kAround, kOneParallel, kTwoParallel };

template <>
inline constexpr auto kEnumNames<NormPlace> =
    std::to_array<std::string_view>({"before", "after", "around", "one_parallel", "two_parallel"});

// What lies around the blocks.
struct EndShape {
  double embedding_scale = 1;  // of what the first block receives
  double logit_scale = 1;
  double logit_cap = 0;  // logits become cap tanh(logit / cap); 0: none
  bool head_bias = false;
  std::int64_t positions = 0;  // least rows of a learned position table; seq may need more
  // Multi-token prediction (MTP): further layers that predict later tokens, each of
  // prediction_kinds() and another pass through the head. Planned, not executed. Left out of times,
  // memory and counts: a layer's two norms and its projection of twice the hidden size to one.
  std::int64_t prediction_layers = 0;
  // Residual streams (hyper-connections): stages send each other this many hidden states a token.
  std::int64_t streams = 1;
  // Parts on the first stage: encoders, tables of each layer.
  std::vector<OuterPart> parts = {};
  friend bool operator==(const EndShape&, const EndShape&) = default;
};

// Where the model was trained, and its sequences a step: what stands where nobody says.
struct UsualRun {
  std::string cluster;  // catalogue name; empty: not said
  std::int64_t global_batch = 0;
  friend bool operator==(const UsualRun&, const UsualRun&) = default;
};

// Its mixer, attention, recurrence, ffn_hidden and experts are those of the block that all layers
// have, or those that `block_kinds` does not say otherwise of.
struct ModelSpec : BlockShape {
  std::string name;
  std::string source;  // where the numbers come from
  std::string family;  // whose checkpoints its weights are named for, as model_type; may be empty
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;  // as published, before padding
  // Words that one rank holds are padded to a multiple of this; 1: not padded, odd as they may be.
  std::int64_t vocab_multiple = 128;
  std::int64_t seq = 2048;   // training sequence length
  std::int64_t context = 0;  // positions that the model is made for; 0: not stated
  // Where blocks differ: further kinds, and the kind of every layer: 0 is its own block, n is
  // other_blocks[n - 1]. Empty where all are alike.
  std::vector<BlockShape> other_blocks;
  std::vector<std::int64_t> block_kinds;
  // What all blocks share.
  NormKind norm = NormKind::kLayerNorm;
  NormPlace norm_place = NormPlace::kBefore;
  bool norm_bias = true;       // of a LayerNorm
  bool norm_plus_one = false;  // norms multiply by 1 + weight
  MlpKind mlp = MlpKind::kGelu;
  double mlp_limit = 0;   // of kClampedSwiglu
  bool mlp_bias = false;  // also where linear_bias is false
  bool linear_bias = true;
  bool fused_qkv = true;  // BLOOM's per-head interleaved q, k, v; otherwise three matrices
  bool tied_embedding = true;
  bool embedding_norm = false;  // BLOOM's LayerNorm after the embedding
  EndShape ends;
  double attention_dropout = 0.0;  // of the attention probabilities, while training
  double hidden_dropout = 0.0;     // of the embedding and of what each branch adds to the residual
  bool residual_from_after_norm = false;  // BLOOM's apply_residual_connection_post_layernorm
  double norm_epsilon = 1e-5;
  double initializer_range = 0.02;
  UsualRun usual;
  // What the file says of the model that no step of training depends on here, in words for people.
  std::vector<std::string> notes;
};

// How many kinds of blocks there are, and which kind a layer is of.
std::int64_t block_kind_count(const ModelSpec& model);
std::int64_t block_kind(const ModelSpec& model, std::int64_t layer);
std::int64_t layers_of_kind(const ModelSpec& model, std::int64_t kind);
// With those of the layers that predict later tokens.
std::int64_t blocks_of_kind(const ModelSpec& model, std::int64_t kind);
BlockShape block_of_kind(const ModelSpec& model, std::int64_t kind);
// The model as if all of its blocks were of one kind: what a block of that kind is run with.
ModelSpec with_block_kind(const ModelSpec& model, std::int64_t kind);
// Sets the blocks of all layers, one shape for each; of several kinds those with experts and then
// the most frequent ones come first.
void set_blocks(ModelSpec& model, const std::vector<BlockShape>& layers);

bool has_qkv_bias(const ModelSpec& model);
bool has_output_bias(const ModelSpec& model);
bool has_mlp_bias(const ModelSpec& model);
inline bool has_feed_forward(const ModelSpec& model) { return model.ffn_hidden > 0; }
// Of the block of kind 0.
inline bool is_recurrent(const ModelSpec& model) {
  return model.mixer == MixerKind::kMamba2 || model.mixer == MixerKind::kDeltaNet;
}
// Whether the mixer goes through whole sequences on one rank: recurrences and planned mixers.
inline bool takes_whole_sequences(const ModelSpec& model) {
  return is_recurrent(model) || model.mixer == MixerKind::kPlanned;
}
// 1 or 2: what takes tokens together, and the feed-forward part.
inline int branch_count(const BlockShape& block) {
  return (block.mixer == MixerKind::kNone ? 0 : 1) + (block.ffn_hidden > 0 ? 1 : 0);
}
// Whether any block is.
bool has_recurrences(const ModelSpec& model);
// Whether any block takes_whole_sequences().
bool needs_whole_sequences(const ModelSpec& model);
// Whether any block or part has planned ops.
bool has_planned_ops(const ModelSpec& model);
// A recurrence's widths: of its values, of what is convolved (values and both kinds of keys), and
// of what the projection in gives (these, the gate, and rates of each head).
std::int64_t recurrent_values(const RecurrentShape& recurrent);
std::int64_t recurrent_channels(const RecurrentShape& recurrent);
std::int64_t recurrent_rates(const ModelSpec& model);
std::int64_t recurrent_inputs(const ModelSpec& model);
// The width of what experts get and give: hidden, or their latent.
inline std::int64_t expert_width(const ModelSpec& model) {
  return model.experts.latent > 0 ? model.experts.latent : model.hidden;
}
// What one of the blocks that predict later tokens is made of, as kinds of blocks: that of the last
// layer, before it one that attends where the last has no attention.
std::vector<std::int64_t> prediction_kinds(const ModelSpec& model);

// Query width = heads * head_dim; usually == hidden.
std::int64_t query_width(const ModelSpec& model);
// Key (or value) width = kv_heads * head_dim.
std::int64_t kv_width(const ModelSpec& model);
// Width of a value head: value_dim of latent attention, or of the attention, or head_dim.
std::int64_t value_dim(const AttentionShape& attention);
// The width of the output projection's input: heads * value_dim().
std::int64_t attention_width(const ModelSpec& model);
// Rows of the matrices of keys and values together; fewer than both widths where one matrix gives
// both, 0 where an earlier layer does.
std::int64_t projected_kv_width(const ModelSpec& model);
// Positions before which a query sees nothing: the window, or as many as an indexer chooses. 0: it
// sees all.
std::int64_t reach(const AttentionShape& attention);

// Rows of a learned position table.
std::int64_t position_rows(const ModelSpec& model);

// Of any kind of block: then kind 0 has them.
inline bool has_experts(const ModelSpec& model) { return model.experts.count > 0; }
// Tokens that an expert takes of `tokens` of one rank: rounded up, and never more than there are.
std::int64_t expert_capacity(const ExpertShape& experts, std::int64_t tokens);

// Matrices of a feed-forward part or of one expert.
inline std::int64_t mlp_matrices(const ModelSpec& model) { return is_gated(model.mlp) ? 3 : 2; }

// Weights of one transformer block of kind 0, and of the whole model with its prediction layers
// (tied weights once, vocabulary unpadded, buffers left out). BLOOM-176B: 176,247,271,424.
std::int64_t block_parameter_count(const ModelSpec& model);
std::int64_t parameter_count(const ModelSpec& model);
// Of these, the weights that one token passes: all but the experts it does not choose.
std::int64_t active_parameter_count(const ModelSpec& model);

// FLOPs of one training step over `global_batch` sequences, causal attention counted in full as
// the papers do; of experts those that a token chooses; prediction layers and their passes through
// the head included. Forward + backward = 3 x forward; full recompute adds a fourth forward of the
// blocks ("hardware" FLOPs, Narayanan et al. 2021 eq. 3 for the GPT shape: 96 B s L h^2 (1 + s/6h +
// V/16Lh)).
Flops model_flops_per_step(const ModelSpec& model, std::int64_t global_batch);
// The same with half of every attention core: the convention of Megatron's log since 2024
// (num_floating_point_operations() in megatron/training/training.py). torchtitan counts all of it.
Flops half_mask_flops_per_step(const ModelSpec& model, std::int64_t global_batch);
// Forward FLOPs of the attention cores of all blocks for one sequence.
Flops attention_core_forward_flops(const ModelSpec& model);

// Forward FLOPs of one block of kind 0 for one sequence, by what recompute repeats of it.
struct BlockFlops {
  double attention_core = 0;
  double recurrence = 0;   // the scan of a block without attention
  double indexer = 0;      // scores of planned ops beside an attention core
  double latent_up = 0;    // latent attention's projections up
  double projections = 0;  // all others of attention, or of a recurrence
  double shared_experts = 0;
  double feed_forward = 0;  // or all other products of experts, the router's among them

  double products() const { return latent_up + projections + shared_experts + feed_forward; }
  double total() const { return attention_core + recurrence + indexer + products(); }
};
BlockFlops block_forward_flops(const ModelSpec& model);

// Vocabulary after padding to a multiple of vocab_multiple * tp, as Megatron pads.
std::int64_t padded_vocab(const ModelSpec& model, std::int64_t tp);

// Every rule that a usable model obeys (positive sizes, heads % kv_heads == 0, no more experts for
// a token than there are, no more weights than can be counted, ...).
Status validate(const ModelSpec& model);

}  // namespace tpsim
