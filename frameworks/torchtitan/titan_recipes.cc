// Imports configurations that torchtitan's Python registry of 2026 (config_registry.py) creates, by
// converting them to command-line options.
//
// Sources: torchtitan/config/configs.py, trainer.py and models/common of b5bcd76.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/torchtitan/titan_families.h"

namespace tpsim {
namespace {

class TitanRecipe {
 public:
  TitanRecipe(const ResolvedRecipe& recipe, const ImportInputs& inputs)
      : recipe_(recipe), inputs_(inputs) {
    for (const FlatSetting& one : recipe.settings) {
      // Configurations for reinforcement learning have the trainer's sections under a common
      // prefix.
      const bool is_half = one.key.starts_with(kTrainer);
      const std::string key = is_half ? one.key.substr(kTrainer.size()) : one.key;
      if (is_half || !values_.contains(key)) values_[key] = one.value;
      if (is_half) halves_.push_back({key, one.value, one.line});
    }
  }

  Result<ImportedPlan> plan() {
    if (text("training.num_tokens_per_microbatch_per_dp_rank").empty()) {
      return bad_input(
          "has no training.num_tokens_per_microbatch_per_dp_rank: tpsim cannot read it", "",
          "name a function that returns a training configuration: --set recipe=NAME");
    }
    if (text("model_spec.name") == "flux") {
      return bad_input("trains flux, a diffusion model, which is not modelled");
    }
    ImportInputs inputs = inputs_;
    if (!inputs.model) inputs.model = model();
    for (const char* name : {"name", "flavor"}) {  // to find the catalogue's model
      set(fmt::format("model.{}", name), text(fmt::format("model_spec.{}", name)));
    }
    TPSIM_TRY_STATUS(refuse_adapters());
    const bool is_known = inputs.model || titan_flavour(settings_, inputs);
    if (!is_known) inputs.model = named(titan_family_model(values_));
    take_sections();
    take_rollouts();
    TPSIM_TRY_STATUS(take_checkpointing());
    TPSIM_TRY_STATUS(take_precision());
    TPSIM_TRY(ImportedPlan result, import_torchtitan(settings_, inputs));
    if (!halves_.empty()) {
      result.notes.emplace_back(
          "only the training part of reinforcement learning is predicted, without rollouts. Every "
          "sequence has the maximum length, so the step time is an upper bound");
    }
    return result;
  }

 private:
  static constexpr std::string_view kTrainer = "trainer.";

  std::string text(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? "" : found->second;
  }
  std::int64_t number(const std::string& key) const {
    return parse_number<std::int64_t>(text(key)).value_or(0);
  }
  double real(const std::string& key) const { return parse_number<double>(text(key)).value_or(0); }
  bool has_section(const std::string& key) const {
    return !text(fmt::format("{}.{}", key, kMadeBy)).empty();
  }
  void set(std::string key, std::string value) {
    settings_.push_back({std::move(key), std::move(value), 0});
  }

  // In reinforcement learning, the rollouts of a training step define its batch.
  void take_rollouts() {
    const std::int64_t rollouts = number("async_loop.num_prompts_per_train_step") *
                                  number("async_loop.num_samples_per_prompt");
    const bool is_stated = number("training.num_tokens_per_train_step") > 0;
    if (is_stated || halves_.empty() || rollouts < 1) return;
    const std::int64_t seq = std::min(number("training.num_tokens_per_microbatch_per_dp_rank"),
                                      number("training.max_context_length"));
    set("training.num_tokens_per_train_step", std::to_string(rollouts * seq));
  }

  // Copies the settings that are also command-line options. Settings of data, logs and files do not
  // affect a plan.
  void take_sections() {
    constexpr std::string_view kRead = "training.* parallelism.* compile.* loss.num_chunks";
    std::vector<FlatSetting> all = recipe_.settings;
    put_settings(halves_, all);
    for (const FlatSetting& one : all) {
      if (!matches_any(one.key, kRead)) continue;
      if (one.key.ends_with(kMadeBy) || one.value.empty()) continue;
      const bool is_known = matches_any(one.key, fact_names("torchtitan-recipes", "known"));
      const bool is_default =
          recipe_.is_default(one.key) || recipe_.is_default(fmt::format("{}{}", kTrainer, one.key));
      if (is_default && !is_known) continue;
      const bool has_no_value =
          one.key == "training.num_tokens_per_train_step" && one.value == "-1";
      if (has_no_value || matches_any(one.key, "compile.backend parallelism.spmd_backend"))
        continue;
      set(one.key, one.value);
    }
    std::erase_if(settings_, [&](const FlatSetting& one) {
      const bool is_cut = one.key.starts_with("parallelism.pipeline_parallel_");
      return is_cut && number("parallelism.pipeline_parallel_degree") <= 1;
    });
  }

  Status take_checkpointing() {
    const std::string made = text(fmt::format("activation_checkpoint.{}", kMadeBy));
    if (made.empty()) {
      set("activation_checkpoint.mode", "none");
    } else if (made.find("FullAC") != std::string::npos) {
      set("activation_checkpoint.mode", "full");
    } else if (made.find("SelectiveAC") != std::string::npos) {
      set("activation_checkpoint.mode", "selective");
      set("activation_checkpoint.selective_ac_option", "op");
    } else {
      return bad_input(fmt::format("activation checkpointing by {} is not modelled", made), "",
                       "tpsim models FullAC, SelectiveAC and no checkpointing");
    }
    return Ok{};
  }

  Status refuse_adapters() const {
    if (text("model_spec.model.layers.0.attention._target_").find(".lora.") == std::string::npos) {
      return Ok{};
    }
    return bad_input("trains adapters (LoRA), which are not modelled", "", kAllWeights);
  }

  // Detects low-precision training and adapters by the classes of the linear layers, which
  // torchtitan's converters replace.
  Status take_precision() {
    for (const FlatSetting& one : recipe_.settings) {
      if (!one.key.ends_with(kMadeBy) || !one.key.starts_with("model_spec.model.layers.")) continue;
      if (one.value.find("LoRA") != std::string::npos) {
        return bad_input("trains adapters (LoRA), which are not modelled", "", kAllWeights);
      }
      if (one.value.find("NVFP4") != std::string::npos) {
        return bad_input("torchtitan's NVFP4 is not modelled", "",
                         "tpsim models torchtitan's Float8 and MXFP8");
      }
      const bool is_mx = one.value.find("MXFP8") != std::string::npos;
      if (!is_mx && one.value.find("Float8") == std::string::npos) continue;
      const char* const name = is_mx ? "quantize.linear.mx" : "quantize.linear.float8";
      set("model.converters", name);
      return Ok{};
    }
    return Ok{};
  }

  // Returns the model that the modules describe. Nothing if a module is unknown:
  // import_torchtitan() then finds the model by its flavor.
  std::optional<ModelSpec> model() const {
    ModelSpec model;
    const std::string root = "model_spec.model.";
    model.hidden = number(root + "dim");
    model.vocab = number(root + "vocab_size");
    model.norm = NormKind::kRmsNorm;
    model.mlp = MlpKind::kSwiglu;
    model.linear_bias = model.fused_qkv = false;
    model.tied_embedding = text(root + "enable_weight_tying") == "true";
    model.seq = std::max<std::int64_t>(1, number("training.max_context_length"));
    model.norm_epsilon = real(root + "norm.eps");
    std::vector<BlockShape> blocks;
    for (std::int64_t layer = 0; has_section(fmt::format("{}layers.{}", root, layer)); ++layer) {
      const auto block = block_at(fmt::format("{}layers.{}.", root, layer));
      if (!block) return std::nullopt;
      blocks.push_back(*block);
    }
    if (blocks.empty() || model.hidden < 1) return std::nullopt;
    model.layers = static_cast<std::int64_t>(blocks.size());
    set_blocks(model, blocks);
    if (!validate(model).ok()) return std::nullopt;
    return named(std::move(model));
  }

  std::optional<ModelSpec> named(std::optional<ModelSpec> model) const {
    if (!model) return model;
    model->name = fmt::format("{}-{}", text("model_spec.name"), text("model_spec.flavor"));
    model->source = "stated by torchtitan's registry";
    model->seq = std::max<std::int64_t>(1, number("training.max_context_length"));
    return model;
  }

  std::optional<BlockShape> block_at(const std::string& at) const {
    BlockShape block;
    if (!text(at + "attention._target_").ends_with(".GQAttention.Config")) return std::nullopt;
    AttentionShape& attention = block.attention;
    attention.heads = number(at + "attention.n_heads");
    attention.kv_heads = number(at + "attention.n_kv_heads");
    if (attention.kv_heads == 0) attention.kv_heads = attention.heads;
    attention.head_dim = number(at + "attention.qkv_linear.head_dim");
    attention.position = PositionKind::kRotary;
    attention.rope_theta = real(at + "attention.rope.theta");
    if (has_section(at + "attention.qk_norm")) attention.qk_norm = QkNorm::kHead;
    if (has_section(at + "moe")) return with_experts(std::move(block), at + "moe.");
    block.ffn_hidden = number(at + "feed_forward.w1.out_features");
    return block.ffn_hidden > 0 ? std::optional(block) : std::nullopt;
  }

  std::optional<BlockShape> with_experts(BlockShape block, const std::string& at) const {
    block.ffn_hidden = number(at + "routed_experts.inner_experts.hidden_dim");
    block.experts.count = number(at + "num_experts");
    block.experts.per_token = number(at + "router.top_k");
    block.experts.dropless = true;
    block.experts.shared_ffn = number(at + "shared_experts.w1.out_features");
    RouterShape& router = block.experts.router;
    const bool is_sigmoid = text(at + "router.score_func") == "sigmoid";
    router.score = is_sigmoid ? RouterScore::kSigmoid : RouterScore::kAll;
    router.renormalises = text(at + "router.route_norm") == "true";
    router.scaling = real(at + "router.route_scale");
    router.groups = std::max<std::int64_t>(1, number(at + "router.num_expert_groups"));
    router.groups_kept = std::max<std::int64_t>(1, number(at + "router.num_limited_groups"));
    return block.ffn_hidden > 0 ? std::optional(block) : std::nullopt;
  }

  const ResolvedRecipe& recipe_;
  const ImportInputs& inputs_;
  TitanValues values_;
  std::vector<FlatSetting> settings_;
  std::vector<FlatSetting> halves_;  // reinforcement learning: trainer settings without prefix
};

}  // namespace

Result<ImportedPlan> import_torchtitan_recipe(const ResolvedRecipe& recipe,
                                              const ImportInputs& inputs) {
  return TitanRecipe(recipe, inputs).plan();
}

}  // namespace tpsim
