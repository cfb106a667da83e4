// Helpers of the readers of config.json: common keys, patterns over layers and the table of
// families. Internal to core/.
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

// A config.json while it is read. `layers` is empty until a family's reader calls spread(), which
// makes one identical block per layer. The reader then changes the blocks that differ.
struct Config {
  FieldReader& in;
  ModelSpec& model;
  std::vector<BlockShape> layers;

  std::int64_t integer(std::string_view key, std::int64_t otherwise, IntRange range = {});
  double number(std::string_view key, double otherwise, NumberRange range);
  // Returns `otherwise` if the key is absent, 0 if the value is null.
  std::int64_t integer_or_none(std::string_view key, std::int64_t otherwise, IntRange range = {});
  double number_or_none(std::string_view key, double otherwise, NumberRange range);
  bool flag(std::string_view key, bool otherwise);
  std::string text(std::string_view key, std::string otherwise);
  // Error if the value differs from `only`, since ModelSpec cannot express other values.
  void require_flag(std::string_view key, bool only, std::string_view why);
  void require_text(std::string_view key, std::string_view only);
  // Adds the error that list `key` has `length` entries and not one per layer.
  void reject_length(std::string_view key, std::size_t length);
  // Marks a key as read without using its value.
  void pass_over(std::string_view key) { in.has(key); }
  void note(std::string text) { model.notes.push_back(std::move(text)); }
};

inline constexpr NumberRange kDropoutRange{0, 0.99};
inline constexpr IntRange kLayerRange{1, 1 << 14};
inline constexpr IntRange kExpertRange{1, 1 << 16};
inline constexpr IntRange kPositionRange{1, std::int64_t{1} << 24};

// Keys of the sizes that a config.json must state. Empty: the family's files do not state this
// size.
struct SizeKeys {
  std::string_view hidden = "hidden_size", ffn = "intermediate_size";
  std::string_view layers = "num_hidden_layers", heads = "num_attention_heads";
  std::string_view vocab = "vocab_size";
};
inline constexpr SizeKeys kGpt2Sizes{"n_embd", "", "n_layer", "n_head"};
void read_sizes(Config& config, const SizeKeys& keys);

// Values of keys that a file omits: the defaults of the family's configuration class.
struct Defaults {
  std::int64_t head_dim = 0;  // 0: hidden / heads
  std::int64_t positions = 4096;
  double rope_theta = 10000;
  double epsilon = 1e-6;
  bool tied = false;
  std::int64_t vocab = 0;  // 0: stated in the file
  // The keys of these values.
  SizeKeys sizes = {};
  std::string_view epsilon_key = "rms_norm_eps";
  std::string_view activation_key =
      "hidden_act";                // empty: the family's reader reads the activation
  MlpKind mlp = MlpKind::kSwiglu;  // the only kind of the family
};

// Reads the keys of LLaMA, which most later families share: sizes, heads, head_dim, rotary base and
// scaling, norm epsilon, context, tied embedding. Sets RMSNorm, SwiGLU and no biases.
void read_llama_keys(Config& config, const Defaults& defaults);
// Reads the context length from `key`, such as "max_position_embeddings"; the default is
// `otherwise`. Sets the training sequence length to the same value, its upper limit.
void read_positions(Config& config, std::string_view key, std::int64_t otherwise);
// Reads rope_theta and rope_scaling, or rope_parameters. `theta` is the default base.
void read_rotary(Config& config, AttentionShape& attention, double theta);
void read_attention_dropout(Config& config);
// Reads the dropout rates of branches and embedding from these two keys. They must be equal.
void read_dropouts(Config& config, std::string_view branches, std::string_view embedding,
                   double otherwise);
// Sets the biases of all four attention projections. llama_biases() also reads mlp_bias.
void attention_biases(Config& config, std::string_view key = "attention_bias",
                      bool otherwise = false);
void llama_biases(Config& config);
// Reads the activation, one of those in `known`; the first if the key is absent.
using Activations = std::vector<std::pair<std::string_view, MlpKind>>;
void read_activation(Config& config, std::string_view key, const Activations& known);
// Sets head_dim for families that divide the hidden size evenly among heads.
void share_width(Config& config, std::string_view hidden_key);

// Sets config.layers to one copy of the model's block per layer.
void spread(Config& config);
// Returns which layers have `word` in a list of texts; empty if the key is absent. Words other than
// `word` and `other`, and a wrong number of entries, are errors.
std::vector<bool> layers_that_say(Config& config, std::string_view key, std::string_view word,
                                  std::string_view other);
// Sets the window of the layers that layer_types calls sliding or, if absent, of those for which
// `slides` is true. Returns which layers have a window.
std::vector<bool> sliding_layers(Config& config, std::int64_t window,
                                 const std::function<bool(std::int64_t)>& slides);
// Reads Qwen's mlp_only_layers and decoder_sparse_step and makes the layers that they select dense.
// Call after spread().
void qwen_dense_layers(Config& config, std::int64_t dense_width);
// Reads no_rope_layers. Returns, per layer, whether it rotates queries and keys. Default: all but
// every no_rope_layer_interval-th layer. Call after spread().
std::vector<bool> rotary_layers(Config& config);

// Reads kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim and v_head_dim of latent attention, and
// sets head_dim and kv_heads. All four keys are required; q_lora_rank is not read.
void read_latent_sizes(Config& config);
// Reads the experts from the given keys; error if per_token exceeds the count.
void read_experts(Config& config, std::string_view count, std::string_view per_token);
// Gives a layer a dense feed-forward part, after spread().
void make_dense(Config& config, std::int64_t layer, std::int64_t width);
// Reads DeepSeek's keys of experts, which other families use too: n_group, topk_group,
// norm_topk_prob, routed_scaling_factor, shared experts. deepseek_dense_layers() makes the first
// first_k_dense_replace layers dense, by default `usual`.
void deepseek_experts(Config& config);
void deepseek_dense_layers(Config& config, std::int64_t dense_width, std::int64_t usual = 0);
// Sets softmax scores over all experts. Reads norm_topk_prob, by default `renormalises`.
void softmax_router(Config& config, bool renormalises);
// Sets sigmoid scores, with a correction bias for the selection only.
void sigmoid_router(RouterShape& router);
// Reads Granite's multipliers. The residual multiplier takes no time: it is fused with the residual
// addition.
void granite_multipliers(Config& config);
void note_residual_multiplier(Config& config, std::string_view key, double value);
// Readers of families that other families use too.
void read_qwen2(Config& config);
void read_qwen3(Config& config);
void read_qwen3_moe(Config& config);
void read_glm4(Config& config);
void read_glm4_moe(Config& config);
void read_olmo2(Config& config);
void read_deepseek_v3(Config& config);
void read_minimax_text(Config& config);
void make_recurrent(BlockShape& block, MixerKind mixer, const RecurrentShape& recurrent);

// Reads num_nextn_predict_layers.
void read_prediction_layers(Config& config);

// Sets Qwen's window if use_sliding_window is true. The layers that layer_types calls sliding have
// the window, or by default those from max_window_layers on. Call after spread().
void qwen_windows(Config& config);

inline constexpr auto kWholeOp = PlannedSharding::kWhole;
inline constexpr auto kTokensOp = PlannedSharding::kTokens;
inline constexpr auto kRowsOp = PlannedSharding::kRows;
inline constexpr auto kColumnsOp = PlannedSharding::kColumns;
// Make planned ops (core/model/planned_op.h). planned_linear(): a matrix [width, columns].
// planned_pass(): an elementwise pass over `moved` elements per token, of which `width` are saved
// for backward.
PlannedOp planned_linear(std::string name, PlannedSharding sharding, std::int64_t width,
                         std::int64_t columns, std::int64_t parameters = 0);
PlannedOp planned_pass(std::string name, PlannedSharding sharding, std::int64_t moved,
                       std::int64_t width = 0, std::int64_t parameters = 0);
// Makes the planned op of an indexer's scores between queries and keys. A key stands for `stride`
// positions. Each query selects `chosen` keys. Every tensor-parallel rank computes all scores.
PlannedOp planned_scores(std::int64_t heads, std::int64_t dim, std::int64_t stride,
                         std::int64_t chosen);
// Adds the lightning indexer of DeepSeek-V3.2 (index_n_heads, index_head_dim, index_topk). Layers
// of indexer_types "full" select positions; all layers attend only to selected positions. Call
// after the blocks are set.
void add_lightning_indexers(Config& config);

// Reads the vision and audio encoders of a multimodal model as planned parts of the first stage.
// ModelSpec::notes names encoders that cannot be read.
void read_encoders(const JsonValue& root, const std::string& file, ModelSpec& model);

// Reads a list of one 0/1 number per layer; empty if the key is absent.
std::vector<bool> flags_of_layers(Config& config, std::string_view key);

// Whether a value is null, false, zero or empty. A key with such a value has no effect.
bool is_neutral(const JsonValue& value);
// Handles the keys that the family's reader did not read. A key that would change the plan is an
// error unless it repeats the model's value; unknown keys are noted.
void name_what_was_left(Config& config, const std::string& type);

// Reads a config.json. Keys that affect the training step must have the right kind and range. A
// value that ModelSpec cannot express is an error, and so is a key that affects the step of another
// family only. Keys known to have no effect are ignored; ModelSpec::notes names unknown ones. For a
// multimodal model, "text_config" is read. The training sequence is that of the family's
// pretraining, at most 8,192 tokens and the context that the file states (bloom: seq_length or
// 2048). The model of a file named config.json gets the name of its folder.
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
