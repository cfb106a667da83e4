#include "core/model/model_json.h"

#include "core/base/files.h"
#include "core/json/field_schema.h"
#include "core/json/json_document.h"
#include "core/json/json_fields.h"
#include "core/model/huggingface_reader.h"
#include "core/model/model_fields.h"

namespace tpsim {
namespace {

template <class Io, class Spec>
void file_fields(Io& io, Spec& model) {
  io.format("tpsim-model/1");
  model_fields(io, model);
}

// Quotes Infinity and NaN, which Python writes into JSON files although they are invalid JSON. The
// quoted value is an error only if its key is read.
std::string with_quoted_infinities(std::string_view text) {
  std::string quoted;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && (i == 0 || text[i - 1] != '\\')) in_text = !in_text;
    std::string_view found;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (!in_text && text.substr(i, word.size()) == word) found = word;
      if (!found.empty()) break;
    }
    if (found.empty()) {
      quoted += text[i];
    } else {
      quoted += '"' + std::string(found) + '"';
      i += found.size() - 1;
    }
  }
  return quoted;
}

Result<ModelSpec> model_from_json(const JsonValue& root, const std::string& file) {
  if (root.find("format") == nullptr && root.find("model_type") != nullptr) {
    return model_from_huggingface(root, file);
  }
  const bool is_object = root.as<JsonValue::Object>() != nullptr;
  if (is_object && root.find("format") == nullptr && root.find("layers") == nullptr) {
    return bad_input(
        "does not describe a model: it has neither Hugging Face's key 'model_type' nor tpsim's key "
        "'format'",
        file, "tpsim show model llama-3-8b prints an example");
  }
  TPSIM_TRY(const ModelSpec model, spec_from_json<ModelSpec>(root, file, [](auto& io, auto& spec) {
              file_fields(io, spec);
            }));
  TPSIM_TRY_STATUS(at_file(validate(model), file));
  return model;
}

}  // namespace

Result<ModelSpec> read_model(const std::filesystem::path& path) {
  TPSIM_TRY(const std::string text, read_file(path, kMostJsonBytes));
  return parse_model(text, path.string());
}

Result<ModelSpec> parse_model(std::string_view text, const std::string& file) {
  TPSIM_TRY(const JsonValue root, parse_json(with_quoted_infinities(text), file));
  return model_from_json(root, file);
}

std::string to_json(const ModelSpec& model) {
  return to_text(json_from_spec(model, [](auto& io, auto& spec) { file_fields(io, spec); }));
}

JsonValue model_schema() {
  return schema_from_fields<ModelSpec>([](auto& io, auto& spec) { file_fields(io, spec); });
}

}  // namespace tpsim
