// Model files: {"format": "tpsim-model/1", ...}, and the config.json of Hugging Face models.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/model/model_spec.h"

namespace tpsim {

// Reads either kind: a file with "format" is ours, one with "model_type" is Hugging Face's (see
// core/model/huggingface_family.h). The model returned has passed validate().
Result<ModelSpec> read_model(const std::filesystem::path& path);
Result<ModelSpec> parse_model(std::string_view text, const std::string& file);

std::string to_json(const ModelSpec& model);

// The JSON schema of its files.
JsonValue model_schema();

}  // namespace tpsim
