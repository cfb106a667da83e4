// Model files: {"format": "tpsim-model/1", ...}, and the config.json of Hugging Face models.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/model/model_spec.h"

namespace tpsim {

// Reads both kinds: a file with "format" is a tpsim model, one with "model_type" is Hugging Face's
// (core/model/huggingface_reader.h). The returned model has passed validate().
Result<ModelSpec> read_model(const std::filesystem::path& path);
Result<ModelSpec> parse_model(std::string_view text, const std::string& file);

std::string to_json(const ModelSpec& model);

// The JSON schema of model files.
JsonValue model_schema();

}  // namespace tpsim
