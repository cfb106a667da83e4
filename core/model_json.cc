#include "core/model_json.h"

#include "core/huggingface_config.h"
#include "core/json_document.h"
#include "core/json_fields.h"
#include "core/model_fields.h"

namespace tpsim {
namespace {

template <class Io, class Spec>
void file_fields(Io& io, Spec& model) {
  io.format("tpsim-model/1");
  model_fields(io, model);
}

Result<ModelSpec> model_from_json(const JsonValue& root, const std::string& file) {
  if (root.find("format") == nullptr && root.find("model_type") != nullptr) {
    return model_from_huggingface(root, file);
  }
  TPSIM_TRY(const ModelSpec model, spec_from_json<ModelSpec>(root, file, [](auto& io, auto& spec) {
              file_fields(io, spec);
            }));
  TPSIM_TRY_STATUS(at_file(validate(model), file));
  return model;
}

}  // namespace

Result<ModelSpec> read_model(const std::filesystem::path& path) {
  TPSIM_TRY(const JsonValue root, read_json_file(path));
  return model_from_json(root, path.string());
}

Result<ModelSpec> parse_model(std::string_view text, const std::string& file) {
  TPSIM_TRY(const JsonValue root, parse_json(text, file));
  return model_from_json(root, file);
}

std::string to_json(const ModelSpec& model) {
  return to_text(json_from_spec(model, [](auto& io, auto& spec) { file_fields(io, spec); }));
}

std::string_view name_of(PositionKind position) {
  switch (position) {
    case PositionKind::kAlibi: return "alibi";
    case PositionKind::kLearned: return "learned";
    case PositionKind::kRotary: return "rotary";
  }
  return "?";
}

std::string_view name_of(NormKind norm) {
  return norm == NormKind::kLayerNorm ? "layer_norm" : "rms_norm";
}

std::string_view name_of(MlpKind mlp) { return mlp == MlpKind::kGelu ? "gelu" : "swiglu"; }

}  // namespace tpsim
