// Reads the config.json of Hugging Face models, family by family.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/text.h"
#include "core/json/json_document.h"
#include "core/model/huggingface_family.h"
#include "core/model/model_support.h"

namespace tpsim {
namespace {

std::string model_name(const std::string& file) {
  const std::filesystem::path path(file);
  if (path.filename() != "config.json") return path.stem().string();
  const std::string folder = path.parent_path().filename().string();
  return folder.empty() ? "config" : folder;
}

// Known families that cannot be planned, with the part that is not modelled.
constexpr auto kKnownToDiffer = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"afmoe", "gated sliding-window attention with norms before and after"},
     {"bert", "bidirectional attention"},
     {"dbrx", "clipped queries, keys and values"},
     {"falcon_h1", "attention and Mamba-2 side by side in every block"},
     {"falcon_mamba", "Mamba-1 layers"},
     {"gemma3n_text", "several residual streams and per-layer embeddings"},
     {"jamba", "Mamba-1 layers"},
     {"longcat_flash", "two attention layers in a block with experts"},
     {"mamba2", "no attention, and its own variant of Mamba-2"},
     {"minicpm3", "latent attention with scaled residuals"},
     {"mllama_text_model", "cross attention to images"},
     {"olmo", "norms without weights"},
     {"recurrent_gemma", "gated linear recurrences"},
     {"rwkv", "time mixing in place of attention"},
     {"step3_text", "attention with factorized matrices"},
     {"t5", "an encoder and a decoder"},
     {"xglm", "sinusoidal position embeddings"},
     {"zamba2", "blocks that are shared by layers"}});

// Longest default of the training sequence. Longer contexts are added at the end of pretraining,
// with few tokens.
constexpr std::int64_t kLongestSequence = 8192;
// Families that are pretrained with shorter sequences, and the length: reports of DeepSeek-V2/V3,
// Qwen2.5, Qwen3, GLM-4.5, Kimi K2, phi-3/4, StarCoder2, SmolLM3, InternLM2. The other families do
// not publish a length: that of their catalogue entries.
constexpr std::int64_t kShorterSequence = 4096;
constexpr std::string_view kTrainedShorter =
    "deepseek* qwen2 qwen2_moe qwen3 qwen3_moe qwen3_next qwen3_5* glm4_moe glm_moe_dsa kimi* phi3 "
    "starcoder2 smollm3 internlm2 gpt_oss mixtral gemma4* minimax* mimo_v2* nemotron-nas step3p*";

// Returns the default of the training sequence: that of the family's pretraining, at most the
// context that the file states.
std::int64_t pretraining_sequence(const ModelSpec& model, std::string_view type) {
  const std::int64_t before_stretch = model.attention.rotary.stretch.original_positions;
  std::int64_t seq =
      std::min(model.seq, matches_any(type, kTrainedShorter) ? kShorterSequence : kLongestSequence);
  return before_stretch > 0 ? std::min(seq, before_stretch) : seq;
}

std::vector<Family> all_families() {
  std::vector<Family> all;
  for (const auto& families : {dense_families(), classic_families(), expert_families(),
                               hybrid_families(), linear_families(), newer_families(),
                               older_families(), sparse_families(), window_families()}) {
    all.insert(all.end(), families.begin(), families.end());
  }
  return all;
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

}  // namespace

std::vector<std::string_view> huggingface_types() {
  std::vector<std::string_view> types;
  for (const Family& family : all_families()) types.push_back(family.type);
  std::sort(types.begin(), types.end());
  return types;
}

std::string_view why_unplanned(std::string_view type) {
  const auto known = std::find_if(kKnownToDiffer.begin(), kKnownToDiffer.end(),
                                  [&](const auto& one) { return one.first == type; });
  return known == kKnownToDiffer.end() ? "" : known->second;
}

Result<ModelSpec> model_from_huggingface(const JsonValue& root, const std::string& file) {
  TPSIM_TRY(const TextPart part, text_part(root, file));
  FieldReader in(*part.root, file, part.is_part ? "text_config." : "");
  in.allow_foreign_keys();
  const std::vector<Family> families = all_families();
  const auto family = std::find_if(families.begin(), families.end(),
                                   [&](const Family& one) { return one.type == part.type; });
  if (const std::string_view reason = why_unplanned(part.type); !reason.empty()) {
    in.reject("model_type", fmt::format("'{}' is not supported: it has {}", part.type, reason),
              "tpsim show families lists the supported families");
    return in.finish().error();
  }
  if (family == families.end()) {
    in.reject("model_type", fmt::format("'{}' is not supported", part.type), supported_types());
    return in.finish().error();
  }
  ModelSpec model;
  model.name = model_name(file);
  model.source = fmt::format("Hugging Face {} configuration {}", part.type, file);
  model.family = part.type;
  Config config{in, model, {}};
  in.number("initializer_range", model.initializer_range, {0, 10}, kOptional);
  family->read(config);
  model.seq = pretraining_sequence(model, part.type);
  // Multi-head attention is the default if a file does not state kv heads.
  if (model.attention.kv_heads == 0) model.attention.kv_heads = model.attention.heads;
  for (BlockShape& block : config.layers) {
    if (block.attention.kv_heads == 0) block.attention.kv_heads = block.attention.heads;
  }
  name_what_was_left(config, part.type);
  TPSIM_TRY_STATUS(in.finish());
  if (!config.layers.empty()) set_blocks(model, config.layers);
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
