// Reads recompute, precision, torch.compile, loss and optimizer of OLMo-core's train module.
//
// Sources: olmo_core/train/train_module/transformer/config.py, optim, float8 and nn/lm_head.py of
// fa6c501.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "frameworks/olmo/olmo_values.h"

namespace tpsim {
namespace {

class OlmoSoftware {
 public:
  OlmoSoftware(OlmoValues& values, ImportedPlan& result) : values_(values), result_(result) {}

  void take() {
    take_recompute();
    take_precision();
    take_float8();
    take_parts();
  }

 private:
  static std::string in_module(std::string_view key) { return fmt::format("train_module.{}", key); }
  void set_part(StackPart part, std::string_view word) {
    result_.parts[part] = parse_value(row_of(part), word).value();
  }
  void note(std::string text) { result_.notes.push_back(std::move(text)); }

  void take_recompute() {
    Plan& plan = result_.plan;
    plan.recompute = Recompute::kNone;
    if (!values_.has_section(in_module("ac_config"))) return;
    const std::string key = in_module("ac_config.mode");
    const std::string mode = values_.text(key);
    if (mode == "full") {
      plan.recompute = Recompute::kFull;
    } else if (mode == "selected_ops") {
      plan.recompute = Recompute::kOps;
    } else if (mode == "budget") {
      take_budget();
    } else if (mode == "selected_modules") {
      take_modules();
    } else if (mode == "selected_blocks") {
      take_blocks();
    } else {
      values_.refuse(key, "this activation checkpointing is not modelled");
    }
  }

  // PyTorch's partitioner chooses which activations fit in a share of memory. Predicted is the
  // nearest of tpsim's modes.
  void take_budget() {
    const std::string key = in_module("ac_config.activation_memory_budget");
    const double budget = values_.real(key, 1);
    constexpr double kNearlyAll = 0.25;
    if (budget >= 1) return;
    const bool is_full = budget < kNearlyAll;
    result_.plan.recompute = is_full ? Recompute::kFull : Recompute::kOps;
    note(fmt::format("activation_memory_budget {} is predicted as {}", budget,
                     is_full ? "full recompute" : "recompute of ops (every second GEMM)"));
  }

  // Reads modules such as "blocks.*.feed_forward", or one such name per block.
  void take_modules() {
    const std::string key = in_module("ac_config.modules");
    std::int64_t modules = 0;
    const std::vector<std::string> names = values_.list(key);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string_view name = names[i];
      const std::string_view last = name.substr(name.rfind('.') + 1);
      if (last == "feed_forward") {
        modules |= bit(RecomputeModule::kMlp);
      } else if (matches_any(last, "attention_norm feed_forward_norm *_norm")) {
        modules |= bit(RecomputeModule::kLayerNorm);
      } else {
        values_.refuse(fmt::format("{}.{}", key, i), "recompute of this module is not modelled");
      }
    }
    if (modules == 0) return;
    result_.plan.recompute = Recompute::kSelective;
    result_.parts[StackPart::kRecomputeModules] = modules;
  }

  // Every n-th block is recomputed; tpsim recomputes as many of a stage's first blocks.
  void take_blocks() {
    const std::int64_t every =
        std::max<std::int64_t>(1, values_.number(in_module("ac_config.block_interval"), 1));
    if (every == 1) {
      result_.plan.recompute = Recompute::kFull;
      return;
    }
    Plan& plan = result_.plan;
    const std::int64_t most = *std::max_element(plan.stage_layers.begin(), plan.stage_layers.end());
    plan.recompute = Recompute::kBlocks;
    plan.recompute_blocks = (most + every - 1) / every;
  }

  void take_precision() {
    Plan& plan = result_.plan;
    const std::string param = values_.text(in_module("dp_config.param_dtype"));
    const std::string cast = values_.text(in_module("autocast_precision"));
    const std::string reduced = values_.text(in_module("dp_config.reduce_dtype"));
    const std::string kind = values_.text(in_module("dp_config.name"));
    plan.attention = AttentionKind::kFlash;
    plan.dtype = DType::kFloat32;
    if (param == "bfloat16") {
      plan.dtype = DType::kBFloat16;
    } else if (cast == "bfloat16") {
      plan.dtype = DType::kBFloat16;
      set_part(StackPart::kMasterWeights, "autocast");
    } else if (!matches_any(param, "float32") && !param.empty()) {
      values_.refuse(in_module("dp_config.param_dtype"), "tpsim models bfloat16 and float32");
    }
    if (kind == "ddp" && param == "bfloat16") {  // the whole model is converted
      plan.gradient_dtype = DType::kBFloat16;
      set_part(StackPart::kMasterWeights, "none");
      set_part(StackPart::kOptimizerDtype, "bf16");
    }
    if (plan.zero >= 2 && plan.dtype == DType::kBFloat16 && reduced == "bfloat16") {
      set_part(StackPart::kReduceDtype, "as_computed");
    }
  }

  void take_float8() {
    const std::string section = in_module("float8_config");
    if (!values_.has_section(section) || !values_.flag(section + ".enabled", true)) return;
    const std::string recipe = values_.text(section + ".ao_recipe");
    if (values_.has_section(section + ".ao_mx")) {
      result_.plan.precision = Precision::kMxFp8;
    } else if (recipe.empty() || recipe == "tensorwise") {
      result_.plan.precision = Precision::kFp8Current;
    } else {
      values_.refuse(section + ".ao_recipe", "tpsim models tensorwise scales and MXFP8");
    }
    if (values_.flag(section + ".ao.enable_fsdp_float8_all_gather")) {
      note(
          "enable_fsdp_float8_all_gather: weights are predicted as gathered in 16 bits, so the "
          "step is an upper bound");
    }
  }

  void take_parts() {
    if (values_.flag(in_module("compile_model"))) set_part(StackPart::kCompile, "on");
    if (values_.text("model.lm_head.loss_implementation") == "fused_linear") {
      set_part(StackPart::kLossHead, "fused");
    }
    if (values_.real(in_module("z_loss_multiplier")) > 0) {
      note("z_loss_multiplier: the pass over the logits for its gradient is left out");
    }
    take_optimizer();
    result_.parts[StackPart::kExpandableSegments] = 0;
    for (std::size_t i = 0; values_.has_section(fmt::format("launch.env_vars.{}", i)); ++i) {
      const std::string value = values_.text(fmt::format("launch.env_vars.{}.value", i));
      const bool expands = value.find("expandable_segments:True") != std::string::npos;
      if (expands) result_.parts[StackPart::kExpandableSegments] = 1;
    }
  }

  void take_optimizer() {
    const std::string at = in_module("optim.");
    const std::string made = values_.class_of(in_module("optim"));
    const bool is_compiled = values_.flag(at + "compile");
    const bool is_fused = values_.flag(at + "fused") || is_compiled;
    set_part(StackPart::kOptimizerKernel, is_fused ? "fused" : "torch");
    if (values_.text(at + "dtype") == "bfloat16") set_part(StackPart::kOptimizerDtype, "bf16");
    if (made.ends_with(".MuonConfig")) {
      set_part(StackPart::kOptimizerKind, "muon");
    } else if (!made.ends_with(".AdamWConfig") && !made.ends_with(".SkipStepAdamWConfig") &&
               !made.ends_with(".AdamConfig")) {
      values_.refuse(fmt::format("train_module.optim.{}", kMadeBy), kAdamState);
    }
  }

  OlmoValues& values_;
  ImportedPlan& result_;
};

}  // namespace

void take_olmo_software(OlmoValues& values, ImportedPlan& result) {
  OlmoSoftware(values, result).take();
}

}  // namespace tpsim
