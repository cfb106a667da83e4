// Configurations made by recipes of Megatron-Bridge, and by NeMo 2's in Megatron-Bridge's names.
//
// Sources: training/config.py, training/comm_overlap.py and models/*/*_bridge.py of Megatron-Bridge
// 067f987.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_settings.h"
#include "frameworks/nemo/nemo_run.h"

namespace tpsim {
namespace {

// Adds settings that all bridges for MoE models set, unless the recipe sets them. Source:
// models/*/*_bridge.py of Megatron-Bridge 067f987.
void add_hub_experts(std::vector<FlatSetting>& settings) {
  constexpr std::pair<const char*, const char*> kSet[] = {
      {"model.moe_token_dispatcher_type", "alltoall"},
      {"model.moe_grouped_gemm", "true"},
      {"model.moe_permute_fusion", "true"},
  };
  for (const auto& [key, value] : kSet) {
    if (!has_key(settings, key)) settings.push_back({key, value, 0});
  }
}

// A comm_overlap section enables both overlaps of data-parallel replicas by default. Source:
// training/comm_overlap.py.
void add_overlap(std::vector<FlatSetting>& settings) {
  if (!has_key(settings, fmt::format("comm_overlap.{}", kMadeBy))) return;
  std::string value = "true";  // weights are gathered early only if gradients are reduced early
  for (const char* name : {"overlap_grad_reduce", "overlap_param_gather"}) {
    const FlatSetting* const stated = find_setting(settings, fmt::format("comm_overlap.{}", name));
    if (stated != nullptr && !stated->value.empty()) value = stated->value;
    std::erase_if(settings, [&](const FlatSetting& one) {
      return one.key == fmt::format("comm_overlap.{}", name) ||
             one.key == fmt::format("ddp.{}", name);
    });
    settings.push_back({fmt::format("ddp.{}", name), value, 0});
  }
}

// Returns "torch.bfloat16" in the notation of Megatron's options.
std::string dtype_word(const std::string& value) {
  constexpr std::pair<std::string_view, std::string_view> kDtypes[] = {
      {"torch.bfloat16", "bf16"},
      {"torch.float32", "fp32"},
      {"torch.float16", "fp16"},
      {"torch.uint8", "fp8"},
      {"torch.float8_e4m3fn", "fp8"}};
  for (const auto& [torch, word] : kDtypes) {
    if (value == torch) return std::string(word);
  }
  return value;
}

bool is_on(const std::vector<FlatSetting>& settings, std::string_view key) {
  const FlatSetting* const found = find_setting(settings, key);
  return found != nullptr && found->value == "true";
}

// Removes settings that make a step cheaper and are not modelled. Returns notes that name them.
std::vector<std::string> take_savings(std::vector<FlatSetting>& settings) {
  constexpr std::string_view kSavings =
      "model.use_transformer_engine_op_fuser model.use_fused_weighted_squared_relu "
      "model.fused_single_qkv_rope ddp.nccl_ub "
      "ddp.fsdp_manual_registration ddp.fsdp_double_buffer ddp.keep_fp8_transpose_cache "
      "model.disable_parameter_transpose_cache ddp.reuse_grad_buf_for_mxfp8_param_ag "
      "optimizer.reuse_grad_buf_for_mxfp8_param_ag model.fp8_output_proj "
      "model.tp_comm_bulk_* model.tp_comm_split_*";
  std::vector<std::string> savings, notes;
  std::erase_if(settings, [&](const FlatSetting& one) {
    if (!matches_any(one.key, kSavings)) return false;
    if (one.value == "true") savings.push_back(one.key);
    return true;
  });
  if (!savings.empty()) {
    notes.push_back(
        fmt::format("predicted without {}: the step is an upper bound", fmt::join(savings, ", ")));
  }
  const bool keeps_ends = is_on(settings, "mixed_precision.first_last_layers_bf16") ||
                          is_on(settings, "model.first_last_layers_bf16");
  std::erase_if(settings, [](const FlatSetting& one) {
    return matches_any(one.key,
                       "mixed_precision.first_last_layers_bf16 "
                       "model.first_last_layers_bf16 mixed_precision.num_layers_at_* "
                       "model.num_layers_at_*");
  });
  if (keeps_ends) {
    notes.emplace_back(
        "the first and the last block, which the recipe keeps in 16 bits, are predicted as the "
        "others");
  }
  return notes;
}

// Resolves aliases, and removes settings that another setting disables.
void settle_dependent(std::vector<FlatSetting>& settings) {
  constexpr std::string_view kExpertOverlap = "comm_overlap.overlap_moe_expert_parallel_comm";
  if (is_on(settings, "model.moe_a2a_overlap")) {
    std::erase_if(settings, [&](const FlatSetting& one) { return one.key == kExpertOverlap; });
    settings.push_back({std::string(kExpertOverlap), "true", 0});
  }
  const bool sums_in_16_bits = !is_on(settings, "ddp.grad_reduce_in_fp32");
  const bool offloads = is_on(settings, "model.cpu_offloading");
  const bool offloads_parts = is_on(settings, "model.fine_grained_activation_offloading");
  std::erase_if(settings, [&](const FlatSetting& one) {
    const bool is_sum = one.key == "optimizer.main_grads_dtype" && one.value == "bf16";
    const bool is_offload = one.key.starts_with("model.cpu_offloading_") && !offloads;
    const bool is_part = one.key.starts_with("model.offload_modules") && !offloads_parts;
    return one.key == "model.moe_a2a_overlap" || (is_sum && sums_in_16_bits) || is_offload ||
           is_part;
  });
}

// Returns the stated settings. Skips empty ones, and unknown ones with the default of their class.
std::vector<FlatSetting> stated_settings(const ResolvedRecipe& recipe, bool is_hub) {
  std::vector<FlatSetting> settings;
  for (const FlatSetting& one : recipe.settings) {
    const bool is_made_by = one.key.ends_with(kMadeBy);
    if (one.value.empty() || (is_made_by && one.key.find('.') == std::string::npos)) continue;
    if (recipe.is_default(one.key)) {
      const bool is_bridges = is_hub && one.key.starts_with("model.moe_");
      if (is_bridges || !(has_nemo_key(one.key) || (!is_hub && one.key.starts_with("model.")))) {
        continue;
      }
    }
    settings.push_back({one.key, dtype_word(one.value), one.line});
  }
  add_overlap(settings);
  settle_dependent(settings);
  std::erase_if(settings, [](const FlatSetting& one) {
    return one.key.ends_with(kMadeBy) && !one.key.starts_with("peft.");
  });
  return settings;
}

// Returns the GPUs in "qwen3_30b_a3b_pretrain_16gpu_h100_bf16_config"; 0 if there are none.
std::int64_t gpus_of_name(const std::string& name) {
  const std::size_t end = name.find("gpu_");
  if (end == std::string::npos) return 0;
  const std::size_t begin = name.rfind('_', end) + 1;
  return parse_number<std::int64_t>(name.substr(begin, end - begin)).value_or(0);
}

LaunchSize size_of_recipe(const ResolvedRecipe& recipe) {
  const auto number = [&](std::string_view key) {
    const FlatSetting* const found = find_setting(recipe.settings, key);
    return found == nullptr ? 0 : parse_number<std::int64_t>(found->value).value_or(0);
  };
  constexpr std::int64_t kMost = 1 << 16;
  const std::int64_t nodes = number("trainer.num_nodes"), devices = number("trainer.devices");
  if (nodes > 0 && devices > 0 && nodes <= kMost && devices <= kMost) return {nodes, devices};
  return {1, gpus_of_name(recipe.function)};
}

void take_env_vars(const std::vector<FlatSetting>& settings, LaunchCommand& command) {
  for (const FlatSetting& one : settings) {
    if (matches_any(one.key, "env_vars.PYTORCH_CUDA_ALLOC_CONF env_vars.PYTORCH_ALLOC_CONF")) {
      command.expandable_segments = one.value.find("expandable_segments:True") != std::string::npos;
    }
    if (one.key == "env_vars.CUDA_LAUNCH_BLOCKING") command.blocks_launches = one.value == "1";
  }
}

// Returns the model that the recipe loads from the hub, or the one named by --model.
Result<std::optional<ModelSpec>> hub_model(const std::string& name, const ImportInputs& inputs,
                                           OpenQuestions& open) {
  if (inputs.model) return inputs.model;
  if (name.empty()) return std::optional<ModelSpec>();
  if (inputs.load) {
    auto named = inputs.load(name);
    if (named.ok()) return std::optional<ModelSpec>(*std::move(named));
  }
  open.ask({fmt::format("the recipe takes {} from the hub, which the catalogue lacks", name),
            kModelAnswer});
  return std::optional<ModelSpec>();
}

}  // namespace

namespace {

// Returns "nemo....Llama3Config8B" as "Llama38B". Names of the catalogue are compared by letters
// and digits.
std::string model_of_class(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('.') + 1);
  const std::size_t at = name.find("Config");
  if (at == std::string_view::npos || at == 0) return "";
  return std::string(name.substr(0, at)) + std::string(name.substr(at + 6));
}

// NeMo names its model classes after the models.
std::optional<ModelSpec> class_model(const ResolvedRecipe& recipe, const ImportInputs& inputs) {
  const FlatSetting* const made = find_setting(recipe.settings, fmt::format("model.{}", kMadeBy));
  if (recipe.framework != "nemo" || made == nullptr || !inputs.load) return std::nullopt;
  const std::string name = model_of_class(made->value);
  if (name.empty()) return std::nullopt;
  auto named = inputs.load(name);
  return named.ok() ? std::optional(*std::move(named)) : std::nullopt;
}

// Applies the recipe's vocab size and multi-token prediction layers to the hub's model.
void take_chosen_ends(std::vector<FlatSetting>& settings, ModelSpec& model,
                      std::vector<std::string>& notes) {
  const auto number = [&](std::string_view key) {
    const FlatSetting* const found = find_setting(settings, key);
    return found == nullptr ? 0 : parse_number<std::int64_t>(found->value).value_or(0);
  };
  const std::int64_t vocab = number("model.vocab_size");
  if (vocab > 0 && vocab != model.vocab) {
    notes.push_back(fmt::format("the recipe trains {} with a vocabulary of {}, not {}", model.name,
                                vocab, model.vocab));
    model.vocab = vocab;
  }
  const std::int64_t predictions = number("model.mtp_num_layers");
  if (predictions > 0 && model.ends.prediction_layers == 0) {
    notes.push_back(fmt::format(
        "the recipe adds {} of multi-token prediction to {}",
        predictions == 1 ? "1 layer" : fmt::format("{} layers", predictions), model.name));
    model.ends.prediction_layers = predictions;
  }
}

}  // namespace

Result<ImportedPlan> import_bridge_recipe(ResolvedRecipe recipe, const LaunchFile& file,
                                          const ImportInputs& inputs) {
  const FlatSetting* const hub = find_setting(recipe.settings, "model.hf_model_id");
  const std::string hub_name = hub == nullptr ? "" : hub->value;
  OpenQuestions open;
  TPSIM_TRY(std::optional<ModelSpec> model, hub_model(hub_name, inputs, open));
  if (!model) model = class_model(recipe, inputs);
  NemoRun run{file, stated_settings(recipe, model.has_value())};
  std::vector<std::string> notes = take_savings(run.settings);
  run.is_whole = true;
  run.command.size = size_of_recipe(recipe);
  if (run.command.size.gpus_per_node == 0) run.command.size = {};
  if (inputs.gpus == 0 && run.command.size.nodes == 0) open.ask(kHowManyGpus);
  TPSIM_TRY_STATUS(open.status());
  take_env_vars(run.settings, run.command);
  ImportInputs sized = inputs;
  if (sized.gpus == 0) sized.gpus = run.command.size.nodes * run.command.size.gpus_per_node;
  if (!model && is_on(run.settings, "model.is_hybrid_model")) {
    return bad_input(
        "tpsim cannot read a hybrid of Mamba and attention layers from its pattern yet", "",
        fmt::format("add {}", kModelAnswer));
  }
  if (!model) {
    TPSIM_TRY(ImportedPlan plan, import_megatron_yaml(run.settings, sized, &recipe));
    add_environment(run.command, plan);
    plan.notes.insert(plan.notes.end(), notes.begin(), notes.end());
    return plan;
  }
  std::erase_if(run.settings, [](const FlatSetting& one) {
    return one.key == "trainer.num_nodes" || one.key == "trainer.devices";
  });
  if (has_experts(*model)) add_hub_experts(run.settings);
  ImportedPlan result;
  result.stack = "nemo";
  result.model = *std::move(model);
  take_chosen_ends(run.settings, result.model, notes);
  result.notes = std::move(notes);
  return plan_of_run(std::move(run), sized, std::move(result));
}

}  // namespace tpsim
