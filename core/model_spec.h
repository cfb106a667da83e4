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

struct ModelSpec {
  std::string name;
  std::string source;  // where the numbers come from
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn_hidden = 0;  // of one branch: SwiGLU has two branches of this width
  std::int64_t vocab = 0;       // as published, before padding
  // Words that one rank holds are padded to a multiple of this; 1: not padded, odd as they may be.
  std::int64_t vocab_multiple = 128;
  std::int64_t seq = 2048;  // training sequence length
  AttentionShape attention;
  NormKind norm = NormKind::kLayerNorm;
  MlpKind mlp = MlpKind::kGelu;
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

// Weights of one transformer block, and of the whole model (tied weights once, vocabulary
// unpadded). BLOOM-176B: 176,247,271,424.
std::int64_t block_parameter_count(const ModelSpec& model);
std::int64_t parameter_count(const ModelSpec& model);

// FLOPs of one training step over `global_batch` sequences, causal attention counted in full as
// the papers do. Forward + backward = 3 x forward; full recompute adds a fourth forward of the
// blocks ("hardware" FLOPs, Narayanan et al. 2021 eq. 3 for the GPT shape:
// 96 B s L h^2 (1 + s/6h + V/16Lh)).
Flops model_flops_per_step(const ModelSpec& model, std::int64_t global_batch);
// Forward FLOPs of the blocks alone / of their attention cores alone, for one sequence: what
// recompute repeats.
Flops blocks_forward_flops(const ModelSpec& model);
Flops attention_core_forward_flops(const ModelSpec& model);

// Vocabulary after padding to a multiple of vocab_multiple * tp, as Megatron pads.
std::int64_t padded_vocab(const ModelSpec& model, std::int64_t tp);

// Every rule that a usable model obeys (positive sizes, heads % kv_heads == 0, ...).
Status validate(const ModelSpec& model);

}  // namespace tpsim
