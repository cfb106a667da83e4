// The shapes of a transformer block's parts. Plain values, no parallelism.
//
// Defaults are those of most models: full causal attention, no norm of q and k, a dense
// feed-forward part.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/enum_words.h"
#include "core/model/planned_op.h"

namespace tpsim {

enum class PositionKind : std::uint8_t { kAlibi, kLearned, kRotary, kNone };
template <>
inline constexpr auto kEnumNames<PositionKind> = words<4>("alibi learned rotary none");
enum class NormKind : std::uint8_t { kLayerNorm, kRmsNorm };
template <>
inline constexpr auto kEnumNames<NormKind> = words<2>("layer_norm rms_norm");
// Plain (up, activation, down) or gated (down(activation(gate) * up)): see is_gated(). kGelu and
// kGeglu use the tanh approximation, kGeluErf the exact GELU. kClampedSwiglu is GPT-OSS's: (up + 1)
// * gate * sigmoid(1.702 gate) with gate <= limit and |up| <= limit. kXielu (Apertus, two trained
// numbers per layer) is plain and kSitu (Kimi K3) is gated; both are planned, not executed.
enum class MlpKind : std::uint8_t {
  kGelu,
  kSwiglu,
  kGeluErf,
  kRelu,
  kReluSquared,
  kGeglu,
  kClampedSwiglu,
  kXielu,
  kSitu
};
template <>
inline constexpr auto kEnumNames<MlpKind> =
    words<9>("gelu swiglu gelu_erf relu relu_squared geglu clamped_swiglu xielu situ");
// How the model's Hugging Face module computes a GELU. kOneKernel: one op of PyTorch. kSavedOps: an
// op per step of the formula, whose results autograd saves ("gelu_new", "gelu_fast"). kFunctionOps:
// the same in one autograd function, which saves the input and computes the rest again (BLOOM).
// Other software has one kernel for all of them.
enum class ActivationOps : std::uint8_t { kOneKernel, kSavedOps, kFunctionOps };
template <>
inline constexpr auto kEnumNames<ActivationOps> = words<3>("one_kernel saved_ops function_ops");
constexpr bool is_gated(MlpKind mlp) {
  return mlp == MlpKind::kSwiglu || mlp == MlpKind::kGeglu || mlp == MlpKind::kClampedSwiglu ||
         mlp == MlpKind::kSitu;
}

enum class RotaryScaling : std::uint8_t { kNone, kLinear, kLlama3, kYarn, kLongRope };
template <>
inline constexpr auto kEnumNames<RotaryScaling> = words<5>("none linear llama3 yarn longrope");
// Scaling of rotary frequencies for longer contexts. Each kind uses some of the fields; for the
// formulas see reference_model/layers/rotary_table.h.
struct RotaryStretch {
  RotaryScaling kind = RotaryScaling::kNone;
  double factor = 1;
  std::int64_t original_positions = 0;  // llama3, yarn, longrope: context of pretraining
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn
  bool truncate = true;                   // yarn: round the correction range to whole numbers
  double mscale = 0, mscale_all_dim = 0;  // yarn; 0: not given
  double attention_factor = 0;            // 0: from the formula
  std::vector<double> short_factors, long_factors;  // longrope, one per frequency
  friend bool operator==(const RotaryStretch&, const RotaryStretch&) = default;
};
struct RotaryShape {
  double fraction = 1;      // share of head_dim that is rotated: its first entries
  bool neighbours = false;  // rotates pairs (2i, 2i + 1) instead of (i, i + half)
  RotaryStretch stretch = {};
  friend bool operator==(const RotaryShape&, const RotaryShape&) = default;
};

// Norms of queries and keys. kHead: RMSNorm per head before rotation. kPlain: the same without
// weights, after rotation (LLaMA 4). kWidth: RMSNorm over all heads at once (OLMo 2). kEachHead:
// LayerNorm per head, each with its own weights (Cohere).
enum class QkNorm : std::uint8_t { kNone, kHead, kPlain, kWidth, kEachHead };
template <>
inline constexpr auto kEnumNames<QkNorm> = words<5>("none head plain width each_head");

// Changes of the attention scores q'k before and in the softmax.
struct ScoreShape {
  double scale = 0;    // 0: head_dim^-1/2
  double cap = 0;      // scores become cap tanh(score / cap); 0: no cap
  bool sinks = false;  // attention sinks: one more logit per head in the softmax, without a value
  double temperature = 0;  // 0: no scaling; else q times 1 + temperature ln(1 + floor((position +
                           // 1) / temperature_floor))
  std::int64_t temperature_floor = 1;
  friend bool operator==(const ScoreShape&, const ScoreShape&) = default;
};

// Multi-head latent attention (DeepSeek-AI 2024, section 2.1). Keys and values are projected up
// from one latent per token. The rotary part of the keys is shared by all heads. head_dim is
// nope_dim + rope_dim.
struct LatentShape {
  std::int64_t q_rank = 0;   // 0: queries come from one matrix
  std::int64_t kv_rank = 0;  // 0: no latent attention
  std::int64_t nope_dim = 0, rope_dim = 0, value_dim = 0;
  friend bool operator==(const LatentShape&, const LatentShape&) = default;
};

// Source of keys and values. kProjected: two projection matrices. kSameMatrix: one projection
// matrix for both (Gemma 4's layers without window). kEarlierLayer: reused from an earlier layer of
// the same kind (Gemma 4's last layers).
enum class KeyValueSource : std::uint8_t { kProjected, kSameMatrix, kEarlierLayer };
template <>
inline constexpr auto kEnumNames<KeyValueSource> = words<3>("projected same_matrix earlier_layer");

struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // == heads without grouped-query attention
  std::int64_t head_dim = 0;
  PositionKind position = PositionKind::kAlibi;
  double rope_theta = 10000.0;  // rotary only
  RotaryShape rotary = {};
  std::int64_t window =
      0;  // sliding window: positions a query sees, including its own; 0: all earlier ones
  std::int64_t chunk = 0;  // a query sees only its own chunk of this length; 0: no chunks
  // Positions that an indexer selects per query (DeepSeek-V3.2); 0: all. The indexer is part of
  // BlockShape::planned.
  std::int64_t chosen = 0;
  QkNorm qk_norm = QkNorm::kNone;
  ScoreShape score = {};
  LatentShape latent = {};
  bool qkv_bias = false;       // q, k, v have biases even if ModelSpec::linear_bias is false
  bool output_bias = false;    // the same for the output projection
  bool output_gate = false;    // core output times sigmoid of a second projection of the same width
  std::int64_t value_dim = 0;  // width of a value head; 0: head_dim. Latent attention has its own
  KeyValueSource key_values = KeyValueSource::kProjected;
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

// How router logits become weights. kChosen: softmax over the top-k logits (for k = 1, the
// probability among all experts). kAll: softmax over all experts. kSigmoid: sigmoid of each logit.
enum class RouterScore : std::uint8_t { kChosen, kAll, kSigmoid };
template <>
inline constexpr auto kEnumNames<RouterScore> = words<3>("chosen all sigmoid");
struct RouterShape {
  RouterScore score = RouterScore::kChosen;
  bool renormalises = false;  // weights of a token are normalized to sum 1 (kAll, kSigmoid)
  double scaling = 1;         // factor on the weights, after normalization
  bool correction_bias =
      false;                // added to the scores for the selection only; a buffer, not trained
  std::int64_t groups = 1;  // contiguous groups of experts, of which the best `groups_kept` stay
  std::int64_t groups_kept = 1;
  bool bias = false;          // of the router's matrix
  bool scales_input = false;  // the weight multiplies the expert's input (LLaMA 4)
  friend bool operator==(const RouterShape&, const RouterShape&) = default;
};

// Mixture of experts: a router sends each token to its `per_token` highest-scoring experts. An
// expert of a rank takes at most capacity = capacity_factor x tokens x per_token / count of the
// micro-batch's tokens, in token order. Further tokens skip that expert. No token is dropped if
// capacity_factor >= count / per_token.
struct ExpertShape {
  std::int64_t count = 0;  // 0: the feed-forward part is dense
  std::int64_t per_token = 0;
  double capacity_factor = 1.0;
  // Without capacity: no token is dropped. Plans assume balanced experts, as with a capacity factor
  // of 1.
  bool dropless = false;
  RouterShape router = {};
  std::int64_t shared_ffn = 0;  // width of the shared expert, which every token passes; 0: none
  bool shared_gate = false;     // shared expert's output times sigmoid(w'x)
  // Tokens are projected down to this width before dispatch and up after combine (LatentMoE of
  // Nemotron 3). Router and shared expert use the full width. 0: no projection.
  std::int64_t latent = 0;
  bool bias = false;  // in the matrices of every expert
  // Tokens per expert in a measured run, for one block or block after block. Empty: not measured.
  std::vector<double> counts = {};
  friend bool operator==(const ExpertShape&, const ExpertShape&) = default;
};

// The part of a block that mixes tokens: attention, a recurrence, or none (the block is only a
// feed-forward part). kPlanned: the block's planned ops; the last linear op with kColumns sharding
// gives the result.
enum class MixerKind : std::uint8_t { kAttention, kMamba2, kDeltaNet, kNone, kPlanned };
template <>
inline constexpr auto kEnumNames<MixerKind> = words<5>("attention mamba2 delta_net none planned");
// Mamba-2 (Dao & Gu 2024), gated delta nets (Yang et al. 2024) and Kimi Delta Attention, which has
// a decay per channel.
struct RecurrentShape {
  std::int64_t heads = 0;        // of values
  std::int64_t key_heads = 0;    // of keys; Mamba-2 calls them groups
  std::int64_t key_dim = 0;      // of a head's state; Mamba-2: ssm_state_size
  std::int64_t value_dim = 0;    // per head
  std::int64_t convolution = 0;  // kernel size of the short convolution
  bool convolution_bias = false;
  std::int64_t chunk = 128;  // tokens per chunk of the scan
  // Delta nets: a decay per key channel instead of per head. The projections of these decays are
  // part of BlockShape::planned.
  bool channel_decay = false;
  // Delta nets: the output gate has one matrix, as wide as the values. If false, the gate's
  // matrices are part of BlockShape::planned.
  bool wide_gate = true;
  friend bool operator==(const RecurrentShape&, const RecurrentShape&) = default;
};

// Groups of weights that are trained or frozen together: groups of a block, then those around the
// blocks. kOthers: the weights of a block that belong to no other group. kAdapters: adapters of
// linear layers.
enum class WeightPart : std::uint8_t {
  kQuery,
  kKey,
  kValue,
  kOutput,
  kGate,
  kUp,
  kDown,
  kRouter,
  kNorms,
  kOthers,
  kAdapters,
  kEmbedding,
  kHead,
  kOuterNorms
};
template <>
inline constexpr auto kEnumNames<WeightPart> = words<14>(
    "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj router block_norms others "
    "adapters embedding head outer_norms");
constexpr std::int64_t part_bit(WeightPart part) {
  return std::int64_t{1} << static_cast<int>(part);
}
inline constexpr std::int64_t kAttentionWeights = 0b0001111, kMlpWeights = 0b1110000,
                              kLinearWeights = kAttentionWeights | kMlpWeights,
                              kBlockParts = part_bit(WeightPart::kAdapters) - 1,
                              kAllParts = 2 * part_bit(WeightPart::kOuterNorms) - 1;

// Returns the parts of a set of bits, and the set.
inline std::vector<WeightPart> listed_parts(std::int64_t bits) {
  std::vector<WeightPart> parts;
  for (const WeightPart part : all_of<WeightPart>()) {
    if ((bits & part_bit(part)) != 0) parts.push_back(part);
  }
  return parts;
}
inline std::int64_t parts_in(const std::vector<WeightPart>& parts) {
  std::int64_t bits = 0;
  for (const WeightPart part : parts) bits |= part_bit(part);
  return bits;
}

// The part of a model's shape that may differ between blocks.
struct BlockShape {
  MixerKind mixer = MixerKind::kAttention;
  AttentionShape attention = {};
  RecurrentShape recurrent = {};
  // Width of one branch (gated kinds have two) and, in MoE blocks, of one expert. 0: the block has
  // no feed-forward part.
  std::int64_t ffn_hidden = 0;
  ExpertShape experts = {};
  // With MixerKind::kPlanned: the ops of the mixer. With another mixer: additional ops on the
  // block's input.
  std::vector<PlannedOp> planned = {};
  // Bits of WeightPart: the weights that a run may train; trained_model() in finetune.h drops those
  // that its options freeze, and sets has_backward. Without a backward, nothing is trained in the
  // block or below.
  std::int64_t trained = kAllParts;
  bool has_backward = true;
  friend bool operator==(const BlockShape&, const BlockShape&) = default;
};

}  // namespace tpsim
