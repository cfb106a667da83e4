// Models that training programs have, as far as their arguments and registries say.
//
// Sources: megatron/training/arguments.py and megatron/core/transformer/transformer_config.py of
// Megatron-LM d98e8a6; models/*/*_bridge.py of Megatron-Bridge 067f987.
#pragma once

#include "core/model/model_spec.h"

namespace tpsim {

// Attention without window, norm of q and k, latents, cap, sinks and biases of its own.
bool has_plain_attention(const ModelSpec& model);

// What Megatron-LM's arguments can state of a model, part by part.
bool has_megatron_attention(const ModelSpec& model);
bool has_megatron_router(const ModelSpec& model);
bool has_megatron_activation(const ModelSpec& model);
// Layers that differ in experts, in the window or in the mixer alone, or a hybrid pattern.
bool has_megatron_layers(const ModelSpec& model);
// Biases of all linear layers, of q, k and v alone, or none.
bool has_megatron_biases(const ModelSpec& model);
// Planned ops are the indexers of DeepSeek sparse attention, the same in all layers.
bool has_megatron_parts(const ModelSpec& model);

// The blocks are mixers and feed-forward parts alone, one branch each, as in Nemotron-H.
bool is_hybrid_pattern(const ModelSpec& model);
// Every linear layer has a bias, whichever field of the model says so.
bool has_all_biases(const ModelSpec& model);
// The first block that attends; kind 0 if there is none.
const AttentionShape& attention_shape(const ModelSpec& model);

// Megatron-LM's arguments state every layer of the model: all of has_megatron_...().
bool has_megatron_shape(const ModelSpec& model);
// Embeddings and logits as they are: neither scaled nor capped, no bias of the head.
bool has_plain_ends(const ModelSpec& model);
// LLaMA's blocks: rotary positions, RMSNorm, SwiGLU and no biases; is_llama(): embeddings untied
// too.
bool has_llama_blocks(const ModelSpec& model);
bool is_llama(const ModelSpec& model);
// A shape of torchtitan's mixtures.
bool is_titan_mixture(const ModelSpec& model);
// Megatron-Bridge converts the checkpoints of the model's family, and so has its layers.
bool has_bridge(const ModelSpec& model);

}  // namespace tpsim
