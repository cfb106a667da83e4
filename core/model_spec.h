// What is trained: the shape of a decoder-only transformer. Plain values, no parallelism.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"
#include "core/units.h"

namespace tpsim {

enum class PositionKind : std::uint8_t { kAlibi, kLearned, kRotary };
enum class NormKind : std::uint8_t { kLayerNorm, kRmsNorm };
enum class MlpKind : std::uint8_t { kGelu, kSwiglu };

struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // == heads without grouped-query attention
  std::int64_t head_dim = 0;
  PositionKind position = PositionKind::kAlibi;
  double rope_theta = 10000.0;  // rotary only
};

// A feed-forward part of several, of which every token takes a few: a router gives each token its
// `per_token` most probable experts. Each rank's experts take at most
// capacity = capacity_factor x tokens x per_token / count of its tokens of a micro-batch, the
// first ones that chose them; the others pass that expert by. With capacity_factor >=
// count / per_token none ever does.
struct ExpertShape {
  std::int64_t count = 0;  // 0: none, the feed-forward part is dense
  std::int64_t per_token = 0;
  double capacity_factor = 1.0;
};

struct ModelSpec {
  std::string name;
  std::string source;  // where the numbers come from
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  // Of one branch (SwiGLU has two of this width) and of one expert, where there are experts.
  std::int64_t ffn_hidden = 0;
  std::int64_t vocab = 0;  // as published, before padding
  // Words that one rank holds are padded to a multiple of this; 1: not padded, odd as they may be.
  std::int64_t vocab_multiple = 128;
  std::int64_t seq = 2048;  // training sequence length
  AttentionShape attention;
  NormKind norm = NormKind::kLayerNorm;
  MlpKind mlp = MlpKind::kGelu;
  ExpertShape experts;
  bool linear_bias = true;
  bool fused_qkv = true;  // BLOOM's per-head interleaved q, k, v; otherwise three matrices
  bool tied_embedding = true;
  bool embedding_norm = false;     // BLOOM's LayerNorm after the embedding
  double attention_dropout = 0.0;  // of the attention probabilities, while training
  double hidden_dropout = 0.0;     // of the embedding and of what each branch adds to the residual
  bool residual_from_after_norm = false;  // BLOOM's apply_residual_connection_post_layernorm
  double norm_epsilon = 1e-5;
  double initializer_range = 0.02;
};

// Query width = heads * head_dim; usually == hidden.
std::int64_t query_width(const ModelSpec& model);
// Key (or value) width = kv_heads * head_dim.
std::int64_t kv_width(const ModelSpec& model);

inline bool has_experts(const ModelSpec& model) { return model.experts.count > 0; }
// Tokens that an expert takes of `tokens` of one rank: rounded up, and never more than there are.
std::int64_t expert_capacity(const ExpertShape& experts, std::int64_t tokens);

// Weights of one transformer block, and of the whole model (tied weights once, vocabulary
// unpadded). BLOOM-176B: 176,247,271,424.
std::int64_t block_parameter_count(const ModelSpec& model);
std::int64_t parameter_count(const ModelSpec& model);
// Of these, the weights that one token passes: all but the experts it does not choose.
std::int64_t active_parameter_count(const ModelSpec& model);

// FLOPs of one training step over `global_batch` sequences, causal attention counted in full as
// the papers do; of experts those that a token chooses. Forward + backward = 3 x forward; full
// recompute adds a fourth forward of the blocks ("hardware" FLOPs, Narayanan et al. 2021 eq. 3 for
// the GPT shape: 96 B s L h^2 (1 + s/6h + V/16Lh)).
Flops model_flops_per_step(const ModelSpec& model, std::int64_t global_batch);
// Forward FLOPs of the blocks alone / of their attention cores alone, for one sequence: what
// recompute repeats.
Flops blocks_forward_flops(const ModelSpec& model);
Flops attention_core_forward_flops(const ModelSpec& model);

// Vocabulary after padding to a multiple of vocab_multiple * tp, as Megatron pads.
std::int64_t padded_vocab(const ModelSpec& model, std::int64_t tp);

// Every rule that a usable model obeys (positive sizes, heads % kv_heads == 0, no more experts for
// a token than there are, no more weights than can be counted, ...).
Status validate(const ModelSpec& model);

}  // namespace tpsim
