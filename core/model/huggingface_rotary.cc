#include <fmt/format.h>

#include "core/model/huggingface_reader.h"

namespace tpsim {
namespace {

using Scaling = RotaryScaling;

Scaling scaling_of(FieldReader& in, const std::string& name) {
  if (name == "default" || name == "dynamic" || name == "mrope") return Scaling::kNone;
  if (name == "linear") return Scaling::kLinear;
  if (name == "llama3") return Scaling::kLlama3;
  if (name == "yarn" || name == "deepseek_yarn") return Scaling::kYarn;
  if (name == "longrope" || name == "su") return Scaling::kLongRope;
  in.reject(in.has("rope_type") ? "rope_type" : "type",
            fmt::format("rotary scaling '{}' is not supported", name),
            "supported are default, mrope, linear, dynamic, llama3, yarn and longrope");
  return Scaling::kNone;
}

// Reads "rope_scaling", or "rope_parameters", which also has the base. Newer files have one object
// per layer type. This function reads "full_attention"; readers of families with windows read the
// other objects.
void read_stretch(FieldReader& in, AttentionShape& attention, std::int64_t original) {
  in.allow_foreign_keys();
  if (in.has("full_attention")) {
    return in.object("full_attention",
                     [&](FieldReader& inner) { read_stretch(inner, attention, original); });
  }
  RotaryStretch& stretch = attention.rotary.stretch;
  in.number("rope_theta", attention.rope_theta, {1, 1e12}, kOptional);
  in.number("partial_rotary_factor", attention.rotary.fraction, {0, 1}, kOptional);
  std::string name = "default";
  in.text(in.has("rope_type") ? "rope_type" : "type", name, kOptional);
  stretch.kind = scaling_of(in, name);
  if (stretch.kind == Scaling::kNone) return;
  if (stretch.kind != Scaling::kLongRope) in.number("factor", stretch.factor, {1, 1e6});
  in.number("factor", stretch.factor, {1, 1e6}, kOptional);
  stretch.original_positions = original;
  in.integer("original_max_position_embeddings", stretch.original_positions, {1, 1 << 24},
             kOptional);
  in.number("low_freq_factor", stretch.low_freq_factor, {1e-6, 1e6}, kOptional);
  in.number("high_freq_factor", stretch.high_freq_factor, {1e-6, 1e6}, kOptional);
  in.number("beta_fast", stretch.beta_fast, {1e-6, 1e6}, kOptional);
  in.number("beta_slow", stretch.beta_slow, {1e-6, 1e6}, kOptional);
  in.flag("truncate", stretch.truncate, kOptional);
  if (in.has("llama_4_scaling_beta")) {
    in.number("llama_4_scaling_beta", attention.score.temperature, {0, 1e6});
    attention.score.temperature_floor = stretch.original_positions;
  }
  in.number("mscale", stretch.mscale, {0, 1e6}, kOptional);
  in.number("mscale_all_dim", stretch.mscale_all_dim, {0, 1e6}, kOptional);
  in.number("attention_factor", stretch.attention_factor, {0, 1e6}, kOptional);
  if (stretch.kind == Scaling::kLlama3 && stretch.high_freq_factor < stretch.low_freq_factor) {
    in.reject("high_freq_factor", "it must not be below low_freq_factor");
  }
  if (stretch.kind == Scaling::kLongRope) {
    in.numbers("short_factor", stretch.short_factors, {1e-6, 1e9});
    in.numbers("long_factor", stretch.long_factors, {1e-6, 1e9});
  }
}

}  // namespace

void read_rotary(FieldReader& in, ModelSpec& model, double theta) {
  AttentionShape& attention = model.attention;
  attention.position = PositionKind::kRotary;
  attention.rope_theta = theta;
  in.number("rope_theta", attention.rope_theta, {1, 1e12}, kOptional);
  in.number("partial_rotary_factor", attention.rotary.fraction, {0, 1}, kOptional);
  std::int64_t original = model.context;
  in.integer("original_max_position_embeddings", original, {1, 1 << 24}, kOptional);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    in.object(
        key, [&](FieldReader& inner) { read_stretch(inner, attention, original); }, kOptional);
  }
  const RotaryStretch& stretch = attention.rotary.stretch;
  const auto turned = static_cast<std::size_t>(static_cast<double>(attention.head_dim) *
                                               attention.rotary.fraction / 2);
  for (const auto& [name, factors] : {std::pair{"short_factor", &stretch.short_factors},
                                      {"long_factor", &stretch.long_factors}}) {
    if (stretch.kind == Scaling::kLongRope && factors->size() != turned) {
      in.reject("rope_scaling", fmt::format("{} has {} factors, but a head has {} rotary pairs",
                                            name, factors->size(), turned));
    }
  }
}

}  // namespace tpsim
