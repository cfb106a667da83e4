// Converts FSDP's settings and device mesh, or DeepSpeed's JSON, to ZeRO stage, shard group and
// offload.
#include "frameworks/huggingface/trainer_sharding.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "frameworks/huggingface/trainer_keys.h"
#include "frameworks/launch/config_files.h"

namespace tpsim {
namespace {

// Sets the ZeRO stage from FSDP's sharding strategy, which is a name or a number
// (torch/distributed/fsdp/api.py).
void read_strategy(FlatReader& in, const std::string& word, ImportedPlan& result) {
  const std::string name = in_capitals(word);
  if (name == "AUTO_WRAP" || name.empty()) return;
  if (name == "OFFLOAD") {
    result.plan.offload = Offload::kParameters;
    return;
  }
  if (name == "FULL_SHARD" || name == "1") {
    result.plan.zero = 3;
  } else if (name == "SHARD_GRAD_OP" || name == "2") {
    result.plan.zero = 2;
  } else if (name == "NO_SHARD" || name == "3") {
    result.plan.zero = 0;
  } else if (name == "HYBRID_SHARD" || name == "4" || name == "HYBRID_SHARD_ZERO2") {
    result.plan.zero = name == "HYBRID_SHARD_ZERO2" ? 2 : 3;
    result.parts[StackPart::kShardGroup] = kShardOverNode;
  } else {
    in.fail(fmt::format("tpsim cannot read FSDP's sharding strategy '{}'", word),
            "use full_shard, shard_grad_op, no_shard or hybrid_shard");
  }
}

}  // namespace

void read_fsdp(FlatReader& in, bool asked, ImportedPlan& result) {
  const std::vector<std::string> words = in.list("fsdp");
  asked |= !words.empty() || in.has("fsdp_version") || in.has("fsdp_config.fsdp_version");
  if (!asked) return;
  result.stack = "pytorch-fsdp";
  result.plan.zero = 3;
  for (const std::string& word : words) read_strategy(in, word, result);
  const auto strategy = any_text(in, {"fsdp_config.fsdp_sharding_strategy",
                                      "fsdp_config.sharding_strategy", "fsdp_sharding_strategy"});
  if (strategy) read_strategy(in, *strategy, result);
  const auto reshards =
      any_text(in, {"fsdp_config.fsdp_reshard_after_forward", "fsdp_config.reshard_after_forward"});
  if (reshards && (*reshards == "true" || *reshards == "false")) {
    result.plan.zero = *reshards == "true" ? 3 : 2;
  } else if (reshards) {
    read_strategy(in, *reshards, result);
  }
  if (any_flag(in, {"fsdp_config.fsdp_offload_params", "fsdp_config.offload_params",
                    "fsdp_config.cpu_offload", "fsdp_offload_params"})) {
    result.plan.offload = Offload::kParameters;
  }
  if (any_flag(in, {"fsdp_config.fsdp_activation_checkpointing",
                    "fsdp_config.activation_checkpointing"})) {
    result.plan.recompute = Recompute::kFull;
  }
}

ShardMesh mesh_of(FlatReader& in) {
  const auto size = [&](const std::string& name) {
    const std::string long_name = "parallelism_config.parallelism_config_" + name;
    return std::max<std::int64_t>(1, any_integer(in, {long_name.c_str(), name.c_str()}));
  };
  return {size("dp_replicate_size"), size("dp_shard_size")};
}

void read_mesh(FlatReader& in, const ShardMesh& mesh, const ModelSplit& split, std::int64_t gpus,
               ImportedPlan& result) {
  const auto [copies, shards] = mesh;
  if (copies <= 1) return;
  if (shards <= 1) {
    result.plan.zero = 0;
    return;
  }
  constexpr std::int64_t kUsualNode = 8;
  const std::int64_t ranks = split.tp * split.cp;
  if (copies * shards * ranks != gpus) {
    const std::string wanted = ranks == 1
                                   ? fmt::format("GPUs, {}", gpus)
                                   : fmt::format("data-parallel ranks: {} GPUs / (tp {} x cp {})",
                                                 gpus, split.tp, split.cp);
    return in.fail(fmt::format("dp_replicate_size {} x dp_shard_size {} is not the number of {}",
                               copies, shards, wanted),
                   fmt::format("state the number of GPUs: --gpus {}", copies * shards * ranks));
  }
  result.parts[StackPart::kShardGroup] = shards == kUsualNode ? kShardOverNode : shards;
}

namespace {

constexpr std::initializer_list<const char*> kTensorKeys = {
    "parallelism_config.parallelism_config_tp_size", "parallelism_config.tp_size",
    "tensor_parallel_size", "tp_size"};
constexpr std::initializer_list<const char*> kContextKeys = {
    "parallelism_config.parallelism_config_cp_size", "parallelism_config.cp_size",
    "context_parallel_size", "sequence_parallel_degree", "seq_parallel_size"};

// Returns the key that the file has, or else the first one.
std::string stated_key(const FlatReader& in, std::initializer_list<const char*> keys) {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const char* key) { return in.has(key); });
  return found != keys.end() ? *found : *keys.begin();
}

}  // namespace

ModelSplit split_of(FlatReader& in) {
  const auto degree = [&](std::initializer_list<const char*> keys) {
    return std::max<std::int64_t>(1, any_integer(in, keys));
  };
  return {degree(kTensorKeys), degree(kContextKeys)};
}

ModelSplit refused_split(FlatReader& in, LeftSettings& left) {
  const std::string tensor = stated_key(in, kTensorKeys), context = stated_key(in, kContextKeys);
  const ModelSplit split = split_of(in);
  for (const auto& [name, degree] : {std::pair{tensor, split.tp}, std::pair{context, split.cp}}) {
    if (degree == 1) continue;
    left.refuse(name, fmt::format("{}: {}", name, degree),
                "tpsim models a Trainer's tensor and context parallelism with FSDP only");
  }
  return {};
}

Status split_model(const ModelSplit& split, std::int64_t batch, ImportedPlan& imported) {
  Plan& plan = imported.plan;
  const auto [tp, cp, ep] = split;
  const std::int64_t gpus = plan.degrees.dp;
  if (tp * cp * ep == 1) return Ok{};
  if (gpus % (tp * cp) != 0) {
    return bad_input(
        fmt::format("{} GPUs are not divisible by tensor {} x context {}", gpus, tp, cp), "",
        fmt::format("state the number of GPUs: --gpus N, a multiple of {}", tp * cp));
  }
  const std::int64_t steps = plan.global_batch / std::max<std::int64_t>(1, plan.micro_batch * gpus);
  plan.degrees.tp = tp;
  plan.degrees.cp = cp;
  plan.degrees.ep = ep;
  plan.degrees.dp = gpus / (tp * cp);
  const std::int64_t pass = plan.micro_batch * plan.degrees.dp;
  plan.global_batch = pass * std::max<std::int64_t>(1, batch > 0 ? batch / pass : steps);
  imported.stack = "torchtitan";
  // scaled_dot_product_attention, a whole loss and PyTorch's ring, as in torchtitan until May 2026.
  for (const auto& [part, word] :
       {std::pair{StackPart::kAttentionKernel, "flash2"}, std::pair{StackPart::kLossHead, "eager"},
        std::pair{StackPart::kCpCommType, "torch_ring"}}) {
    imported.parts.try_emplace(part, parse_value(row_of(part), word).value());
  }
  if (cp > 1) {
    imported.notes.emplace_back(
        "context parallelism is predicted as in torchtitan, with its exchange of keys and values");
  }
  return validate(plan, imported.model);
}

Status read_deepspeed(FlatReader& in, const LaunchFile& file, const ImportInputs& inputs,
                      DeepSpeedConfig& config, ImportedPlan& result) {
  const auto named = any_text(in, {"deepspeed", "deepspeed_config.deepspeed_config_file"});
  const bool own = in.has("zero_optimization.stage") || in.has("train_micro_batch_size_per_gpu");
  const std::int64_t stage = in.integer("deepspeed_config.zero_stage", -1);
  const std::string device = in.text("deepspeed_config.offload_optimizer_device").value_or("none");
  if (named || own) {
    LaunchFile json{named.value_or(file.name), file.text, named ? "" : path_of(file)};
    if (named) {
      const auto text = text_of_named(*named, inputs);
      if (!text) {
        return not_there(*named, path_of(file),
                         ", or import both files: tpsim import " + path_of(file) + " FILE");
      }
      json.text = *text;
    }
    TPSIM_TRY(config, read_deepspeed_config(json, *inputs.left));
    note_curriculum(json, result.notes);
    result.outside.insert(result.outside.end(), config.outside.begin(), config.outside.end());
    if (own) in.left().clear();
  } else if (stage >= 0) {
    config.stage = stage;
    const std::string weights = in.text("deepspeed_config.offload_param_device").value_or("none");
    config.offload = offload_of(stage, device == "cpu", weights == "cpu");
    for (const auto& [key, place] : {std::pair{"offload_optimizer_device", device},
                                     std::pair{"offload_param_device", weights}}) {
      if (place == "cpu" || place == "none") continue;
      in.fail(fmt::format("{} is {}; it must be cpu or none", key, place));
    }
    if (weights == "cpu" && config.offload != Offload::kParameters) {
      in.fail("offload_param_device is cpu without zero_stage 3 and offload_optimizer_device cpu",
              "tpsim models weights in host memory with both only");
    }
  } else {
    return Ok{};
  }
  result.stack = "deepspeed-zero3";
  result.plan.zero = static_cast<int>(config.stage);
  result.plan.offload = config.offload;
  result.plan.degrees.tp = config.tensor_ranks;
  if (config.overlaps)
    result.parts[StackPart::kOverlapGradientReduction] = *config.overlaps ? 1 : 0;
  if (config.stage == 3 && config.lacks_prefetch) {
    result.parts[StackPart::kOverlapParameterGather] = 0;
  }
  return Ok{};
}

}  // namespace tpsim
