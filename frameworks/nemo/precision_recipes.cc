// Precision recipes of Megatron-Bridge and NeMo, which set dtype, FP8 or FP4 recipe and the dtype
// of reduced gradients by one name. Other combinations are a section with the recipe's fields.
//
// Sources: training/mixed_precision.py and runtime_config_update() of Megatron-Bridge 067f987.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/text.h"
#include "formats/settings_text.h"
#include "frameworks/launch/launch_options.h"
#include "frameworks/launch/launcher.h"
#include "frameworks/launch/nemo_settings.h"

namespace tpsim {
namespace {

// Precision recipes of Megatron-Bridge and NeMo. Each name follows the prefix "bf16_" or "fp16_".
struct PrecisionRecipe {
  std::string_view name;
  std::string_view format;  // FP8 or FP4 format; empty: all GEMMs have 16 bits
  std::string_view recipe;
  bool gathers = false;  // all-gathers weights in 8 bits
  // Whether a plan is predicted otherwise: the recipe keeps the first and last block in 16 bits, or
  // gathers weights in 4 bits.
  bool differs = false;
};
constexpr PrecisionRecipe kPrecisions[] = {
    {"mixed", "", ""},
    {"with_fp8_mixed", "hybrid", "delayed", true},
    {"with_fp8_delayed_scaling_mixed", "hybrid", "delayed", true},
    {"with_fp8_current_scaling_mixed", "hybrid", "tensorwise", true, true},
    {"with_fp8_subchannel_scaling_mixed", "hybrid", "blockwise"},
    {"with_mxfp8_mixed", "e4m3", "mxfp8", true},
    {"with_nvfp4_mixed", "e2m1", "nvfp4", false, true},
};

Result<std::vector<FlatSetting>> settings_of_precision(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  const bool is_narrow = name.starts_with("fp16_") || name.starts_with("16_");
  const std::size_t dash = name.find('_');
  for (const PrecisionRecipe& row : kPrecisions) {
    if (!matches_any(name.substr(0, dash), "bf16 fp16 16") || name.substr(dash + 1) != row.name) {
      continue;
    }
    std::vector<FlatSetting> settings = {{is_narrow ? "model.fp16" : "model.bf16", "true"},
                                         {"ddp.grad_reduce_in_fp32", is_narrow ? "false" : "true"}};
    if (row.format.empty()) return settings;
    const std::string bits = row.recipe == "nvfp4" ? "model.fp4" : "model.fp8";
    settings.push_back({bits, std::string(row.format)});
    settings.push_back({bits + "_recipe", std::string(row.recipe)});
    if (row.gathers) settings.push_back({bits + "_param", "true"});
    return settings;
  }
  std::vector<std::string> names;
  for (const PrecisionRecipe& row : kPrecisions) names.push_back(fmt::format("bf16_{}", row.name));
  return bad_input(fmt::format("mixed_precision is {}, which is unknown", name), "",
                   fmt::format("use {}, or one of these with fp16", fmt::join(names, ", ")));
}

// Returns the Megatron-Bridge key of a field in the mixed_precision section.
std::string key_of_precision(const std::string& name) {
  if (name == "grad_reduce_in_fp32") return "ddp." + name;
  if (name == "fp8_param_gather") return "model.fp8_param";
  return "model." + name;
}

constexpr std::string_view kSetByRecipe =
    "--bf16 --fp16 --fp8-format --fp8-recipe --fp8-param-gather --fp4-format --fp4-recipe "
    "--accumulate-allreduce-grads-in-fp32 --grad-reduce-in-bf16";

// Returns the gradient dtype of the named recipes.
DType reduced_by_recipe(DType dtype) { return dtype == DType::kBFloat16 ? DType::kFloat32 : dtype; }

// Returns the fields of MixedPrecisionConfig that the FP8 or FP4 recipe of a plan needs.
std::string quantized_fields(const Plan& plan, const LaunchOptions& megatron,
                             const std::string& recipe) {
  if (recipe.empty()) return "";
  if (recipe == "nvfp4") {
    return fmt::format("  fp4: {}\n  fp4_recipe: nvfp4\n",
                       setting_value(megatron.all(), "--fp4-format"));
  }
  std::string text =
      fmt::format("  fp8: {}\n  fp8_recipe: {}\n  fp8_param_gather: {}\n",
                  setting_value(megatron.all(), "--fp8-format"), recipe, plan.fp8_param_gather);
  if (recipe == "delayed") text += "  fp8_amax_history_len: 1024\n  fp8_amax_compute_algo: max\n";
  if (recipe == "mxfp8" && plan.fp8_param_gather) {  // required by ConfigContainer.validate()
    text += "  reuse_grad_buf_for_mxfp8_param_ag: true\n";
  }
  return text;
}

// Returns the section that states a precision without a name. Megatron-Bridge creates the object
// (_apply_overrides() in training/utils/omegaconf_utils.py).
std::string precision_section(const Plan& plan, const std::string& fields) {
  const bool is_brain = plan.dtype == DType::kBFloat16;
  constexpr std::string_view kDtype = "  {}:\n    _target_: torch.{}\n    _call_: false\n";
  std::string text = fmt::format(
      "mixed_precision:\n"
      "  _target_: megatron.bridge.training.mixed_precision.MixedPrecisionConfig\n"
      "  {}: true\n",
      name_of(plan.dtype));
  for (const char* const key : {"params_dtype", "pipeline_dtype"}) {
    text += fmt::format(fmt::runtime(kDtype), key, is_brain ? "bfloat16" : "float16");
  }
  return text + fmt::format("  grad_reduce_in_fp32: {}\n{}", plan.gradient_dtype == DType::kFloat32,
                            fields);
}

}  // namespace

Result<std::vector<FlatSetting>> with_precision(std::vector<FlatSetting> settings) {
  constexpr std::string_view kSection = "mixed_precision";
  std::vector<FlatSetting> rest, chosen;
  for (FlatSetting& one : settings) {
    const bool is_name = one.key == kSection || one.key == "mixed_precision.precision";
    if (is_name || one.key == "mixed_precision.dtype") {
      if (one.value.empty() || one.value == "32") continue;
      const bool is_dtype = one.key.ends_with(".dtype");
      TPSIM_TRY(const auto named, settings_of_precision(one.value + (is_dtype ? "_mixed" : "")));
      chosen.insert(chosen.begin(), named.begin(), named.end());
    } else if (one.key.starts_with("mixed_precision.")) {
      one.key = key_of_precision(one.key.substr(kSection.size() + 1));
      if (has_nemo_key(one.key)) chosen.push_back(std::move(one));
    } else {
      rest.push_back(std::move(one));
    }
  }
  // A later mixed_precision setting overrides earlier settings with the same key, in any section.
  put_settings(std::move(chosen), rest);
  return rest;
}

Result<NemoPrecision> nemo_precision(const Plan& plan, const LaunchOptions& megatron) {
  NemoPrecision result;
  for (const LaunchOption& option : megatron.all()) {
    if (!matches_any(option.key, kSetByRecipe)) result.others.add(option.key, option.value);
  }
  if (plan.dtype == DType::kFloat32) {
    result.yaml = "mixed_precision: null\n";
    return result;
  }
  if (plan.gradient_dtype != DType::kFloat32 && plan.gradient_dtype != plan.dtype) {
    return cannot_express(
        LaunchStack::kNemo,
        fmt::format("{} gradients with {}", name_of(plan.gradient_dtype), name_of(plan.dtype)),
        "it reduces gradients in fp32 or in the dtype of the weights");
  }
  const std::string recipe =
      setting_value(megatron.all(), "--fp8-recipe") + setting_value(megatron.all(), "--fp4-recipe");
  for (const PrecisionRecipe& row : kPrecisions) {
    if (row.recipe != recipe || row.name == "with_fp8_mixed") continue;
    const bool is_named = !row.differs && row.gathers == plan.fp8_param_gather &&
                          plan.gradient_dtype == reduced_by_recipe(plan.dtype);
    result.yaml = is_named ? fmt::format("mixed_precision: {}_{}\n", name_of(plan.dtype), row.name)
                           : precision_section(plan, quantized_fields(plan, megatron, recipe));
    return result;
  }
  return cannot_express(LaunchStack::kNemo, fmt::format("precision {}", name_of(plan.precision)),
                        "it has no precision recipe of this kind");
}

}  // namespace tpsim
