// Megatron-LM's options for layers of different widths, or without a branch, as JSON in the format
// of Nemotron's Hugging Face configuration.
//
// Sources: validate_model_config_args_from_heterogeneous_config() in megatron/training/arguments.py
// and megatron/core/transformer/heterogeneous/heterogeneous_config.py of Megatron-LM d98e8a6.
#include <fmt/format.h>

#include "core/software/launched_models.h"
#include "frameworks/launch/megatron_options.h"

namespace tpsim {
namespace {

std::string branch_text(std::string_view name, const std::string& size, bool is_absent) {
  return fmt::format(R"("{}":{},"no_op":{},"replace_with_linear":false)", name,
                     is_absent ? "null" : size, is_absent);
}

std::string block_text(const BlockShape& block) {
  const AttentionShape& attention = block.attention;
  const bool attends = block.mixer == MixerKind::kAttention;
  const std::int64_t heads_in_group = attends ? attention.heads / attention.kv_heads : 0;
  return fmt::format(
      R"({{"attention":{{{}}},"ffn":{{{}}}}})",
      branch_text("n_heads_in_group", fmt::format("{}", heads_in_group), !attends),
      branch_text("ffn_hidden_size", fmt::format("{}", block.ffn_hidden), block.ffn_hidden == 0));
}

std::string layers_json(const ModelSpec& model) {
  const AttentionShape& attention = attention_shape(model);
  std::string blocks;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    if (layer > 0) blocks += ",";
    blocks += block_text(block_of_kind(model, block_kind(model, layer)));
  }
  return fmt::format(
      R"({{"hidden_act":"silu","num_hidden_layers":{},"hidden_size":{},"num_attention_heads":{},)"
      R"("tie_word_embeddings":{},"rope_theta":{},"rope_scaling":{{"factor":{}}},)"
      R"("block_configs":[{}]}})",
      model.layers, model.hidden, attention.heads, model.tied_embedding, attention.rope_theta,
      attention.rotary.stretch.factor, blocks);
}

}  // namespace

bool states_layers_in_json(const ModelSpec& model) {
  return !has_megatron_layers(model) && is_heterogeneous(model);
}

void add_heterogeneous_layers(const ModelSpec& model, LaunchOptions& out) {
  if (!states_layers_in_json(model)) return;
  // The path selects the kind of layers. The JSON takes precedence over the file at the path, as in
  // a run that continues from a checkpoint.
  out.add(kHeterogeneousPath, std::string("encoded"));
  out.add(kHeterogeneousJson, layers_json(model));
  out.add("--use-rope-scaling");
  out.add("--rope-scaling-factor", fmt::format("{}", attention_shape(model).rotary.stretch.factor));
}

}  // namespace tpsim
