// The YAML overrides of Megatron-Bridge, which configures Megatron's core: the same settings under
// other names. Rules: its training/config.py and its guide to Megatron FSDP.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/text.h"
#include "stacks/launch_settings.h"
#include "stacks/settings_text.h"

namespace tpsim {
namespace {

// Options of Megatron-LM and where Megatron-Bridge keeps them. A recipe already knows what has no
// place: the kind of model and what follows from other settings.
struct NemoKey {
  const char* option;
  const char* section;
  const char* key;
  const char* when_set = "true";  // what a switch becomes
};
constexpr std::array kNemoKeys = {
    NemoKey{"--num-layers", "model", "num_layers"},
    NemoKey{"--hidden-size", "model", "hidden_size"},
    NemoKey{"--ffn-hidden-size", "model", "ffn_hidden_size"},
    NemoKey{"--num-attention-heads", "model", "num_attention_heads"},
    NemoKey{"--num-query-groups", "model", "num_query_groups"},
    NemoKey{"--kv-channels", "model", "kv_channels"},
    NemoKey{"--seq-length", "model", "seq_length"},
    NemoKey{"--attention-dropout", "model", "attention_dropout"},
    NemoKey{"--hidden-dropout", "model", "hidden_dropout"},
    NemoKey{"--vocab-size", "model", "vocab_size"},
    NemoKey{"--make-vocab-size-divisible-by", "model", "make_vocab_size_divisible_by"},
    NemoKey{"--tensor-model-parallel-size", "model", "tensor_model_parallel_size"},
    NemoKey{"--pipeline-model-parallel-size", "model", "pipeline_model_parallel_size"},
    NemoKey{"--context-parallel-size", "model", "context_parallel_size"},
    NemoKey{"--cp-comm-type", "model", "cp_comm_type"},
    NemoKey{"--num-experts", "model", "num_moe_experts"},
    NemoKey{"--moe-ffn-hidden-size", "model", "moe_ffn_hidden_size"},
    NemoKey{"--moe-router-topk", "model", "moe_router_topk"},
    NemoKey{"--moe-router-pre-softmax", "model", "moe_router_pre_softmax"},
    NemoKey{"--moe-router-load-balancing-type", "model", "moe_router_load_balancing_type"},
    NemoKey{"--moe-token-dispatcher-type", "model", "moe_token_dispatcher_type"},
    NemoKey{"--moe-flex-dispatcher-backend", "model", "moe_flex_dispatcher_backend"},
    NemoKey{"--moe-enable-deepep", "model", "moe_enable_deepep"},
    NemoKey{"--moe-permute-fusion", "model", "moe_permute_fusion"},
    NemoKey{"--moe-router-fusion", "model", "moe_router_fusion"},
    NemoKey{"--moe-router-force-load-balancing", "model", "moe_router_force_load_balancing"},
    NemoKey{"--overlap-moe-expert-parallel-comm", "comm_overlap",
            "overlap_moe_expert_parallel_comm"},
    NemoKey{"--delay-wgrad-compute", "comm_overlap", "delay_wgrad_compute"},
    NemoKey{"--moe-expert-capacity-factor", "model", "moe_expert_capacity_factor"},
    NemoKey{"--moe-pad-expert-input-to-capacity", "model", "moe_pad_expert_input_to_capacity"},
    NemoKey{"--moe-token-drop-policy", "model", "moe_token_drop_policy"},
    NemoKey{"--expert-model-parallel-size", "model", "expert_model_parallel_size"},
    NemoKey{"--expert-tensor-parallel-size", "model", "expert_tensor_parallel_size"},
    NemoKey{"--num-virtual-stages-per-pipeline-rank", "model",
            "virtual_pipeline_model_parallel_size"},
    NemoKey{"--pipeline-model-parallel-layout", "model", "pipeline_model_parallel_layout"},
    NemoKey{"--sequence-parallel", "model", "sequence_parallel"},
    NemoKey{"--bf16", "model", "bf16"},
    NemoKey{"--fp16", "model", "fp16"},
    NemoKey{"--fp8-format", "model", "fp8"},
    NemoKey{"--fp8-recipe", "model", "fp8_recipe"},
    NemoKey{"--fp8-param-gather", "model", "fp8_param"},
    NemoKey{"--fp8-param-gather", "ddp", "fp8_param_gather"},  // its mixed precision sets both
    NemoKey{"--fp4-format", "model", "fp4"},
    NemoKey{"--fp4-recipe", "model", "fp4_recipe"},
    NemoKey{"--recompute-granularity", "model", "recompute_granularity"},
    NemoKey{"--recompute-method", "model", "recompute_method"},
    NemoKey{"--recompute-num-layers", "model", "recompute_num_layers"},
    NemoKey{"--attention-backend", "model", "attention_backend"},
    NemoKey{"--micro-batch-size", "train", "micro_batch_size"},
    NemoKey{"--global-batch-size", "train", "global_batch_size"},
    NemoKey{"--use-distributed-optimizer", "ddp", "use_distributed_optimizer"},
    NemoKey{"--optimizer-cpu-offload", "optimizer", "optimizer_cpu_offload"},
    NemoKey{"--optimizer-offload-fraction", "optimizer", "optimizer_offload_fraction"},
    NemoKey{"--use-precision-aware-optimizer", "optimizer", "use_precision_aware_optimizer"},
    NemoKey{"--use-megatron-fsdp", "ddp", "use_megatron_fsdp"},
    NemoKey{"--data-parallel-sharding-strategy", "ddp", "data_parallel_sharding_strategy"},
    NemoKey{"--accumulate-allreduce-grads-in-fp32", "ddp", "grad_reduce_in_fp32"},
    NemoKey{"--grad-reduce-in-bf16", "ddp", "grad_reduce_in_fp32", "false"},
    NemoKey{"--use-megatron-fsdp", "dist", "use_megatron_fsdp"},  // its guide wants both
    NemoKey{"--overlap-grad-reduce", "ddp", "overlap_grad_reduce"},
    NemoKey{"--overlap-param-gather", "ddp", "overlap_param_gather"},
    NemoKey{"--ckpt-format", "checkpoint", "ckpt_format"},
    NemoKey{"--use-tp-pp-dp-mapping", "dist", "use_tp_pp_dp_mapping"},
};

std::string joined(std::string_view section, std::string_view key) {
  return fmt::format("{}.{}", section, key);
}

Error unknown(std::string_view section, std::string_view key, std::string_view value) {
  std::vector<std::string> names;
  for (const NemoKey& row : kNemoKeys) names.push_back(joined(row.section, row.key));
  const std::string name = joined(section, key);
  const std::string near = nearest(name, std::span<const std::string>(names));
  return bad_input(fmt::format("unknown setting {}: {}", name, value), "",
                   near.empty() ? "" : fmt::format("did you mean {}?", near));
}

// Nothing for a switch that is off, which it is too where it is left out. What no plan is made of
// keeps its name.
Result<std::optional<LaunchOption>> option_of(std::string_view section, std::string_view key,
                                              std::string_view value) {
  const bool is_switch = value == "true" || value == "false";
  bool is_known = false;
  for (const NemoKey& row : kNemoKeys) {
    if (section != row.section || key != row.key) continue;
    is_known = true;
    if (is_switch && value != row.when_set) continue;
    return std::optional(LaunchOption{row.option, is_switch ? "" : std::string(value)});
  }
  if (is_known) return std::optional<LaunchOption>();
  LaunchOption outside{joined(section, key), std::string(value)};
  std::vector<LaunchOption> alone = {outside};
  if (const auto names = take_outside(LaunchStack::kNemo, alone); !names.ok()) return names.error();
  if (alone.empty()) return std::optional(std::move(outside));
  return unknown(section, key, value);
}

// FSDP and weights of 8 bits are switched on in two sections.
void add_once(std::optional<LaunchOption> option, std::vector<LaunchOption>& options) {
  if (!option) return;
  const bool in_two = option->name == "--use-megatron-fsdp" || option->name == "--fp8-param-gather";
  if (!in_two || !has_option(options, option->name)) options.push_back(*std::move(option));
}

}  // namespace

bool nemo_has(std::string_view option) {
  return std::any_of(kNemoKeys.begin(), kNemoKeys.end(),
                     [&](const NemoKey& row) { return option == row.option; });
}

std::string nemo_yaml(const LaunchOptions& megatron) {
  std::string text;
  for (const char* section :
       {"model", "train", "optimizer", "ddp", "comm_overlap", "checkpoint", "dist"}) {
    std::string lines;
    for (const LaunchOption& option : megatron.all()) {
      for (const NemoKey& row : kNemoKeys) {
        if (option.name != row.option || std::string_view(section) != row.section) continue;
        const std::string value = option.value.empty() ? row.when_set : option.value;
        const bool plain = value.find_first_of("|*") == std::string::npos;
        lines += fmt::format(fmt::runtime(plain ? "  {}: {}\n" : "  {}: \"{}\"\n"), row.key, value);
      }
    }
    if (!lines.empty()) text += fmt::format("{}:\n{}", section, lines);
  }
  return text;
}

namespace {

// Recipes of precision by their names in Megatron-Bridge.
Status add_precision(const std::string& name, std::vector<LaunchOption>& options) {
  if (name == "bf16_mixed" || name == "fp16_mixed") {
    options.push_back({"--" + name.substr(0, 4), ""});
    return Ok{};
  }
  return bad_input(fmt::format("mixed_precision is {}", name), "",
                   "bf16_mixed and fp16_mixed are read; of 8 bits say model.bf16, model.fp8 and "
                   "model.fp8_recipe");
}

}  // namespace

std::optional<LaunchOption> nemo_option(std::string_view name, std::string_view value) {
  for (const NemoKey& row : kNemoKeys) {
    if (name != joined(row.section, row.key)) continue;
    if (value != "true" && value != "false") return LaunchOption{row.option, std::string(value)};
    if (value == row.when_set) return LaunchOption{row.option, "True"};
  }
  return std::nullopt;
}

bool has_nemo_key(std::string_view name) {
  return std::any_of(kNemoKeys.begin(), kNemoKeys.end(),
                     [&](const NemoKey& row) { return name == joined(row.section, row.key); });
}

Result<std::vector<LaunchOption>> nemo_options(const std::vector<FlatSetting>& settings) {
  std::vector<LaunchOption> options;
  for (const FlatSetting& setting : settings) {
    const std::size_t dot = setting.key.find('.');
    if (setting.value.empty()) continue;
    const std::string_view key = setting.key;
    if (key == "mixed_precision") {
      TPSIM_TRY_STATUS(add_precision(setting.value, options));
      continue;
    }
    if (dot == std::string::npos) {
      if (setting.line == 0) continue;  // a variable of a script beside it
      return unknown("", setting.key, setting.value);
    }
    const bool is_off = setting.value == "false" && !has_nemo_key(key);
    if (is_off) continue;
    TPSIM_TRY(auto option, option_of(key.substr(0, dot), key.substr(dot + 1), setting.value));
    add_once(std::move(option), options);
  }
  return options;
}

}  // namespace tpsim
