// The config.json of Hugging Face models, family by family.
#pragma once

#include <string>

#include "core/json_value.h"
#include "core/model_spec.h"
#include "core/result.h"

namespace tpsim {

// Such a file holds many keys that do not shape the training step; they are passed over. Keys that
// do must have the right kind and range, and what ModelSpec cannot express is an error, as is a key
// that shapes another family's step. What is left over is named in ModelSpec::notes. Of a model of
// several senses the part under "text_config" is read. The training sequence is as long as the
// context that the file states (bloom: seq_length or 2048). A config.json is named for its folder.
Result<ModelSpec> model_from_huggingface(const JsonValue& root, const std::string& file);

}  // namespace tpsim
