// Sources: axolotl/utils/freeze.py, LLaMA-Factory's src/llamafactory/model/adapter.py, OLMo-core's
// nn/transformer/model.py (apply_freeze_params).
#include "frameworks/launch/trained_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/base/text.h"
#include "core/software/finetune.h"

namespace tpsim {
namespace {

// kOthers: a pattern trains all other weights of a layer only if it names the whole layer.
struct NamedPart {
  WeightPart part;
  std::string_view names;  // below "model.layers.3." or "blocks.3."
};
constexpr NamedPart kOfBlocks[] = {
    {WeightPart::kQuery, "self_attn.q_proj attention.w_q"},
    {WeightPart::kKey, "self_attn.k_proj attention.w_k"},
    {WeightPart::kValue, "self_attn.v_proj attention.w_v"},
    {WeightPart::kOutput, "self_attn.o_proj attention.w_out"},
    {WeightPart::kOthers, "others"},
    {WeightPart::kNorms, "input_layernorm post_attention_layernorm attention_norm"},
};
constexpr NamedPart kDense[] = {
    {WeightPart::kGate, "mlp.gate_proj feed_forward.w1"},
    {WeightPart::kUp, "mlp.up_proj feed_forward.w3"},
    {WeightPart::kDown, "mlp.down_proj feed_forward.w2"},
};
constexpr NamedPart kOfExperts[] = {
    {WeightPart::kRouter, "mlp.gate block_sparse_moe.gate feed_forward_moe.router"},
    {WeightPart::kGate, "mlp.experts.{}.gate_proj block_sparse_moe.experts.{}.w1"},
    {WeightPart::kUp, "mlp.experts.{}.up_proj block_sparse_moe.experts.{}.w3"},
    {WeightPart::kDown, "mlp.experts.{}.down_proj block_sparse_moe.experts.{}.w2"},
};
constexpr NamedPart kAround[] = {
    {WeightPart::kEmbedding, "model.embed_tokens model.language_model.embed_tokens embeddings"},
    {WeightPart::kHead, "lm_head lm_head.w_out"},
    {WeightPart::kOuterNorms, "model.norm model.language_model.norm lm_head.norm"},
};
constexpr std::string_view kOfLayers = "model.layers. model.language_model.layers. blocks.";

// A set of tensors that are trained together, by program or expert.
using Names = std::vector<std::string>;

bool trains(const NamedWeights& named, const Names& names) {
  const bool is_named = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const bool is_of_olmo =
        name.starts_with("blocks.") || name.starts_with("lm_head.") || name == "embeddings";
    return is_of_olmo == named.are_of_olmo && named.match(name + ".weight");
  });
  return is_named != named.are_frozen;
}

Names names_in_layer(std::int64_t layer, std::string_view names, std::int64_t expert) {
  Names all;
  for (const std::string& prefix : words_in(std::string(kOfLayers))) {
    for (std::string name : words_in(std::string(names))) {
      const std::size_t at = name.find("{}");
      if (at != std::string::npos) name.replace(at, 2, std::to_string(expert));
      all.push_back(fmt::format("{}{}.{}", prefix, layer, name));
    }
  }
  return all;
}

// Sets --trained-layers if the last or first layers alone have trained weights, all the same ones.
// Else the blocks of the model state their trained weights.
void set_layers(ModelSpec& model, const std::vector<std::int64_t>& trained, PartValues& parts) {
  const std::int64_t any = *std::max_element(trained.begin(), trained.end());
  const auto count = static_cast<std::int64_t>(std::count(trained.begin(), trained.end(), any));
  const bool is_alike = std::all_of(trained.begin(), trained.end(),
                                    [&](std::int64_t own) { return own == any || own == 0; });
  const auto begins = [&](auto first) {
    return std::all_of(first, first + count, [&](std::int64_t own) { return own == any; });
  };
  if (any == 0 || (is_alike && count == model.layers)) return;
  if (is_alike && (begins(trained.begin()) || begins(trained.rbegin()))) {
    parts[StackPart::kTrainedLayers] = begins(trained.rbegin()) ? count : -count;
    return;
  }
  std::vector<BlockShape> blocks;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    blocks.push_back(block_of_kind(model, block_kind(model, layer)));
    blocks.back().trained = trained[static_cast<std::size_t>(layer)];
  }
  set_blocks(model, blocks);
}

}  // namespace

Status train_named_weights(ModelSpec& model, PartValues& parts, const NamedWeights& weights) {
  std::vector<std::int64_t> trained;
  std::int64_t all = 0, present = 0;
  const auto add = [&](const BlockShape& block, std::int64_t layer, const NamedPart& named,
                       std::int64_t& own) -> Status {
    present |= part_bit(named.part);
    const auto is_trained = [&](std::int64_t expert) {
      return trains(weights, names_in_layer(layer, named.names, expert));
    };
    const bool is_first = is_trained(0);
    for (std::int64_t expert = 1; expert < block.experts.count; ++expert) {
      if (is_trained(expert) == is_first) continue;
      return bad_input(fmt::format("{} trains some experts of layer {} alone", weights.key, layer),
                       "",
                       "tpsim trains all experts of a layer or none: remove the experts' numbers");
    }
    if (is_first) own |= part_bit(named.part);
    return Ok{};
  };
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const BlockShape block = block_of_kind(model, block_kind(model, layer));
    std::int64_t& own = trained.emplace_back(0);
    for (const NamedPart& named : kOfBlocks) TPSIM_TRY_STATUS(add({}, layer, named, own));
    if (block.experts.count > 0) {
      for (const NamedPart& named : kOfExperts) TPSIM_TRY_STATUS(add(block, layer, named, own));
    } else {
      for (const NamedPart& named : kDense) TPSIM_TRY_STATUS(add({}, layer, named, own));
    }
    all |= own;
  }
  std::int64_t around = 0;
  for (const NamedPart& named : kAround) {
    present |= part_bit(named.part);
    if (trains(weights, words_in(std::string(named.names)))) around |= part_bit(named.part);
  }
  if ((all | around) == 0) {
    return bad_input(fmt::format("{} trains no weight of {}", weights.key, model.name), "",
                     "names are such as model.layers.31.mlp.down_proj.weight, "
                     "model.embed_tokens.weight and lm_head.weight");
  }
  const bool is_whole =
      std::all_of(trained.begin(), trained.end(), [&](std::int64_t own) { return own == all; });
  if (is_whole && (all | around) == present) return Ok{};
  parts[StackPart::kFinetune] = static_cast<std::int64_t>(FinetuneMethod::kFreeze);
  parts[StackPart::kTrainedParts] = all | around;
  set_layers(model, trained, parts);
  return Ok{};
}

}  // namespace tpsim
