#include "core/model/model_support.h"

#include <fmt/format.h>

namespace tpsim {
namespace {

Status missing(std::string_view what, std::string_view doing) {
  return Error{ErrorKind::kMissing, fmt::format("models with {} cannot be {}", what, doing), "",
               "docs/models.md lists what can be planned and trained"};
}

// Names the part of a block that tpsim predicts but for which no device has kernels; empty if none.
std::string uncomputed_in(const BlockShape& block) {
  if (block.attention.chosen > 0) return "sparse attention with an indexer";
  if (block.attention.key_values != KeyValueSource::kProjected)
    return "keys and values from one matrix or from an earlier layer";
  if (block.attention.value_dim > 0) return "value heads of another width than key heads";
  if (block.mixer == MixerKind::kPlanned) return "mixers that tpsim only predicts";
  if (!block.planned.empty()) {
    return "ops that tpsim only predicts ('" + block.planned.front().name + "' and others)";
  }
  if (block.attention.output_gate) return "gated attention outputs";
  return branch_count(block) == 1 ? "blocks without attention or without MLP" : "";
}

std::string uncomputed_part(const ModelSpec& model) {
  if (model.mlp == MlpKind::kXielu) return "xIELU activations";
  if (model.mlp == MlpKind::kSitu) return "SiTU activations";
  if (model.ends.streams > 1) return "several residual streams";
  if (!model.ends.parts.empty()) return "the part '" + model.ends.parts.front().name + "'";
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    const MixerKind mixer = block_of_kind(model, kind).mixer;
    if (mixer == MixerKind::kMamba2) return "Mamba-2 layers";
    if (mixer == MixerKind::kDeltaNet) return "gated delta nets";
  }
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    std::string part = uncomputed_in(block_of_kind(model, kind));
    if (!part.empty()) return part;
  }
  return "";
}

}  // namespace

Status check_plannable(const ModelSpec& model) {
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    const BlockShape block = block_of_kind(model, kind);
    const bool is_whole = block.mixer == MixerKind::kAttention && block.ffn_hidden > 0;
    const bool before = model.norm_place == NormPlace::kBefore && !model.residual_from_after_norm;
    if (!is_whole && !before) {
      return missing("recurrent or single-branch blocks whose norms are not before the branches",
                     "planned");
    }
    if (block.attention.output_gate && block.attention.latent.kv_rank > 0) {
      return missing("gated outputs of latent attention", "planned");
    }
  }
  return Ok{};
}

Status check_computable(const ModelSpec& model) {
  const std::string part = uncomputed_part(model);
  if (!part.empty()) return missing(part, "run on any device");
  return Ok{};
}

std::string untrained_part(const ModelSpec& model) {
  std::string uncomputed = uncomputed_part(model);
  if (!uncomputed.empty()) return uncomputed;
  if (model.linear_bias && !model.fused_qkv && !model.attention.qkv_bias) {
    return "linear_bias and separate q, k and v (set qkv_bias of the attention instead)";
  }
  if (model.ends.head_bias) return "a bias in the head";
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    if (block_of_kind(model, kind).experts.shared_gate) return "a gate on the shared expert";
  }
  const bool norms_behind =
      model.norm_place == NormPlace::kAfter || model.norm_place == NormPlace::kAround;
  const bool drops = norms_behind && model.hidden_dropout > 0;
  return drops ? "dropout and norms after the branches" : "";
}

Status check_trainable(const ModelSpec& model) {
  TPSIM_TRY_STATUS(check_plannable(model));
  const std::string part = untrained_part(model);
  if (!part.empty()) return missing(part, "trained");
  return Ok{};
}

std::string family_of(const ModelSpec& model) {
  return model.family.empty() ? model.name.substr(0, model.name.find('-')) : model.family;
}

}  // namespace tpsim
