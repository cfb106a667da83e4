// Imports configurations of Hugging Face's Trainer: its own arguments, accelerate's YAML, axolotl's
// YAML and DeepSpeed's JSON. Each file may be given alone, or refer to another.
//
// Sources: transformers/training_args.py, accelerate/utils/dataclasses.py, axolotl/utils/schemas,
// deepspeed/runtime/config.py.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/text.h"
#include "formats/settings_text.h"
#include "frameworks/huggingface/adapter_settings.h"
#include "frameworks/huggingface/frozen_weights.h"
#include "frameworks/huggingface/trainer_keys.h"
#include "frameworks/huggingface/trainer_sharding.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_command.h"

namespace tpsim {
namespace {

// Settings of adapters, which have no effect if all weights are trained.
constexpr std::string_view kAdapterKeys = "lora_* peft_* loraplus_* qlora_* dora_*";

void leave_out_unused_adapter(FlatReader& in, std::vector<std::string>& outside) {
  if (kind_of_adapter(in) != "") return;
  std::erase_if(in.left(), [&](const FlatSetting& one) {
    if (!matches_any(one.key, kAdapterKeys)) return false;
    add_outside(one.key, outside);
    return true;
  });
}

// Reads the dtype in which weights are loaded. With 16-bit weights and plain data parallelism,
// gradients and Adam's moments also have 16 bits. Sharded training keeps fp32 master weights.
void read_loaded_bits(FlatReader& in, ImportedPlan& result) {
  const std::string word = any_text(in, {"torch_dtype", "dtype"}).value_or("auto");
  if (result.parts.contains(StackPart::kFinetune)) return;  // adapters have fp32 weights
  const bool is_narrow = in.flag("pure_bf16", false) || matches_any(word, "bfloat16 float16");
  const bool is_kept = result.plan.zero > 0 || result.stack == "deepspeed-zero3" ||
                       result.plan.dtype == DType::kFloat32;
  if (!is_narrow || is_kept) return;
  result.plan.gradient_dtype = result.plan.dtype;
  if (result.plan.dtype == DType::kBFloat16) {
    result.parts[StackPart::kOptimizerDtype] = static_cast<std::int64_t>(DType::kBFloat16);
  }
  result.parts[StackPart::kMasterWeights] = static_cast<std::int64_t>(MasterWeights::kNone);
  result.notes.emplace_back(
      "neither FSDP nor DeepSpeed is enabled: plain data parallelism is predicted; weights, "
      "gradients and Adam's moments have 16 bits, without fp32 master weights");
}

void read_numbers(FlatReader& in, const DeepSpeedConfig& config, Plan& plan) {
  const std::string mixed = in.text("mixed_precision").value_or("no");
  const bool bf16 = any_flag(in, {"bf16", "bfloat16"}) || mixed == "bf16" || config.bf16;
  const bool fp16 = in.flag("fp16", false) || mixed == "fp16" || config.fp16;
  if (mixed == "fp8")
    in.fail("mixed_precision fp8 is not modelled",
            "tpsim models the Trainer in bf16, fp16 or fp32 only");
  const bool leaves_open = config.precision_is_auto && !fp16;  // the Trainer's arguments decide
  plan.dtype = bf16 || leaves_open ? DType::kBFloat16 : fp16 ? DType::kFloat16 : DType::kFloat32;
  if (config.autocast) plan.dtype = *config.autocast;
  plan.gradient_dtype = plan.dtype == DType::kFloat16 ? DType::kFloat16 : DType::kFloat32;
  if (config.gradients) plan.gradient_dtype = *config.gradients;
}

void read_masters(const DeepSpeedConfig& config, PartValues& parts) {
  const auto masters = config.bf16_masters ? MasterWeights::kNone : MasterWeights::kAutocast;
  if (config.bf16_masters || config.autocast) {
    parts[StackPart::kMasterWeights] = static_cast<std::int64_t>(masters);
  }
  if (config.bf16_states) {
    parts[StackPart::kOptimizerDtype] = static_cast<std::int64_t>(DType::kBFloat16);
  }
}

void read_reduction(const DeepSpeedConfig& config, ImportedPlan& result) {
  if (!config.reduced || result.plan.zero < 2) return;
  const bool is_wide = *config.reduced != result.plan.dtype;
  result.parts[StackPart::kReduceDtype] =
      static_cast<std::int64_t>(is_wide ? ReduceDtype::kAsAddedUp : ReduceDtype::kAsComputed);
}

// Whether LLaMA-Factory's setting flash_attn selects flash attention.
bool says_flash(FlatReader& in) {
  const auto word = in.text("flash_attn");
  return word && !matches_any(*word, "false disabled");
}

// Returns the recompute mode. LLaMA-Factory, recognized by its keys, uses full recompute by
// default.
Recompute recompute_of_trainer(FlatReader& in) {
  const bool usual = in.has("finetuning_type") || in.has("stage");
  const bool off = in.flag("disable_gradient_checkpointing", false);
  const bool usually = in.flag("activation_checkpointing", usual && !off);
  return in.flag("gradient_checkpointing", usually) ? Recompute::kFull : Recompute::kNone;
}

void read_trainer_kernels(FlatReader& in, ImportedPlan& result) {
  const std::string kind = any_text(in, {"attn_implementation", "attention"}).value_or("sdpa");
  if (kind.starts_with("flex")) {
    in.fail(
        fmt::format("attention {} changes the plan and is not modelled", kind),
        "tpsim has no kernel times for FlexAttention; --set attn_implementation=flash_attention_2 "
        "predicts FlashAttention instead");
  }
  const bool flash = any_flag(in, {"flash_attention", "sdp_attention", "use_flash_attention_2",
                                   "use_flash_attention", "use_flash_attn"}) ||
                     says_flash(in);
  const bool plain = any_flag(in, {"eager_attention"}) || (kind == "eager" && !flash);
  result.plan.attention = plain ? AttentionKind::kUnfused : AttentionKind::kFlash;
  PartValues& parts = result.parts;
  for (const auto& [name, kernel] : {std::pair{"flash_attention_2", AttentionKernel::kFlash2},
                                     std::pair{"flash_attention_3", AttentionKernel::kFlash3}}) {
    if (kind == name) parts[StackPart::kAttentionKernel] = static_cast<std::int64_t>(kernel);
  }
  if (plain)
    parts[StackPart::kAttentionKernel] = static_cast<std::int64_t>(AttentionKernel::kTorch);
  if (any_flag(in, {"torch_compile"})) parts[StackPart::kCompile] = 1;
  const bool liger = any_flag(in, {"use_liger_kernel", "use_liger", "enable_liger_kernel"});
  if (in.flag("liger_fused_linear_cross_entropy", liger)) {
    parts[StackPart::kLossHead] = static_cast<std::int64_t>(LossHead::kChunked);
  }
  const bool layer_norm = in.flag("liger_layer_norm", false);
  if (in.flag("liger_rms_norm", liger) || layer_norm) parts[StackPart::kNormKernel] = 0;
  if (in.flag("liger_rope", liger)) parts[StackPart::kRotaryKernel] = 0;
  const bool glu = any_flag(in, {"liger_glu_activation", "liger_swiglu"});
  if (liger || glu) parts[StackPart::kActivationKernel] = 0;
}

struct TrainerSize {
  std::int64_t gpus = 0;
  std::int64_t micro = -1;
  std::int64_t accumulation = -1;
};

// Whether a sample is a pair of a chosen and a rejected answer, as in DPO. Inferred from the name
// of the loss, or from TRL's weight "beta".
bool trains_on_pairs(const FlatReader& in) {
  std::string kind;
  for (const char* key : {"rl", "stage"}) {
    kind = setting_value(in.all(), key, kind);
  }
  if (matches_any(kind, "dpo ipo orpo simpo cpo rm")) return true;
  const bool generates = in.has("max_completion_length") || in.has("num_generations");
  return kind.empty() && in.has("beta") && !generates && !in.has("desirable_weight");
}

TrainerSize trainer_size(FlatReader& in, const DeepSpeedConfig& config, const ImportInputs& inputs,
                         std::int64_t of_mesh, OpenQuestions& open) {
  TrainerSize size;
  size.micro = any_integer(in, {"per_device_train_batch_size", "micro_batch_size",
                                "train_bsz_per_gpu", "per_gpu_train_batch_size"});
  size.accumulation = any_integer(
      in, {"gradient_accumulation_steps", "deepspeed_config.gradient_accumulation_steps"});
  if (size.micro < 1) size.micro = config.micro_batch;
  if (size.accumulation < 1) size.accumulation = config.accumulation;
  if (size.micro < 1) size.micro = inputs.micro_batch;
  const std::int64_t processes = in.integer("num_processes", 0);
  in.integer("num_machines", 1);
  size.gpus = inputs.gpus > 0 ? inputs.gpus : processes;
  const bool told = config.train_batch > 0 && size.micro > 0;
  if (size.gpus < 1 && told && size.accumulation > 0) {
    size.gpus = config.train_batch / (size.micro * size.accumulation);
  }
  if (size.gpus < 1) size.gpus = of_mesh;
  if (size.micro < 1 && size.gpus > 0 && size.accumulation > 0 && config.train_batch > 0) {
    size.micro = config.train_batch / (size.gpus * size.accumulation);
  }
  if (size.gpus < 1) open.ask(kHowManyGpus);
  if (size.micro < 1)
    open.ask({"the file does not state the batch size per GPU", "--micro-batch N"});
  if (size.gpus < 1 || size.micro < 1) return size;
  const std::int64_t whole = inputs.global_batch > 0 ? inputs.global_batch : config.train_batch;
  if (size.accumulation < 1 && whole > 0) size.accumulation = whole / (size.micro * size.gpus);
  if (size.accumulation < 1) size.accumulation = 1;
  return size;
}

// Returns the model. If it is unknown, adds a question and returns a model without layers.
ModelSpec trainer_model(FlatReader& in, const ImportInputs& inputs, OpenQuestions& open) {
  const auto name =
      any_text(in, {"base_model", "model_name_or_path", "model_id", "model_name", "model_path"});
  if (inputs.model) return *inputs.model;
  if (name && inputs.load) {
    Result<ModelSpec> model = inputs.load(*name);
    if (model.ok()) return *std::move(model);
  }
  open.ask({name ? fmt::format("the catalogue has no model '{}'", *name)
                 : "which model? The file does not name one",
            kModelAnswer});
  return {};
}

// Sets the sequence to the maximum length, which is an upper bound. Trainers pad samples to the
// longest of a batch, or pack several samples, with attention only within each sample.
void read_lengths(FlatReader& in, bool keeps_seq, ImportedPlan& result) {
  const char* bound = nullptr;
  std::int64_t seq = -1;
  for (const char* key : kLengthKeys) {
    const std::int64_t length = in.integer(key, -1);
    if (bound != nullptr || length < 1) continue;
    bound = key;
    seq = length;
  }
  // The longest prompt and answer. The usual prompt: trl/trainer/grpo_config.py.
  for (const auto& [prompt, answer, usual] :
       {std::tuple{"max_prompt_length", "max_completion_length", 512},
        std::tuple{"source_max_len", "target_max_len", 0},
        std::tuple{"max_source_length", "max_target_length", 0}}) {
    const std::int64_t length = in.integer(answer, -1);
    const std::int64_t before = in.integer(prompt, usual);
    if (length < 1 || bound != nullptr) continue;
    bound = answer;
    seq = before + length;
    if (usual == 0) continue;
    result.notes.emplace_back(
        "only the trained model's update is predicted; generation, rewards and passes of other "
        "models are not");
  }
  const bool is_pretraining = in.text("stage").value_or("") == "pt";  // LLaMA-Factory then packs
  const bool packs = any_flag(in, {"packing", "sample_packing", "neat_packing"});
  const bool flattens = in.flag("padding_free", false);
  in.flag("pad_to_sequence_len", false);
  if (seq > 0 && !keeps_seq) result.model.seq = seq;
  const std::string every =
      fmt::format("every sequence is predicted as {} tokens{}", result.model.seq,
                  bound == nullptr ? "" : fmt::format(" ({})", bound));
  if (packs || is_pretraining) {
    result.notes.push_back(every +
                           ", fully packed, with attention over the whole sequence: attention "
                           "within each sample takes less time");
  } else if (bound != nullptr || flattens) {
    result.notes.push_back(
        every +
        ", the maximum length: with shorter samples a step takes less time and memory, so both "
        "are upper bounds");
  } else if (!keeps_seq) {
    result.notes.push_back(every +
                           ", the length of the model: the file does not state one (--seq)");
  }
}

}  // namespace

Result<ImportedPlan> import_trainer(FlatReader in, const LaunchFile& file,
                                    const ImportInputs& inputs) {
  in.left() = with_flat_values(std::move(in.left()));
  ImportedPlan result;
  result.stack = "pytorch-fsdp";
  Plan& plan = result.plan;
  plan.zero = 0;
  plan.recompute = Recompute::kNone;
  DeepSpeedConfig config;
  leave_out_unused_adapter(in, result.outside);
  read_adapters(in, result);
  const FrozenWeights frozen = read_frozen_weights(in);
  leave_out_overrides(in, result.outside);
  note_empty_cache(in, result);
  const std::span<const LeftOver> rows = fact_table("trainer").left;
  constexpr std::size_t kOfTraining = 5;  // rows that say what is trained
  refuse_first(in, file, rows.first(kOfTraining), *inputs.left);
  TPSIM_TRY_STATUS(read_deepspeed(in, file, inputs, config, result));
  const bool has_pairs = trains_on_pairs(in);
  const std::string kind = in.text("distributed_type").value_or("");
  if (kind == "MEGATRON_LM")
    in.fail("distributed_type MEGATRON_LM is not supported", "import Megatron's own script");
  read_fsdp(in, kind == "FSDP", result);
  read_numbers(in, config, plan);
  read_reduction(config, result);
  read_masters(config, result.parts);
  if (recompute_of_trainer(in) == Recompute::kFull) plan.recompute = Recompute::kFull;
  read_trainer_kernels(in, result);
  OpenQuestions open;
  result.model = trainer_model(in, inputs, open);
  read_lengths(in, inputs.keeps_seq, result);
  if (plan.attention == AttentionKind::kFlash && result.model.attention_dropout > 0) {
    result.model.attention_dropout = 0;
    result.notes.emplace_back(kNoFlashDropout);
  }
  const ShardMesh mesh = mesh_of(in);
  const bool shards = result.stack == "pytorch-fsdp" && plan.zero >= 2;
  const ModelSplit split = shards ? split_of(in) : refused_split(in, *inputs.left);
  const std::int64_t of_mesh =
      mesh.shards > 1 ? mesh.copies * mesh.shards * split.tp * split.cp : 0;
  const TrainerSize size = trainer_size(in, config, inputs, of_mesh, open);
  if (size.gpus > 0) read_mesh(in, mesh, split, size.gpus, result);
  read_loaded_bits(in, result);
  read_trainer_optimizer(in, result);
  Status frozen_status = freeze_weights(frozen, result);
  const std::int64_t tp = plan.degrees.tp;
  if (size.gpus % tp != 0)
    in.fail(fmt::format("autotp_size {} does not divide {} GPUs", tp, size.gpus));
  plan.degrees.dp = size.gpus / tp;
  plan.micro_batch = has_pairs ? 2 * size.micro : size.micro;
  plan.global_batch = plan.micro_batch * size.accumulation * plan.degrees.dp;
  if (has_pairs) {
    result.notes.emplace_back(
        "a sample is a pair of sequences, so the batch size is doubled; the forward pass of the "
        "reference model is not predicted");
  }
  plan.stage_layers = {result.model.layers};
  if (in.flag("accelerator_config.gradient_accumulation_kwargs.sync_each_batch", false)) {
    result.parts[StackPart::kGradientSync] =
        static_cast<std::int64_t>(GradientSync::kEveryMicroBatch);
  }
  Status settled = settle_left(in, file, rows, result.outside, *inputs.left);
  TPSIM_TRY_STATUS(open.status());
  TPSIM_TRY_STATUS(std::move(settled));
  TPSIM_TRY_STATUS(std::move(frozen_status));
  TPSIM_TRY_STATUS(split_model(split, 0, result));
  TPSIM_TRY_STATUS(validate(plan, result.model));
  return result;
}

}  // namespace tpsim
