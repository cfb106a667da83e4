// The config.json of Hugging Face models: bloom, gpt2, llama and mixtral.
#pragma once

#include <string>

#include "core/json_value.h"
#include "core/model_spec.h"
#include "core/result.h"

namespace tpsim {

// Such a file holds many keys that do not shape the training step; they are passed over. Keys that
// do must have the right kind and range, and what ModelSpec cannot express (another activation,
// biases on a part of the matrices) is an error. The training sequence length, which these files
// do not state, is bloom: seq_length or 2048; gpt2: n_positions; llama and mixtral:
// max_position_embeddings but at most 8192. A config.json is named for its folder.
Result<ModelSpec> model_from_huggingface(const JsonValue& root, const std::string& file);

}  // namespace tpsim
