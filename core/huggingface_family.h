// What the readers of config.json share: keys that many families spell alike, patterns over layers,
// and the table of families. Internal to core/.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_fields.h"
#include "core/model_spec.h"

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
  void note(std::string text) { model.notes.push_back(std::move(text)); }
};

inline constexpr NumberRange kDropoutRange{0, 0.99};
inline constexpr IntRange kLayerRange{1, 1 << 14};
inline constexpr IntRange kExpertRange{1, 1 << 16};
inline constexpr IntRange kPositionRange{1, std::int64_t{1} << 24};

// What a family's class takes where the file says nothing.
struct Defaults {
  std::int64_t head_dim = 0;  // 0: hidden / heads
  std::int64_t positions = 4096;
  double rope_theta = 10000;
  double epsilon = 1e-6;
  bool tied = false;
};

// Sizes, heads, head_dim, rotary base and scaling, norm epsilon, context, tied embedding: the keys
// of LLaMA, which most later families took over. RMSNorm, SwiGLU, no biases.
void read_llama_keys(Config& config, const Defaults& defaults);
// "max_position_embeddings" or another key: the context, and the sequence to train on.
void read_positions(Config& config, std::string_view key, std::int64_t otherwise);
// rope_theta and rope_scaling, or rope_parameters; `heads_of` is what is turned.
void read_rotary(Config& config, AttentionShape& attention, double theta);
void read_attention_dropout(Config& config);
// The activation by its name, one of those that the family can have; the first where it is absent.
void read_activation(Config& config, std::string_view key,
                     const std::vector<std::pair<std::string_view, MlpKind>>& known);
// head_dim where a family shares the width out evenly.
void share_width(Config& config, std::string_view hidden_key);

// config.layers: as many of the model's block as there are layers.
void spread(Config& config);
// Of which layers a list of texts says `word`; empty where the key is absent. Other words than
// `word` and `other` and another length than that of the layers are errors.
std::vector<bool> layers_that_say(Config& config, std::string_view key, std::string_view word,
                                  std::string_view other);
void set_window(Config& config, std::int64_t layer, std::int64_t window);

// num_nextn_predict_layers.
void read_prediction_layers(Config& config);

// Qwen, after spread(): a number that counts only where use_sliding_window says so, in the layers
// from max_window_layers on or those of layer_types.
void qwen_windows(Config& config);

using FamilyReader = void (*)(Config&);
struct Family {
  std::string_view type;  // model_type
  FamilyReader read;
};
std::span<const Family> dense_families();
std::span<const Family> classic_families();
std::span<const Family> expert_families();
std::span<const Family> hybrid_families();

}  // namespace tpsim
