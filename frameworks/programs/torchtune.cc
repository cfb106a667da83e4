// Imports configurations of torchtune: a recipe's YAML, given alone or named by "tune run".
// torchtune trains with FSDP 2 and DTensor's tensor parallelism. Source of rules and defaults:
// recipes/full_finetune_distributed.py and recipes/configs of pytorch/torchtune at bd2a0fc.
#include <fmt/format.h>

#include <cmath>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "formats/unset_marks.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
namespace {

// torchtune/modules/peft/lora.py. Adapters have the dtype of the model.
void put_adapters(ProgramSettings& settings, bool quantizes) {
  std::string targets;
  const auto add = [&](std::string_view target) {
    targets += fmt::format("{}{}", targets.empty() ? "" : ",", target);
  };
  for (const FlatSetting& one : settings.all()) {
    if (!one.key.starts_with("@attention-modules")) continue;
    for (const auto& [module, target] : {std::pair{"q_proj", "q_proj"},
                                         {"k_proj", "k_proj"},
                                         {"v_proj", "v_proj"},
                                         {"output_proj", "o_proj"}}) {
      if (one.value.find(module) != std::string::npos) add(target);
    }
  }
  if (settings.is("@adapts-mlp", "true")) add("mlp");
  settings.put("@part.finetune", std::string(quantizes ? "qlora" : "lora"));
  settings.put("@part.lora_dtype", std::string("plan"));
  if (!targets.empty()) settings.put("@part.lora_targets", targets);
  if (const std::string* const dropout = settings.find("@dropout")) {
    settings.put("@part.lora_dropout",
                 std::llround(100 * parse_number<double>(*dropout).value_or(0)));
  }
}

// Sets the catalogue's name of the model from its builder, such as
// "torchtune.models.llama3_1.llama3_1_8b". Builders of adapters start with "lora_" or "qlora_".
void put_model(ProgramSettings& settings, LeftSettings& left) {
  const std::string* const component = settings.find("@component");
  if (component == nullptr) return;
  std::string name = component->substr(component->find_last_of('.') + 1);
  if (name.starts_with("dora_")) {
    left.refuse("model._component_", fmt::format("model._component_: {}", *component), kAllWeights);
  }
  const bool quantizes = name.starts_with("qlora_") || settings.is("@quantizes-base", "true");
  if (name.starts_with("lora_") || name.starts_with("qlora_")) {
    name.erase(0, name.find('_') + 1);
    put_adapters(settings, quantizes);
  }
  settings.put("@model", name);
}

}  // namespace

void derive_tune(ProgramSettings& settings, LeftSettings& left) {
  put_model(settings, left);
  const bool is_wide = settings.is("@dtype", "fp32 float32");
  settings.put("bf16", is_wide ? "false" : "true");
  if (!is_wide) {
    const std::string* const name = settings.find("optim");
    const OptimizerRow* const row = name == nullptr ? nullptr : optimizer_called(*name);
    if (row == nullptr || row->moment_bytes == 0) {
      settings.put("@part.optimizer_dtype", std::string("bf16"));
    }
    // With tensor or context parallelism the plan is predicted with torchtitan's stack, which
    // reduces gradients in fp32.
    const bool divides_model = settings.number("@tp", 1) * settings.number("@cp", 1) > 1;
    if (!divides_model) settings.put("@gradients", std::string("bf16"));
    if (divides_model) settings.note("gradients are predicted to accumulate in fp32");
    settings.put("@part.master_weights", std::string("none"));
  }
  if (settings.is("@fused", "true") && settings.is("optim", "adamw_torch")) {
    settings.put("optim", "adamw_torch_fused");
  }
  if (settings.is("@moves-activations", "true")) {
    settings.note(
        "enable_activation_offloading is not modelled: activations are predicted on the GPU, so "
        "memory is an upper bound and the step time a lower bound");
  }
  if (settings.is("@steps-in-backward", "true")) {
    settings.note(
        "optimizer_in_bwd is not modelled: gradients are predicted as kept until the optimizer "
        "step, so memory is an upper bound");
  }
  const std::int64_t shards = settings.number("@shards", 0);
  if (shards > 1) settings.put("dp_shard_size", shards);
  const bool is_single = settings.program.find("single_device") != std::string::npos;
  if (settings.gpus() == 0 && is_single) settings.put("@gpus", 1);
  if (settings.gpus() == 1) settings.erase("fsdp_version");
  if (settings.program.find("dpo") == std::string::npos) return;
  settings.double_pairs({"per_device_train_batch_size"});
}

// Returns the settings with those of the configuration that a command names, as in "tune run
// --nproc_per_node 8 full_finetune_distributed --config llama3_1/8B_full".
Result<std::vector<FlatSetting>> expand_tune(std::vector<FlatSetting> settings,
                                             const LaunchFile& file, const ImportInputs& inputs,
                                             ProgramSettings&) {
  const FlatSetting* const named = find_setting(settings, "config");
  if (named == nullptr) return settings;
  const std::string name = without_marks(named->value);
  std::vector<FlatSetting> all;
  bool is_there = false;
  for (const std::string& place :
       {name, name + ".yaml", "recipes/configs/" + name + ".yaml", "recipes/configs/" + name}) {
    const auto text = text_of_named(place, inputs);
    if (!text) continue;
    TPSIM_TRY(all, flat_settings({place, *text, place}));
    is_there = true;
    break;
  }
  if (!is_there) {
    return not_there(
        name, path_of(file),
        fmt::format("; tune cp {} {} copies a configuration of torchtune", name, name + ".yaml"));
  }
  for (const FlatSetting& one : settings) {
    if (one.key == "config") continue;
    put_setting(one, all);
  }
  return all;
}

}  // namespace tpsim
