// Whether a training program supports a model, according to its arguments and model registries.
//
// Sources: megatron/training/arguments.py and megatron/core/transformer/transformer_config.py of
// Megatron-LM d98e8a6; models/*/*_bridge.py of Megatron-Bridge 067f987; torchtitan/models of
// torchtitan b5bcd76.
#pragma once

#include <optional>
#include <vector>

#include "core/model/model_spec.h"

namespace tpsim {

// Returns the shape of each kind of block.
std::vector<BlockShape> block_shapes(const ModelSpec& model);
// Returns the letter of a layer in Megatron's pattern of a hybrid model, such as "M" for Mamba-2.
char layer_letter(const BlockShape& block);

// Whether attention has no window, q and k norm, latents, score cap, sinks or separate biases.
bool has_plain_attention(const ModelSpec& model);

// Whether Megatron-LM's arguments can express this part of the model.
bool has_megatron_attention(const ModelSpec& model);
bool has_megatron_router(const ModelSpec& model);
bool has_megatron_activation(const ModelSpec& model);
// Whether layers differ only in experts, window or mixer, or form a hybrid pattern.
bool has_megatron_layers(const ModelSpec& model);
// Whether layers differ in the width of a dense feed-forward part, or lack one of the two branches,
// as the Nemotron models of a neural architecture search. Megatron-LM describes such layers in JSON
// (validate_model_config_args_from_heterogeneous_config() in megatron/training/arguments.py).
bool is_heterogeneous(const ModelSpec& model);
// Whether all linear layers have biases, only q, k and v, or none.
bool has_megatron_biases(const ModelSpec& model);
// Whether the part encodes images or sounds. Other parts are tables.
bool is_encoder(const OuterPart& part);
bool has_encoders(const ModelSpec& model);
// Whether planned ops are only those of DeepSeek sparse attention's indexers, in indexed_layers().
// False for models with residual streams or parts outside the blocks other than encoders, which
// pretrain_gpt.py leaves out.
bool has_megatron_parts(const ModelSpec& model);

// The layers that have an indexer in DeepSeek sparse attention. The others use the indices of the
// layer before them. Source: is_dsa_skip_topk_layer() in
// megatron/core/transformer/experimental_attention_variant/dsa.py.
struct IndexedLayers {
  std::int64_t offset = 0;     // the first layers, all with an indexer
  std::int64_t frequency = 1;  // of the further layers, every frequency-th has an indexer
};
// Returns the pattern of the indexers; nothing if Megatron-LM's options cannot express it.
std::optional<IndexedLayers> indexed_layers(const ModelSpec& model);
// Whether `layer`, from 1, has no indexer.
bool shares_indices(const IndexedLayers& layers, std::int64_t layer);

// Whether every block has only one branch, a mixer or a feed-forward part, as in Nemotron-H.
bool is_hybrid_pattern(const ModelSpec& model);
// Whether every linear layer has a bias, through linear_bias or through the fields of each part.
bool has_all_biases(const ModelSpec& model);
// Returns the attention of the first block kind with attention; that of kind 0 if there is none.
const AttentionShape& attention_shape(const ModelSpec& model);

// Whether Megatron-LM's arguments can express the model: all has_megatron_...() are true, norms are
// before the branches, and has_plain_ends().
bool has_megatron_shape(const ModelSpec& model);
// Whether settings of Megatron-Bridge's GPTModelProvider can express the model: what Megatron-LM's
// arguments can, and ReLU.
bool has_bridge_options(const ModelSpec& model);
// Whether embeddings and logits are neither scaled nor capped, and the head has no bias.
bool has_plain_ends(const ModelSpec& model);
// Whether the blocks are LLaMA's: rotary positions, RMSNorm, SwiGLU and no biases.
bool has_llama_blocks(const ModelSpec& model);
// Whether the model has the layers of a family in torchtitan's registry: llama3, qwen3,
// deepseek_v3, gpt_oss or qwen3_5.
bool has_titan_layers(const ModelSpec& model);
// Whether Megatron-Bridge converts checkpoints of the model's family, and therefore has its layers.
bool has_bridge(const ModelSpec& model);

}  // namespace tpsim
