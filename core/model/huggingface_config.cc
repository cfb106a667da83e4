// Reads the config.json of Hugging Face models, family by family.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/base/text.h"
#include "core/json/json_document.h"
#include "core/model/huggingface_reader.h"
#include "core/model/model_support.h"

namespace tpsim {
namespace {

std::string model_name(const std::string& file) {
  const std::filesystem::path path(file);
  if (path.filename() != "config.json") return path.stem().string();
  const std::string folder = path.parent_path().filename().string();
  return folder.empty() ? "config" : folder;
}

// Longest default of the training sequence. Longer contexts are added at the end of pretraining,
// with few tokens.
constexpr std::int64_t kLongestSequence = 8192;
constexpr std::int64_t kShorterSequence = 4096;

// Returns the default of the training sequence: that of the family's pretraining, at most the
// context that the file states.
std::int64_t pretraining_sequence(const ModelSpec& model, std::string_view type) {
  const std::int64_t before_stretch = model.attention.rotary.stretch.original_positions;
  std::int64_t seq =
      std::min(model.seq, matches_any(type, family_tables().shorter_families) ? kShorterSequence
                                                                              : kLongestSequence);
  return before_stretch > 0 ? std::min(seq, before_stretch) : seq;
}

std::string supported_types() {
  return fmt::format("supported are {}; write a tpsim model file for others",
                     fmt::join(huggingface_types(), ", "));
}

// The language model inside a multimodal model, or the whole file if there is none. A language
// model may omit its own model_type.
struct TextPart {
  const JsonValue* root;
  std::string type;
  bool is_part = false;
};

Result<TextPart> text_part(const JsonValue& root, const std::string& file) {
  FieldReader in(root, file);
  in.allow_foreign_keys();
  std::string type;
  in.text("model_type", type);
  const JsonValue* inner = nullptr;
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    if (inner == nullptr) inner = root.find(key);
  }
  TPSIM_TRY_STATUS(in.finish());
  if (inner == nullptr || inner->as<JsonValue::Object>() == nullptr) return TextPart{&root, type};
  TextPart part{inner, type + "_text", true};
  FieldReader of_part(*inner, file, "text_config.");
  of_part.allow_foreign_keys();
  of_part.text("model_type", part.type, kOptional);
  TPSIM_TRY_STATUS(of_part.finish());
  return part;
}

bool is_language(std::string_view key) {
  return key == "text_config" || key == "llm_config" || key == "language_config";
}

// Adds the parts of a multimodal model that are not read to ModelSpec::notes.
void name_other_parts(const JsonValue& root, ModelSpec& model) {
  for (const JsonMember& member : *root.as<JsonValue::Object>()) {
    const bool is_other = member.key.ends_with("_config") && !is_language(member.key) &&
                          member.key != "quantization_config" && member.key != "vision_config" &&
                          member.key != "audio_config" && !is_neutral(member.value);
    if (is_other) model.notes.push_back(member.key + ": ignored, only the text model is planned");
  }
}

// Reads the vision and audio encoders of a multimodal model as planned parts of the first stage.
// ModelSpec::notes names encoders that cannot be read.
void read_encoder(const JsonMember& member, const std::string& file, ModelSpec& model) {
  FieldReader in(member.value, file, member.key + ".");
  in.allow_foreign_keys();
  const EndShape ends = model.ends;
  const std::vector<std::string> notes = model.notes;
  TableReader reader(in, model);
  reader.set("key", member.key);
  for (const EncoderTable& encoder : family_tables().encoders) {
    if (encoder.key != member.key || reader.number(encoder.condition) == 0) continue;
    reader.run(encoder.statements);
    if (in.finish().ok()) return;
    break;
  }
  model.ends = ends;
  model.notes = notes;
  model.notes.push_back(
      member.key + ": tpsim does not support this encoder; it is neither counted nor predicted");
}

void read_encoders(const JsonValue& root, const std::string& file, ModelSpec& model) {
  if (const JsonValue* inner = root.find("thinker_config")) {
    return read_encoders(*inner, file, model);
  }
  for (const JsonMember& member : *root.as<JsonValue::Object>()) {
    const bool is_encoder = member.key == "vision_config" || member.key == "audio_config";
    if (is_encoder && member.value.as<JsonValue::Object>() != nullptr) {
      read_encoder(member, file, model);
    }
  }
}

}  // namespace

std::vector<std::string_view> huggingface_types() {
  std::vector<std::string_view> types;
  for (const auto& [type, family] : family_tables().families) types.push_back(type);
  return types;
}

std::string_view why_unplanned(std::string_view type) {
  const auto known = family_tables().unplanned.find(type);
  return known == family_tables().unplanned.end() ? std::string_view() : known->second;
}

Result<ModelSpec> model_from_huggingface(const JsonValue& root, const std::string& file) {
  TPSIM_TRY(const TextPart part, text_part(root, file));
  FieldReader in(*part.root, file, part.is_part ? "text_config." : "");
  in.allow_foreign_keys();
  if (const std::string_view reason = why_unplanned(part.type); !reason.empty()) {
    in.reject("model_type", fmt::format("'{}' is not supported: it has {}", part.type, reason),
              "tpsim show families lists the supported families");
    return in.finish().error();
  }
  const auto family = family_tables().families.find(part.type);
  if (family == family_tables().families.end()) {
    in.reject("model_type", fmt::format("'{}' is not supported", part.type), supported_types());
    return in.finish().error();
  }
  ModelSpec model;
  model.name = model_name(file);
  model.source = fmt::format("Hugging Face {} configuration {}", part.type, file);
  model.family = part.type;
  in.number("initializer_range", model.initializer_range, {0, 10}, kOptional);
  TableReader reader(in, model);
  reader.set("type", part.type);
  reader.run(family->second.statements);
  model.seq = pretraining_sequence(model, part.type);
  // Multi-head attention is the default if a file does not state kv heads.
  if (model.attention.kv_heads == 0) model.attention.kv_heads = model.attention.heads;
  for (BlockShape& block : reader.layers) {
    if (block.attention.kv_heads == 0) block.attention.kv_heads = block.attention.heads;
  }
  name_what_was_left(reader, part.type);
  TPSIM_TRY_STATUS(in.finish());
  if (!reader.layers.empty()) set_blocks(model, reader.layers);
  if (part.is_part) {
    read_encoders(root, file, model);
    name_other_parts(root, model);
    const JsonValue* tied = root.find("tie_word_embeddings");
    const bool says = tied != nullptr && tied->as<bool>() != nullptr &&
                      part.root->find("tie_word_embeddings") == nullptr;
    if (says) model.tied_embedding = *tied->as<bool>();
  }
  TPSIM_TRY_STATUS(at_file(validate(model), file));
  return model;
}

}  // namespace tpsim
