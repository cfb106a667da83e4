// What the readers of config.json share: keys that many families spell alike, patterns over layers,
// and the table of families. Internal to core/.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/json/json_fields.h"
#include "core/json/json_value.h"
#include "core/model/model_spec.h"

namespace tpsim {

// A file that is being read. `layers` starts as one block for each layer, all alike, when a
// family's reader has read the sizes (see spread()); what differs is set there.
struct Config {
  FieldReader& in;
  ModelSpec& model;
  std::vector<BlockShape> layers;

  std::int64_t integer(std::string_view key, std::int64_t otherwise, IntRange range = {});
  double number(std::string_view key, double otherwise, NumberRange range);
  // The class's value where the key is absent, 0 where it is null.
  std::int64_t integer_or_none(std::string_view key, std::int64_t otherwise, IntRange range = {});
  double number_or_none(std::string_view key, double otherwise, NumberRange range);
  bool flag(std::string_view key, bool otherwise);
  std::string text(std::string_view key, std::string otherwise);
  // What cannot be expressed when it is anything but `only`.
  void require_flag(std::string_view key, bool only, std::string_view why);
  void require_text(std::string_view key, std::string_view only);
  // A list of another length than that of the layers.
  void reject_length(std::string_view key, std::size_t length);
  // A key that is known, and of which nothing here depends.
  void pass_over(std::string_view key) { in.has(key); }
  void note(std::string text) { model.notes.push_back(std::move(text)); }
};

inline constexpr NumberRange kDropoutRange{0, 0.99};
inline constexpr IntRange kLayerRange{1, 1 << 14};
inline constexpr IntRange kExpertRange{1, 1 << 16};
inline constexpr IntRange kPositionRange{1, std::int64_t{1} << 24};

// Under which keys a file says the sizes that no class has a default for; empty: not at all.
struct SizeKeys {
  std::string_view hidden = "hidden_size", ffn = "intermediate_size";
  std::string_view layers = "num_hidden_layers", heads = "num_attention_heads";
  std::string_view vocab = "vocab_size";
};
inline constexpr SizeKeys kGpt2Sizes{"n_embd", "", "n_layer", "n_head"};
void read_sizes(Config& config, const SizeKeys& keys);

// What a family's class takes where the file says nothing.
struct Defaults {
  std::int64_t head_dim = 0;  // 0: hidden / heads
  std::int64_t positions = 4096;
  double rope_theta = 10000;
  double epsilon = 1e-6;
  bool tied = false;
  std::int64_t vocab = 0;  // 0: the file says it
  // Under which keys a file says these.
  SizeKeys sizes = {};
  std::string_view epsilon_key = "rms_norm_eps";
  std::string_view activation_key = "hidden_act";  // empty: the family reads it by itself
  MlpKind mlp = MlpKind::kSwiglu;                  // the only one that the family has
};

// Sizes, heads, head_dim, rotary base and scaling, norm epsilon, context, tied embedding: the keys
// of LLaMA, which most later families took over. RMSNorm, SwiGLU, no biases.
void read_llama_keys(Config& config, const Defaults& defaults);
// "max_position_embeddings" or another key: the context, and the sequence to train on.
void read_positions(Config& config, std::string_view key, std::int64_t otherwise);
// rope_theta and rope_scaling, or rope_parameters; `heads_of` is what is turned.
void read_rotary(Config& config, AttentionShape& attention, double theta);
void read_attention_dropout(Config& config);
// Of the branches and of the embedding: one rate here.
void read_dropouts(Config& config, std::string_view branches, std::string_view embedding,
                   double otherwise);
// Of all four projections of attention; with llama_biases() mlp_bias too.
void attention_biases(Config& config, std::string_view key = "attention_bias",
                      bool otherwise = false);
void llama_biases(Config& config);
// The activation by its name, one of those that the family can have; the first where it is absent.
using Activations = std::vector<std::pair<std::string_view, MlpKind>>;
void read_activation(Config& config, std::string_view key, const Activations& known);
// head_dim where a family shares the width out evenly.
void share_width(Config& config, std::string_view hidden_key);

// config.layers: as many of the model's block as there are layers.
void spread(Config& config);
// Of which layers a list of texts says `word`; empty where the key is absent. Other words than
// `word` and `other` and another length than that of the layers are errors.
std::vector<bool> layers_that_say(Config& config, std::string_view key, std::string_view word,
                                  std::string_view other);
// Gives a window to the layers that layer_types calls sliding, or to those that `slides` says where
// it is absent; which they are.
std::vector<bool> sliding_layers(Config& config, std::int64_t window,
                                 const std::function<bool(std::int64_t)>& slides);
// mlp_only_layers and decoder_sparse_step of Qwen's, after spread(): the others have experts.
void qwen_dense_layers(Config& config, std::int64_t dense_width);
// no_rope_layers, after spread(): whether each layer turns its queries and keys; by default all but
// every no_rope_layer_interval-th.
std::vector<bool> rotary_layers(Config& config);

// Reads kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim and v_head_dim of latent attention, and
// sets head_dim and kv_heads. The keys are required; q_lora_rank is not read.
void read_latent_sizes(Config& config);
// Experts of the given keys; a token cannot choose more than there are.
void read_experts(Config& config, std::string_view count, std::string_view per_token);
// After spread(): a layer that has a dense feed-forward part instead.
void make_dense(Config& config, std::int64_t layer, std::int64_t width);
// n_group, topk_group, norm_topk_prob, routed_scaling_factor, shared experts: DeepSeek's keys,
// which others took over; then the dense layers of first_k_dense_replace.
void deepseek_experts(Config& config);
void deepseek_dense_layers(Config& config, std::int64_t dense_width);
// Scores over all experts; norm_topk_prob.
void softmax_router(Config& config, bool renormalises);
// Scores that are sigmoids, with a bias that counts for the choice alone.
void sigmoid_router(RouterShape& router);
// Granite's multipliers; those of what a branch adds are fused with its residual.
void granite_multipliers(Config& config);
void note_residual_multiplier(Config& config, std::string_view key, double value);
// Families that others repeat under another name.
void read_qwen2(Config& config);
void read_qwen3(Config& config);
void read_qwen3_moe(Config& config);
void read_glm4(Config& config);
void read_glm4_moe(Config& config);
void read_olmo2(Config& config);
void read_deepseek_v3(Config& config);
void read_minimax_text(Config& config);
void make_recurrent(BlockShape& block, MixerKind mixer, const RecurrentShape& recurrent);

// num_nextn_predict_layers.
void read_prediction_layers(Config& config);

// Qwen, after spread(): a number that counts only where use_sliding_window says so, in the layers
// from max_window_layers on or those of layer_types.
void qwen_windows(Config& config);

inline constexpr auto kWholeOp = PlannedSharding::kWhole;
inline constexpr auto kTokensOp = PlannedSharding::kTokens;
inline constexpr auto kRowsOp = PlannedSharding::kRows;
inline constexpr auto kColumnsOp = PlannedSharding::kColumns;
// Planned ops (core/model/planned_op.h): a matrix [width, columns], and a pass over `moved`
// elements a token of which `width` stay for backward.
PlannedOp planned_linear(std::string name, PlannedSharding sharding, std::int64_t width,
                         std::int64_t columns, std::int64_t parameters = 0);
PlannedOp planned_pass(std::string name, PlannedSharding sharding, std::int64_t moved,
                       std::int64_t width = 0, std::int64_t parameters = 0);
// An indexer's scores between queries and keys that stand for `stride` positions each, of which
// `chosen` are kept; every tensor-parallel rank computes all of them.
PlannedOp planned_scores(std::int64_t heads, std::int64_t dim, std::int64_t stride,
                         std::int64_t chosen);
// The lightning indexer of DeepSeek-V3.2 (index_n_heads, index_head_dim, index_topk), after the
// blocks are set: all layers choose positions, those of indexer_types "full" compute the choice.
void add_lightning_indexers(Config& config);

// The vision and audio encoders that stand beside the text part, as planned parts of the first
// stage. What is not understood is named in ModelSpec::notes.
void read_encoders(const JsonValue& root, const std::string& file, ModelSpec& model);

// The class's rule for every layer: a list of numbers, or of words of which `word` says yes; empty
// where the key is absent.
std::vector<bool> flags_of_layers(Config& config, std::string_view key);

// Null, false, zero, and what is empty change nothing.
bool is_neutral(const JsonValue& value);
// Names what the family's reader left: what would change the plan is refused, unless it says what
// the model has anyway; what is not known is noted.
void name_what_was_left(Config& config, const std::string& type);

// Such a file holds many keys that do not shape the training step; they are passed over. Keys that
// do must have the right kind and range, and what ModelSpec cannot express is an error, as is a key
// that shapes another family's step. What is left over is named in ModelSpec::notes. Of a model of
// several senses the part under "text_config" is read. The training sequence is as long as the
// context that the file states (bloom: seq_length or 2048). A config.json is named for its folder.
Result<ModelSpec> model_from_huggingface(const JsonValue& root, const std::string& file);

using FamilyReader = void (*)(Config&);
struct Family {
  std::string_view type;  // model_type
  FamilyReader read;
};
std::span<const Family> dense_families();
std::span<const Family> classic_families();
std::span<const Family> expert_families();
std::span<const Family> hybrid_families();
std::span<const Family> newer_families();
std::span<const Family> older_families();
std::span<const Family> sparse_families();
std::span<const Family> window_families();
std::span<const Family> linear_families();

}  // namespace tpsim
