// The shapes that a transformer block is put together from. Plain values, no parallelism.
//
// What a field is left at says what most models do: full causal attention, no norm of q and k, a
// feed-forward part that every token passes.
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
inline constexpr auto kEnumNames<PositionKind> =
    std::to_array<std::string_view>({"alibi", "learned", "rotary", "none"});
enum class NormKind : std::uint8_t { kLayerNorm, kRmsNorm };
template <>
inline constexpr auto kEnumNames<NormKind> = std::to_array<std::string_view>({"layer_norm",
                                                                              "rms_norm"});
// Plain (up, activation, down) or gated (down(activation(gate) * up)): see is_gated(). kGelu and
// kGeglu have GELU's tanh form, kGeluErf the exact one; kClampedSwiglu is GPT-OSS's:
// (up + 1) * gate * sigmoid(1.702 gate) with gate <= limit and |up| <= limit. kXielu (Apertus, two
// trained numbers a layer) is plain and kSitu (Kimi K3) is gated; both are planned, not executed.
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
    std::to_array<std::string_view>({"gelu", "swiglu", "gelu_erf", "relu", "relu_squared", "geglu",
                                     "clamped_swiglu", "xielu", "situ"});
constexpr bool is_gated(MlpKind mlp) {
  return mlp == MlpKind::kSwiglu || mlp == MlpKind::kGeglu || mlp == MlpKind::kClampedSwiglu ||
         mlp == MlpKind::kSitu;
}

enum class RotaryScaling : std::uint8_t { kNone, kLinear, kLlama3, kYarn, kLongRope };
template <>
inline constexpr auto kEnumNames<RotaryScaling> =
    std::to_array<std::string_view>({"none", "linear", "llama3", "yarn", "longrope"});
// How rotary frequencies are stretched for longer contexts. Of each kind some fields count; the
// formulas: reference_model/layers/rotary_table.h.
struct RotaryStretch {
  RotaryScaling kind = RotaryScaling::kNone;
  double factor = 1;
  std::int64_t original_positions = 0;  // llama3, yarn, longrope: what the model was trained on
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn
  bool truncate = true;                              // yarn: whole numbers between the betas
  double mscale = 0, mscale_all_dim = 0;             // yarn; 0: not given
  double attention_factor = 0;                       // 0: by the formula
  std::vector<double> short_factors, long_factors;   // longrope, one for each frequency
  friend bool operator==(const RotaryStretch&, const RotaryStretch&) = default;
};
struct RotaryShape {
  double fraction = 1;      // of a head's entries that turn, the first ones
  bool neighbours = false;  // pairs (2i, 2i + 1) in place of (i, i + half)
  RotaryStretch stretch = {};
  friend bool operator==(const RotaryShape&, const RotaryShape&) = default;
};

// Norms of queries and keys: RMSNorm of each head before the rotary turn; the same without weights
// after it (LLaMA 4); RMSNorm of all heads at once (OLMo 2); LayerNorm of each head with weights of
// its own (Cohere).
enum class QkNorm : std::uint8_t { kNone, kHead, kPlain, kWidth, kEachHead };
template <>
inline constexpr auto kEnumNames<QkNorm> = std::to_array<std::string_view>({"none", "head", "plain",
                                                                            "width", "each_head"});

// From q'k to a probability, beyond the usual scale of head_dim^-1/2.
struct ScoreShape {
  double scale = 0;        // 0: head_dim^-1/2
  double cap = 0;          // scores become cap tanh(score / cap); 0: none
  bool sinks = false;      // one more score for each head, whose probability goes nowhere
  double temperature = 0;  // q times 1 + temperature ln(1 + floor((position + 1) / floor));
  std::int64_t temperature_floor = 1;  // 0: not scaled
  friend bool operator==(const ScoreShape&, const ScoreShape&) = default;
};

// Multi-head latent attention (DeepSeek-AI 2024, section 2.1): keys and values are projected up
// from one latent of each token; a part of every key, which carries the position, is shared by all
// heads. head_dim is nope_dim + rope_dim.
struct LatentShape {
  std::int64_t q_rank = 0;   // 0: queries have one matrix
  std::int64_t kv_rank = 0;  // 0: no latent attention
  std::int64_t nope_dim = 0, rope_dim = 0, value_dim = 0;
  friend bool operator==(const LatentShape&, const LatentShape&) = default;
};

// The source of keys and values: matrices of their own; one matrix for both (Gemma 4's layers
// without window); an earlier layer of the same kind (Gemma 4's last layers).
enum class KeyValueSource : std::uint8_t { kProjected, kSameMatrix, kEarlierLayer };
template <>
inline constexpr auto kEnumNames<KeyValueSource> =
    std::to_array<std::string_view>({"projected", "same_matrix", "earlier_layer"});

struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // == heads without grouped-query attention
  std::int64_t head_dim = 0;
  PositionKind position = PositionKind::kAlibi;
  double rope_theta = 10000.0;  // rotary only
  RotaryShape rotary = {};
  std::int64_t window = 0;  // positions that a query sees, itself among them; 0: all before it
  std::int64_t chunk = 0;   // it sees those of its own chunk of this length; 0: no chunks
  // Positions that an indexer chooses for every query (DeepSeek-V3.2); 0: it sees all. The indexer
  // is among BlockShape::planned.
  std::int64_t chosen = 0;
  QkNorm qk_norm = QkNorm::kNone;
  ScoreShape score = {};
  LatentShape latent = {};
  bool qkv_bias = false;       // also where ModelSpec::linear_bias is false
  bool output_bias = false;    // likewise
  bool output_gate = false;    // what the core gives times sigmoid of a second projection, as wide
  std::int64_t value_dim = 0;  // width of a value head; 0: head_dim. Latent attention has its own
  KeyValueSource key_values = KeyValueSource::kProjected;
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

// What turns a router's logits into weights. kChosen: softmax over the chosen ones (of one alone:
// its share of the softmax over all). kAll: softmax over all. kSigmoid: of each by itself.
enum class RouterScore : std::uint8_t { kChosen, kAll, kSigmoid };
template <>
inline constexpr auto kEnumNames<RouterScore> = std::to_array<std::string_view>({"chosen", "all",
                                                                                 "sigmoid"});
struct RouterShape {
  RouterScore score = RouterScore::kChosen;
  bool renormalises = false;     // weights of a token add up to 1 (kAll, kSigmoid)
  double scaling = 1;            // of the weights, after that
  bool correction_bias = false;  // added to the scores for the choice alone; a buffer, not trained
  std::int64_t groups = 1;       // experts in runs, of which the best `groups_kept` stay
  std::int64_t groups_kept = 1;
  bool bias = false;          // of the router's matrix
  bool scales_input = false;  // the weight multiplies what goes into the expert (LLaMA 4)
  friend bool operator==(const RouterShape&, const RouterShape&) = default;
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
  // No token passes an expert by, however many choose it. Plans count on balanced experts, as with
  // a capacity factor of 1.
  bool dropless = false;
  RouterShape router = {};
  std::int64_t shared_ffn = 0;  // width of an expert that every token passes; 0: none
  bool shared_gate = false;     // its output times sigmoid(w'x)
  // Tokens are projected down to this width before they are sent to experts, and up again when they
  // have come back (LatentMoE of Nemotron 3); the router and the shared expert see them whole. 0:
  // no.
  std::int64_t latent = 0;
  bool bias = false;  // in every expert's matrices
  // Tokens that each expert got in a measured run: those of one block, or block after block. Empty:
  // nobody counted.
  std::vector<double> counts = {};
  friend bool operator==(const ExpertShape&, const ExpertShape&) = default;
};

// What takes tokens together: attention, a recurrence, or nothing (a block that is a feed-forward
// part alone). kPlanned: the block's planned ops, of which the last linear one with columns shared
// gives the result.
enum class MixerKind : std::uint8_t { kAttention, kMamba2, kDeltaNet, kNone, kPlanned };
template <>
inline constexpr auto kEnumNames<MixerKind> =
    std::to_array<std::string_view>({"attention", "mamba2", "delta_net", "none", "planned"});
// Mamba-2 (Dao & Gu 2024), gated delta nets (Yang et al. 2024) and Kimi's delta attention, whose
// decay is one of each channel.
struct RecurrentShape {
  std::int64_t heads = 0;        // of the values
  std::int64_t key_heads = 0;    // of the keys; Mamba-2 calls them groups
  std::int64_t key_dim = 0;      // of a head's state; Mamba-2: ssm_state_size
  std::int64_t value_dim = 0;    // of a head
  std::int64_t convolution = 0;  // positions that the short convolution takes together
  bool convolution_bias = false;
  std::int64_t chunk = 128;  // tokens that the scan takes together
  // Delta nets: a decay of each channel of a key in place of one of each head. The matrices that
  // project these decays are among BlockShape::planned.
  bool channel_decay = false;
  // Delta nets: the gate of the output has a matrix as wide as the values. Otherwise its matrices
  // are among BlockShape::planned.
  bool wide_gate = true;
  friend bool operator==(const RecurrentShape&, const RecurrentShape&) = default;
};

// What may differ from block to block of a model.
struct BlockShape {
  MixerKind mixer = MixerKind::kAttention;
  AttentionShape attention = {};
  RecurrentShape recurrent = {};
  // Of one branch (gated ones have two of this width) and of one expert, where there are experts; 0
  // where a block has no feed-forward part.
  std::int64_t ffn_hidden = 0;
  ExpertShape experts = {};
  // Ops of the mixer kPlanned, or ops that run beside another mixer on the block's input.
  std::vector<PlannedOp> planned = {};
  friend bool operator==(const BlockShape&, const BlockShape&) = default;
};

}  // namespace tpsim
