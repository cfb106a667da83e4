// Writes and reads the launch files of Megatron-DeepSpeed: arguments of pretrain_gpt.py and
// DeepSpeed's JSON. Writing is for BigScience's fork only.
//
// Sources: megatron/arguments.py, deepspeed/runtime/config.py and deepspeed/runtime/pipe/engine.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/text.h"
#include "core/json/json_document.h"
#include "frameworks/deepspeed/deepspeed_config.h"
#include "frameworks/launch/launcher.h"
#include "frameworks/launch/megatron_options.h"

namespace tpsim {
namespace {

constexpr LaunchStack kStack = LaunchStack::kMegatronDeepSpeed;
constexpr const char* kByBlocks = "type:transformer";
constexpr const char* kByBlocksAndEmbedding = "type:transformer|embedding";

// Returns the number of layers per stage for a value of --pp-partition-method. Empty if the method
// is unknown or the stages cannot be equal.
std::vector<std::int64_t> cut_of(std::string_view method, std::int64_t layers,
                                 std::int64_t stages) {
  const bool counts = method == kByBlocksAndEmbedding;
  if (!counts && method != kByBlocks) return {};
  return equal_stage_layers(layers, stages, counts);
}

const char* partition_method(const PlanFile& file) {
  const bool by_blocks =
      cut_of(kByBlocks, file.model.layers, file.plan.degrees.pp) == file.plan.stage_layers;
  return by_blocks ? kByBlocks : kByBlocksAndEmbedding;
}

// Returns the ZeRO stage to write in the JSON and as --zero-stage. With bf16 and ZeRO 1 the stage
// must be 0, because the bf16 optimizer implements ZeRO 1 itself.
int stage_of(const Plan& plan) {
  return plan.dtype == DType::kBFloat16 && plan.zero == 1 ? 0 : plan.zero;
}

void add_model(const ModelSpec& model, std::int64_t tp, LaunchOptions& out) {
  out.add("--num-layers", model.layers);
  out.add("--hidden-size", model.hidden);
  out.add("--ffn-hidden-size", model.ffn_hidden);
  out.add("--num-attention-heads", model.attention.heads);
  out.add("--kv-channels", model.attention.head_dim);
  out.add("--seq-length", model.seq);
  const PositionKind position = model.attention.position;
  // arguments.py rejects this option with rotary positions.
  if (position != PositionKind::kRotary) {
    out.add("--max-position-embeddings", position_rows(model));
  }
  out.add("--position-embedding-type", position == PositionKind::kAlibi    ? "alibi"
                                       : position == PositionKind::kRotary ? "rotary"
                                                                           : "absolute");
  if (model.mlp == MlpKind::kSwiglu) {
    out.add("--glu-activation", "swiglu");
  }
  if (model.embedding_norm) out.add("--embed-layernorm");
  if (model.residual_from_after_norm) out.add("--apply-residual-connection-post-layernorm");
  out.add("--layernorm-epsilon", fmt::format("{}", model.norm_epsilon));
  out.add("--attention-dropout", fmt::format("{}", model.attention_dropout));
  out.add("--hidden-dropout", fmt::format("{}", model.hidden_dropout));
  out.add("--pad-vocab-size-to", padded_vocab(model, tp));
}

constexpr std::array kModelSwitches = {"--embed-layernorm",
                                       "--apply-residual-connection-post-layernorm"};
constexpr const char* kNoGeluFusion = "--no-bias-gelu-fusion";

// Switches that disable fused kernels, and the software part that each sets.
struct PartSwitch {
  const char* option;
  StackPart part;
  std::int64_t value;
  bool is_of_microsoft = false;  // BigScience's fork, for which files are written, lacks the switch
};
constexpr PartSwitch kPartSwitches[] = {
    {"--no-bias-dropout-fusion", StackPart::kResidualKernel,
     static_cast<std::int64_t>(KernelFusion::kTorch)},
    {kNoGeluFusion, StackPart::kActivationKernel,
     static_cast<std::int64_t>(ActivationKernel::kTorch)},
    {"--no-masked-softmax-fusion", StackPart::kAttentionKernel,
     static_cast<std::int64_t>(AttentionKernel::kTorch)},
    {"--no-async-tensor-model-parallel-allreduce", StackPart::kTpOverlap,
     static_cast<std::int64_t>(TpOverlap::kNone), true},
};

// Returns the option's default value in arguments.py; empty if the option is required.
std::string default_of(std::string_view option, const ModelSpec& model) {
  if (option == "--ffn-hidden-size") return std::to_string(4 * model.hidden);
  if (option == "--kv-channels") return std::to_string(model.hidden / model.attention.heads);
  if (option == "--position-embedding-type") return "absolute";
  if (option == "--layernorm-epsilon") return "1e-5";
  if (option == "--attention-dropout" || option == "--hidden-dropout") return "0.1";
  return "";
}

void read_model(LaunchOptionReader& in, const ModelSpec& model, std::int64_t tp,
                std::vector<std::string>* differences) {
  LaunchOptions wanted;
  add_model(model, tp, wanted);
  for (const LaunchOption& option : wanted.all()) {
    // May be absent: the tokenizer can define the padding, and epsilon does not affect the time.
    const bool may_lack =
        option.key == "--pad-vocab-size-to" || option.key == "--layernorm-epsilon";
    if (option.value.empty() || (may_lack && !in.has(option.key))) continue;
    if (differences != nullptr) {
      in.note_other(option, *differences);
    } else {
      in.expect(option, default_of(option.key, model));
    }
  }
  if (differences != nullptr) return in.note_other(kModelSwitches, wanted, *differences);
  in.refuse_other(kModelSwitches, wanted);
}

void read_precision(LaunchOptionReader& in, Plan& plan) {
  const bool bf16 = in.flag("--bf16");
  const bool fp16 = in.flag("--fp16");
  if (bf16 && fp16) in.fail("--bf16 and --fp16 exclude each other");
  plan.dtype = bf16 ? DType::kBFloat16 : fp16 ? DType::kFloat16 : DType::kFloat32;
  plan.gradient_dtype = fp16 ? DType::kFloat16 : DType::kFloat32;
}

void read_stages(LaunchOptionReader& in, const ModelSpec& model, const ShellOptions& shell,
                 Plan& plan) {
  ParallelDegrees& degrees = plan.degrees;
  degrees.tp = in.degree("--tensor-model-parallel-size");
  degrees.pp = in.degree("--pipeline-model-parallel-size");
  const std::int64_t world = shell.size.nodes * shell.size.gpus_per_node;
  if (world % (degrees.tp * degrees.pp) != 0) {
    in.fail(fmt::format(
        "{} GPUs are not a multiple of tensor-parallel size x pipeline-parallel size", world));
  }
  degrees.dp = world / (degrees.tp * degrees.pp);
  const std::string method = in.text("--pp-partition-method").value_or(kByBlocks);
  plan.stage_layers = cut_of(method, model.layers, degrees.pp);
  if (plan.stage_layers.empty())
    in.fail(fmt::format("--pp-partition-method '{}' does not divide the layers into equal stages",
                        method));
}

}  // namespace

Result<LaunchOptions> deepspeed_settings(const PlanFile& file) {
  const Plan& plan = file.plan;
  TPSIM_TRY_STATUS(check_launch_rules(kStack, file));
  const std::string method = partition_method(file);
  LaunchOptions out;
  add_model(file.model, plan.degrees.tp, out);
  out.add("--tensor-model-parallel-size", plan.degrees.tp);
  out.add("--pipeline-model-parallel-size", plan.degrees.pp);
  out.add("--pp-partition-method", method);
  out.add("--micro-batch-size", plan.micro_batch);
  out.add("--global-batch-size", plan.global_batch);
  if (plan.dtype != DType::kFloat32) out.add(fmt::format("--{}", name_of(plan.dtype)));
  if (plan.recompute == Recompute::kFull) {
    out.add("--checkpoint-activations");
    out.add("--deepspeed-activation-checkpointing");
  }
  out.add("--deepspeed");
  out.add("--deepspeed_config", "ds_config.json");
  out.add("--zero-stage", stage_of(plan));
  if (offloads_optimizer(plan)) out.add("--cpu-optimizer");
  for (const PartSwitch& one : kPartSwitches) {
    const auto asked = file.parts.find(one.part);
    const bool is_required = one.option == kNoGeluFusion && is_gated(file.model.mlp);
    const bool is_asked = asked != file.parts.end() && asked->second == one.value;
    if ((is_asked && !one.is_of_microsoft) || is_required) out.add(one.option);
  }
  return out;
}

PartValues take_deepspeed_parts(std::vector<LaunchOption>& options) {
  PartValues parts;
  for (const PartSwitch& one : kPartSwitches) {
    if (drop_settings(options, one.option)) parts[one.part] = one.value;
  }
  return parts;
}

std::string deepspeed_json(const PlanFile& file) {
  const Plan& plan = file.plan;
  JsonValue zero = json_object({{"stage", stage_of(plan)}});
  if (offloads_optimizer(plan)) {
    zero.set("offload_optimizer", json_object({{"device", "cpu"}, {"pin_memory", true}}));
  }
  JsonValue json = json_object({
      {"train_batch_size", plan.global_batch},
      {"train_micro_batch_size_per_gpu", plan.micro_batch},
      {"gradient_accumulation_steps", micro_batches(plan)},
      {"gradient_clipping", 1.0},
      {"zero_optimization", std::move(zero)},
  });
  if (plan.dtype != DType::kFloat32) {
    json.set(std::string(name_of(plan.dtype)), json_object({{"enabled", true}}));
  }
  json.set("steps_per_print", 2000);
  json.set("wall_clock_breakdown", false);
  return to_text(json);
}

Result<Plan> plan_of_deepspeed(const ShellOptions& shell, const LaunchFile& config_file,
                               const ModelSpec& model, LeftSettings& left) {
  TPSIM_TRY(const DeepSpeedConfig config, read_deepspeed_config(config_file, left));
  TPSIM_TRY_STATUS(check_batches(config, config_file));
  LaunchOptionReader in(shell.options);
  Plan plan;
  read_stages(in, model, shell, plan);
  read_model(in, model, plan.degrees.tp, shell.differences);
  plan.micro_batch = in.integer("--micro-batch-size", 0);
  plan.global_batch = in.integer("--global-batch-size", 0);
  read_precision(in, plan);
  const std::string granularity = in.text("--recompute-granularity").value_or("none");
  const bool recompute = granularity == "full";
  const bool uniform = in.text("--recompute-method").value_or("uniform") == "uniform";
  if (in.integer("--recompute-num-layers", 1) != 1 || !uniform || granularity == "selective") {
    in.fail("tpsim reads --checkpoint-activations with --checkpoint-num-layers 1 only");
  }
  if (in.flag("--deepspeed-activation-checkpointing") != recompute) {
    in.fail("--checkpoint-activations needs --deepspeed-activation-checkpointing and vice versa");
  }
  plan.recompute = recompute ? Recompute::kFull : Recompute::kNone;
  if (!in.flag("--deepspeed")) in.fail("--deepspeed is missing");
  read_engine(in, config, true, plan);
  TPSIM_TRY_STATUS(in.finish(left));
  TPSIM_TRY_STATUS(validate(plan, model));
  return plan;
}

bool speaks_megatron_core(const std::vector<LaunchOption>& options) {
  constexpr std::string_view kCore =
      "--no-pipeline-parallel --normalization --swiglu --disable-bias-linear --use-flash-attn "
      "--num-query-groups --untie-embeddings-and-output-weights";
  return std::any_of(options.begin(), options.end(), [&](const LaunchOption& one) {
    return matches_any(one.key, kCore) ||
           (one.key == "--position-embedding-type" && one.value == "rope");
  });
}

// Reads the plan for Microsoft's fork, which runs Megatron-LM's layers in DeepSpeed's engine. The
// engine uses a pipeline unless --no-pipeline-parallel is set.
Result<Plan> plan_of_forked_deepspeed(const ShellOptions& shell, const LaunchFile& config_file,
                                      const ModelSpec& model, LeftSettings& left) {
  TPSIM_TRY(const DeepSpeedConfig config, read_deepspeed_config(config_file, left));
  TPSIM_TRY_STATUS(check_batches(config, config_file));
  constexpr std::string_view kEngine =
      "--deepspeed --deepspeed-activation-checkpointing --deepspeed-config --zero-stage "
      "--no-pipeline-parallel --cpu-optimizer";
  LaunchOptionReader engine([&] {
    std::vector<LaunchOption> own;
    for (const LaunchOption& option : shell.options) {
      if (matches_any(option.key, kEngine)) own.push_back(option);
    }
    return own;
  }());
  ShellOptions layers = shell;
  std::erase_if(layers.options, [&](const LaunchOption& one) { return engine.has(one.key); });
  const bool fused = has_key(layers.options, "--use-flash-attn");
  if (!fused) layers.options.push_back({"--attention-backend", "unfused"});
  for (LaunchOption& option : layers.options) {
    if (option.key == "--normalization" && option.value == "rmsnorm") option.value = "RMSNorm";
    if (option.key == "--normalization" && option.value == "layernorm") option.value = "LayerNorm";
  }
  TPSIM_TRY(Plan plan, plan_of_megatron(LaunchStack::kMegatronLm, layers, model, left));
  engine.flag("--deepspeed");
  engine.flag("--deepspeed-activation-checkpointing");
  const bool pipelines = !engine.flag("--no-pipeline-parallel");
  plan.gradient_dtype = plan.dtype == DType::kFloat16 ? DType::kFloat16 : DType::kFloat32;
  read_engine(engine, config, pipelines, plan);
  TPSIM_TRY_STATUS(engine.finish(left));
  TPSIM_TRY_STATUS(validate(plan, model));
  return plan;
}

}  // namespace tpsim
