// Precision recipes of Megatron-Bridge and NeMo, which set dtype, FP8 or FP4 recipe and the dtype
// of reduced gradients by one name.
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
};
constexpr PrecisionRecipe kPrecisions[] = {
    {"mixed", "", ""},
    {"with_fp8_mixed", "hybrid", "delayed", true},
    {"with_fp8_delayed_scaling_mixed", "hybrid", "delayed", true},
    {"with_fp8_current_scaling_mixed", "hybrid", "tensorwise", true},
    {"with_fp8_subchannel_scaling_mixed", "hybrid", "blockwise"},
    {"with_mxfp8_mixed", "e4m3", "mxfp8", true},
    {"with_nvfp4_mixed", "e2m1", "nvfp4"},
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
  for (FlatSetting& one : chosen) {
    std::erase_if(rest, [&](const FlatSetting& other) { return other.key == one.key; });
    rest.push_back(std::move(one));
  }
  return rest;
}

namespace {

constexpr std::string_view kSetByRecipe =
    "--bf16 --fp16 --fp8-format --fp8-recipe --fp8-param-gather --fp4-format --fp4-recipe "
    "--accumulate-allreduce-grads-in-fp32 --grad-reduce-in-bf16";

std::string value_of(const LaunchOptions& options, std::string_view name) {
  const LaunchOption* found = find_option(options.all(), name);
  return found == nullptr ? "" : found->value;
}

}  // namespace

Result<NemoPrecision> nemo_precision(const Plan& plan, const LaunchOptions& megatron) {
  NemoPrecision result;
  for (const LaunchOption& option : megatron.all()) {
    if (!matches_any(option.name, kSetByRecipe)) result.others.add(option.name, option.value);
  }
  const auto refused = [](const std::string& what, const char* why) {
    return cannot_express(LaunchStack::kNemo, what, why);
  };
  if (plan.dtype == DType::kFloat32) {
    result.recipe = "null";
    return result;
  }
  const DType reduced = plan.dtype == DType::kBFloat16 ? DType::kFloat32 : plan.dtype;
  if (plan.gradient_dtype != reduced) {
    return refused(
        fmt::format("{} gradients with {}", name_of(plan.gradient_dtype), name_of(plan.dtype)),
        "its precision recipes reduce gradients in fp32 with bf16, and in fp16 with fp16");
  }
  const std::string format =
      value_of(megatron, "--fp8-format") + value_of(megatron, "--fp4-format");
  const std::string recipe =
      value_of(megatron, "--fp8-recipe") + value_of(megatron, "--fp4-recipe");
  for (const PrecisionRecipe& row : kPrecisions) {
    if (row.recipe != recipe || row.name == "with_fp8_mixed") continue;
    if (row.gathers != plan.fp8_param_gather) {
      return refused(fmt::format("precision {} with weights gathered in {} bits",
                                 name_of(plan.precision), row.gathers ? 16 : 8),
                     row.gathers
                         ? "its recipe gathers weights in 8 bits: add --fp8-param-gather on"
                         : "its recipe gathers weights in 16 bits: add --fp8-param-gather off");
    }
    result.recipe = fmt::format("{}_{}", name_of(plan.dtype), row.name);
    return result;
  }
  return refused(fmt::format("precision {}", name_of(plan.precision)),
                 "it has no precision recipe of this kind");
}

}  // namespace tpsim
