// Vision and audio encoders of multimodal models. They become planned parts of the first stage:
// parameters and FLOPs follow from their sizes.
//
// Assumes one image or sound per training sequence, with as many patches as the encoder has
// positions.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/huggingface_family.h"

namespace tpsim {
namespace {

// Sizes of an encoder, read from the keys of its family.
struct EncoderShape {
  std::int64_t layers = 0, hidden = 0, heads = 0, ffn = 0;
  std::int64_t attention_width = 0;  // of queries; 0: hidden
  std::int64_t patch_inputs = 0;     // input values per patch
  std::int64_t patches = 0;
  std::int64_t merged = 1;  // patches per text token
  bool biases = true, patch_bias = true, gated = false;
  std::int64_t norm_gains = 2;       // parameters per entry of a norm: LayerNorm has two
  std::int64_t norms = 2;            // per layer
  std::int64_t others = 0;           // further parameters per layer
  std::int64_t table = 0;            // parameters of position tables and class tokens
  std::vector<PlannedOp> projector;  // to the text model
};

OuterPart encoder_part(const std::string& name, const EncoderShape& s) {
  OuterPart part{.name = name,
                 .layers = s.layers,
                 .patches = s.patches,
                 .items = 1,
                 .layer_ops = {},
                 .ops = {}};
  const std::int64_t width = s.attention_width > 0 ? s.attention_width : s.hidden;
  const auto bias = [&](std::int64_t rows) { return s.biases ? rows : 0; };
  std::vector<PlannedOp>& ops = part.layer_ops;
  ops.push_back(planned_linear("attn.qkv", kWholeOp, 3 * width, s.hidden, bias(3 * width)));
  PlannedOp core;
  core.name = "attn.core";
  core.kind = PlannedOpKind::kPairs;
  core.heads = s.heads;
  core.key_dim = core.value_dim = width / std::max<std::int64_t>(1, s.heads);
  core.width = width;
  ops.push_back(core);
  ops.push_back(planned_linear("attn.proj", kWholeOp, s.hidden, width, bias(s.hidden)));
  const std::int64_t up = (s.gated ? 2 : 1) * s.ffn;
  ops.push_back(planned_linear("mlp.up", kWholeOp, up, s.hidden, bias(up)));
  ops.push_back(planned_pass("mlp.act", kWholeOp, up + s.ffn, s.ffn));
  ops.push_back(planned_linear("mlp.down", kWholeOp, s.hidden, s.ffn, bias(s.hidden)));
  const std::int64_t norms = s.norms * s.norm_gains * s.hidden + s.others;
  ops.push_back(planned_pass("norms", kWholeOp, (2 * s.norms + 6) * s.hidden, 2 * s.hidden, norms));
  part.ops.push_back(planned_linear("patch_embed", kWholeOp, s.hidden, s.patch_inputs,
                                    s.patch_bias ? s.hidden : 0));
  if (s.table > 0)
    part.ops.push_back(planned_pass("positions", kWholeOp, 3 * s.hidden, 0, s.table));
  part.ops.insert(part.ops.end(), s.projector.begin(), s.projector.end());
  return part;
}

// A linear op whose input concatenates `merged` patches.
PlannedOp merged_linear(std::string name, std::int64_t width, std::int64_t columns,
                        std::int64_t parameters, std::int64_t merged) {
  PlannedOp op = planned_linear(std::move(name), kWholeOp, width, columns, parameters);
  op.stride = merged > 1 ? merged : 0;
  return op;
}

// Adds a projector from merged patches to the width of the text model: a norm and two matrices with
// biases.
void add_merger(EncoderShape& s, const std::string& name, std::int64_t normed, std::int64_t out) {
  const std::int64_t width = s.hidden * s.merged;
  s.projector.push_back(
      merged_linear(name + ".fc1", width, width, width + s.norm_gains * normed, s.merged));
  s.projector.push_back(merged_linear(name + ".fc2", out, width, out, s.merged));
}

// Qwen2-VL to Qwen3.6.
bool read_qwen_vision(FieldReader& in, EncoderShape& s) {
  if (!in.has("depth")) return false;
  const bool is_second = in.has("embed_dim");  // Qwen2-VL: hidden_size is that of the text model
  std::int64_t channels = 3, patch = 14, frames = 2, merge = 2, out = 0, positions = 0;
  in.integer("depth", s.layers, kLayerRange);
  in.integer(is_second ? "embed_dim" : "hidden_size", s.hidden, {1, 1 << 20});
  in.integer("num_heads", s.heads, {1, 1 << 16});
  s.ffn = 4 * s.hidden;
  in.integer("intermediate_size", s.ffn, {1, 1 << 20}, kOptional);
  in.integer(is_second ? "hidden_size" : "out_hidden_size", out, {1, 1 << 20});
  in.integer(in.has("in_chans") ? "in_chans" : "in_channels", channels, {1, 64}, kOptional);
  in.integer("patch_size", patch, {1, 1 << 10}, kOptional);
  in.integer("temporal_patch_size", frames, {1, 64}, kOptional);
  in.integer("spatial_merge_size", merge, {1, 64}, kOptional);
  in.integer("num_position_embeddings", positions, {1, 1 << 20}, kOptional);
  std::vector<std::int64_t> deep;
  in.integers("deepstack_visual_indexes", deep, {0, 1 << 14}, kOptional);
  s.patch_inputs = channels * frames * patch * patch;
  s.merged = merge * merge;
  s.patches = positions > 0 ? positions : 2304;
  s.table = positions * s.hidden;
  s.patch_bias = positions > 0;
  // Qwen2.5-VL: gated feed-forward parts and RMSNorm, no learned positions.
  s.gated = positions == 0 && !is_second;
  if (s.gated) s.norm_gains = 1;
  add_merger(s, "merger", s.hidden, out);
  for (std::size_t i = 0; i < deep.size(); ++i) {
    add_merger(s, fmt::format("deepstack.{}", i), s.hidden * s.merged, out);
  }
  return true;
}

// Kimi's MoonViT, whose keys begin with vt_.
bool read_moon_vision(FieldReader& in, EncoderShape& s) {
  if (!in.has("vt_hidden_size")) return false;
  std::int64_t patch = 14, rows = 64, columns = 64, text = 0;
  in.integer("vt_num_hidden_layers", s.layers, kLayerRange);
  in.integer("vt_hidden_size", s.hidden, {1, 1 << 20});
  in.integer("vt_num_attention_heads", s.heads, {1, 1 << 16});
  in.integer("vt_intermediate_size", s.ffn, {1, 1 << 20});
  in.integer("qkv_hidden_size", s.attention_width, {1, 1 << 20}, kOptional);
  in.integer("text_hidden_size", text, {1, 1 << 20});
  in.integer("patch_size", patch, {1, 1 << 10}, kOptional);
  in.integer("init_pos_emb_height", rows, {1, 1 << 12}, kOptional);
  in.integer("init_pos_emb_width", columns, {1, 1 << 12}, kOptional);
  in.flag("linear_bias", s.biases, kOptional);
  in.flag("patch_embed_proj_bias", s.patch_bias, kOptional);
  std::string norm = "layernorm";
  in.text("norm_type", norm, kOptional);
  if (norm == "rmsnorm") s.norm_gains = 1;
  std::vector<std::int64_t> merge;
  in.integers("merge_kernel_size", merge, {1, 64}, kOptional);
  s.merged = merge.size() == 2 ? merge[0] * merge[1] : 4;
  s.patch_inputs = 3 * patch * patch;
  s.patches = rows * columns;
  s.table = rows * columns * s.hidden + s.norm_gains * s.hidden;  // including the last norm
  add_merger(s, "projector", s.hidden, text);
  return true;
}

// Gemma 4: norms around both branches and of queries and keys, no biases; k x k patches are
// averaged.
bool read_gemma4_vision(FieldReader& in, EncoderShape& s, std::int64_t text) {
  std::string type;
  in.text("model_type", type, kOptional);
  if (type != "gemma4_vision") return false;
  std::int64_t patch = 16, rows = 0, head_dim = 64, tokens = 280, pool = 3;
  in.integer("num_hidden_layers", s.layers, kLayerRange);
  in.integer("hidden_size", s.hidden, {1, 1 << 20});
  in.integer("num_attention_heads", s.heads, {1, 1 << 16});
  in.integer("intermediate_size", s.ffn, {1, 1 << 20});
  in.integer("head_dim", head_dim, {1, 1 << 16}, kOptional);
  in.integer("patch_size", patch, {1, 1 << 10}, kOptional);
  in.integer("position_embedding_size", rows, {0, 1 << 20}, kOptional);
  in.integer("default_output_length", tokens, {1, 1 << 20}, kOptional);
  in.integer("pooling_kernel_size", pool, {1, 64}, kOptional);
  s.attention_width = s.heads * head_dim;
  s.patch_inputs = 3 * patch * patch;
  s.merged = pool * pool;
  s.patches = tokens * s.merged;
  s.table = 2 * rows * s.hidden;
  s.biases = s.patch_bias = false;
  s.gated = true;
  s.norm_gains = 1;
  s.norms = 4;
  s.others = 2 * head_dim;
  s.projector.push_back(merged_linear("embedding_projection", text, s.hidden, 0, s.merged));
  return true;
}

// CLIP and SigLIP: LayerNorm and biases everywhere, images of fixed size.
bool read_clip_vision(FieldReader& in, EncoderShape& s) {
  if (!in.has("num_hidden_layers") || !in.has("image_size")) return false;
  std::int64_t patch = 14, image = 224, channels = 3;
  in.integer("num_hidden_layers", s.layers, kLayerRange);
  in.integer("hidden_size", s.hidden, {1, 1 << 20});
  in.integer("num_attention_heads", s.heads, {1, 1 << 16});
  in.integer("intermediate_size", s.ffn, {1, 1 << 20});
  in.integer("patch_size", patch, {1, 1 << 10}, kOptional);
  in.integer("image_size", image, {1, 1 << 14}, kOptional);
  in.integer("num_channels", channels, {1, 64}, kOptional);
  std::string positions = "learned";
  in.text("position_embedding_type", positions, kOptional);
  const std::int64_t side = std::max<std::int64_t>(1, image / patch);
  s.patch_inputs = channels * patch * patch;
  // With rotary positions, the file does not limit the number of patches. A usual number is
  // assumed.
  constexpr std::int64_t kUsualPatches = 2304;
  s.patches = positions == "rope" ? std::min(side * side, kUsualPatches) : side * side;
  s.table =
      (positions == "rope" ? 0 : s.patches * s.hidden) + 2 * s.hidden;  // including the last norm
  return true;
}

void read_vision(const JsonValue& value, const std::string& file, std::string_view key,
                 ModelSpec& model) {
  FieldReader in(value, file, std::string(key) + ".");
  in.allow_foreign_keys();
  EncoderShape shape;
  const bool known = read_gemma4_vision(in, shape, model.hidden) || read_qwen_vision(in, shape) ||
                     read_moon_vision(in, shape) || read_clip_vision(in, shape);
  if (!known || !in.finish().ok() || shape.heads < 1 || shape.hidden < 1) {
    model.notes.push_back(fmt::format(
        "{}: tpsim does not support this encoder; it is neither counted nor predicted", key));
    return;
  }
  model.ends.parts.push_back(encoder_part("vision", shape));
  const bool has_projector = !shape.projector.empty();
  model.notes.push_back(
      fmt::format("{}: runs on the first stage, with one image of {} patches in each sequence{}",
                  key, shape.patches, has_projector ? "" : "; its projector is not counted"));
}

// Whisper's encoder, which most speech models have: two convolutions, then layers with biases
// except for keys.
void read_audio(const JsonValue& value, const std::string& file, std::string_view key,
                ModelSpec& model) {
  FieldReader in(value, file, std::string(key) + ".");
  in.allow_foreign_keys();
  EncoderShape s;
  std::int64_t bins = 128, positions = 1500;
  const bool known = in.has("encoder_layers") && in.has("d_model");
  in.integer("encoder_layers", s.layers, kLayerRange, kOptional);
  in.integer("d_model", s.hidden, {1, 1 << 20}, kOptional);
  in.integer("encoder_attention_heads", s.heads, {1, 1 << 16}, kOptional);
  in.integer("encoder_ffn_dim", s.ffn, {1, 1 << 20}, kOptional);
  in.integer("num_mel_bins", bins, {1, 1 << 12}, kOptional);
  in.integer("max_source_positions", positions, {1, 1 << 16}, kOptional);
  if (!known || !in.finish().ok() || s.heads < 1 || s.ffn < 1) {
    model.notes.push_back(fmt::format(
        "{}: tpsim does not support this encoder; it is neither counted nor predicted", key));
    return;
  }
  constexpr std::int64_t kTaps = 3;
  s.patch_inputs = kTaps * bins;
  s.patches = positions;
  s.others = -s.hidden;  // keys have no bias
  s.table = 2 * s.hidden;
  s.projector.push_back(planned_linear("conv2", kWholeOp, s.hidden, kTaps * s.hidden, s.hidden));
  model.ends.parts.push_back(encoder_part("audio", s));
  model.notes.push_back(
      fmt::format("{}: runs on the first stage, with {} audio frames in each sequence; its "
                  "projector is not counted",
                  key, positions));
}

}  // namespace

void read_encoders(const JsonValue& root, const std::string& file, ModelSpec& model) {
  if (const JsonValue* inner = root.find("thinker_config"))
    return read_encoders(*inner, file, model);
  for (const JsonMember& member : *root.as<JsonValue::Object>()) {
    if (member.value.as<JsonValue::Object>() == nullptr) continue;
    if (member.key == "vision_config") read_vision(member.value, file, member.key, model);
    if (member.key == "audio_config") read_audio(member.value, file, member.key, model);
  }
}

}  // namespace tpsim
