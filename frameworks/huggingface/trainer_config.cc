// What Hugging Face's Trainer is told: its own arguments, accelerate's YAML, axolotl's YAML and
// DeepSpeed's JSON, alone or one naming the other. Rules: transformers/training_args.py,
// accelerate/utils/dataclasses.py, axolotl/utils/schemas, deepspeed/runtime/config.py.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "formats/settings_text.h"
#include "formats/shell_words.h"
#include "frameworks/deepspeed/deepspeed_config.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_command.h"

namespace tpsim {
namespace {

constexpr const char* kWholeModel = "tpsim plans the training of all weights";
constexpr const char* kNoOffload =
    "tpsim's plans keep the weights on the GPU; an offloaded optimizer (offload_optimizer_device: "
    "cpu) is read";
constexpr const char* kWholeBits =
    "tpsim plans weights of 16 or 32 bits: without it the plan bounds memory from above";
constexpr const char* kFewBits =
    "under data parallelism alone weights and AdamW's state would have these bits too: add the "
    "file of accelerate or DeepSpeed that launches it, which keep a copy in fp32";

// Patterns are tried in order.
constexpr LeftOver kTrainerRows[] = {
    {"adapter lora_* peft* use_peft unfrozen_parameters* relora* gptq", kWholeModel},
    {"load_in_8bit load_in_4bit bnb_4bit* quantization_bit", kWholeBits},
    {"finetuning_type", kWholeModel, "full"},
    {"rl stage", "tpsim plans the training on a loss of words", "sft pt"},
    {"fsdp_config.*offload_params fsdp_config.fsdp_offload_params fsdp_config.offload_params "
     "fsdp_offload_params deepspeed_config.offload_param_device",
     kNoOffload},
    {"fp8", "tpsim's plans compute in bf16, fp16 or fp32"},
    {"fp8_*"},  // of what is off
    {"tensor_parallel_size context_parallel_size sequence_parallel_degree parallelism_config*",
     "tpsim reads Trainer's data parallelism", "1"},
    {"flex_attention",
     "its kernel is timed nowhere here; --set flex_attention=false reads it as "
     "FlashAttention"},
    {"torch_dtype dtype pure_bf16", kFewBits},
    {"optim_target_modules*", kAdamState},
    {"torch_empty_cache_steps", "it frees memory between steps"},
    {"adam_* assistant_only_loss average_tokens_across_devices beta columns* completion_only_loss "
     "eos_token pad_token flex_attn_compile_kwargs* liger_* loss_type packing_* "
     "per_device_eval_batch_size lazy_preprocess padding_free max_prompt_length model_init_kwargs* "
     "warmup config auto_resume* base_model_* chat_template* ckpt* compute_environment cosine_* "
     "data_* dataloader_* dataset* datasets* ddp_* debug default_system_message disable_tqdm "
     "do_eval do_train downcast_bf16 dynamo_* early_stopping* embeddings_* enable_cpu_affinity "
     "epochs eval_* evals_per_epoch evaluation_* float16 fsdp_config.* fsdp_* gpu_ids "
     "gradient_checkpointing_kwargs* group_by_length hf_* hub_* include_* is_* jinja* label* "
     "learning_rate* load_best_model* local_rank log_* logging_* loss_watchdog* lr_* machine_rank "
     "main_* max_grad_norm max_steps metric* min_lr* mlflow* model_revision model_type neftune* "
     "num_epochs num_train_epochs optim_args* output_dir overwrite_* pad_to_sequence_len packing "
     "plugins* prediction_loss_only preprocessing_* push_to_hub* rdzv_backend "
     "remove_unused_columns report_to* resume_* run_name s2_attention same_network sample_packing* "
     "save_* saves_per_epoch seed shuffle* special_tokens* strict system_prompt test_* tf32 token* "
     "tokens* tokenizer* total_num_steps tpu_* train_on_* trust_remote_code type use_cpu "
     "use_tensorboard val_* wandb* warmup_* weight_decay xformers_attention deepspeed_config.* "
     "dpo* bf16_full_eval fp16_full_eval fp16_* half_precision_backend gradient_clipping template "
     "max_samples plot_loss mask_history neat_packing mix_strategy interleave_probs media_dir "
     "image_* video_* freeze_* resize_vocab use_fast_tokenizer compute_accuracy buffer_size "
     "predict_with_generate print_param_status"},
};

// What no question should precede.
constexpr std::span<const LeftOver> kTrainerModelRows(kTrainerRows, 4);

// The first of these keys that the file has.
std::optional<std::string> any_text(FlatReader& in, std::initializer_list<const char*> keys) {
  std::optional<std::string> value;
  for (const char* key : keys) {
    const auto one = in.text(key);
    if (!value) value = one;
  }
  return value;
}
bool any_flag(FlatReader& in, std::initializer_list<const char*> keys) {
  bool on = false;
  for (const char* key : keys) on |= in.flag(key, false);
  return on;
}
std::int64_t any_integer(FlatReader& in, std::initializer_list<const char*> keys) {
  std::int64_t value = -1;
  for (const char* key : keys) {
    const std::int64_t one = in.integer(key, -1);
    if (value < 0) value = one;
  }
  return value;
}

// FSDP's strategies by name and by number (torch/distributed/fsdp/api.py).
void read_strategy(FlatReader& in, const std::string& word, ImportedPlan& result) {
  const std::string name = in_capitals(word);
  if (name == "AUTO_WRAP" || name.empty()) return;
  if (name == "FULL_SHARD" || name == "1") {
    result.plan.zero = 3;
  } else if (name == "SHARD_GRAD_OP" || name == "2") {
    result.plan.zero = 2;
  } else if (name == "NO_SHARD" || name == "3") {
    result.plan.zero = 0;
  } else if (name == "HYBRID_SHARD" || name == "4") {
    result.plan.zero = 3;
    result.parts[StackPart::kShardGroup] = kShardOverNode;
  } else {
    in.fail(fmt::format("FSDP's strategy '{}' is not read", word),
            "full_shard, shard_grad_op, no_shard or hybrid_shard");
  }
}

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
  if (any_flag(in, {"fsdp_config.fsdp_activation_checkpointing",
                    "fsdp_config.activation_checkpointing"})) {
    result.plan.recompute = Recompute::kFull;
  }
}

// Scripts and trainings are started from the top of their repository.
constexpr int kAbove = 4;

// As its owner called it, from the folder of what names it, or from so many folders above; nothing
// where it is not there.
std::optional<std::string> text_of_named(const std::string& name, const ImportInputs& inputs,
                                         int above) {
  for (const LaunchFile& more : inputs.more) {
    if (path_of(more) == name) return more.text;
  }
  std::string place = name;
  for (int i = 0; inputs.open && i <= above; ++i) {
    auto text = inputs.open(place);
    if (text.ok()) return *std::move(text);
    place.insert(0, "../");
  }
  return std::nullopt;
}

Error not_there(const std::string& name, const std::string& by, const std::string& otherwise = "") {
  return bad_input(fmt::format("names {}, which is not there", name), by,
                   "put it where the name leads from this file" + otherwise);
}

// Weights are loaded in fewer bits; what shards them keeps its copy in fp32.
void read_loaded_bits(FlatReader& in, const ImportedPlan& result) {
  for (const char* key : {"torch_dtype", "dtype"}) {
    const bool is_kept = result.plan.zero > 0 || result.stack == "deepspeed-zero3" ||
                         result.plan.dtype == DType::kFloat32;
    const auto found = std::find_if(in.left().begin(), in.left().end(),
                                    [&](const FlatSetting& one) { return one.key == key; });
    if (found == in.left().end()) continue;
    const std::string& word = found->value;
    if (is_kept || word == "auto" || word == "float32") in.left().erase(found);
  }
}

// FSDP2's mesh: shards, and copies of them. As accelerate calls it and as axolotl does.
struct Mesh {
  std::int64_t copies = 1;
  std::int64_t shards = 1;
};
Mesh mesh_of(FlatReader& in) {
  const auto size = [&](const std::string& name) {
    const std::string long_name = "parallelism_config.parallelism_config_" + name;
    return std::max<std::int64_t>(1, any_integer(in, {long_name.c_str(), name.c_str()}));
  };
  return {size("dp_replicate_size"), size("dp_shard_size")};
}

// Copies of shards are those of nodes where shards fill one.
void read_mesh(FlatReader& in, const Mesh& mesh, std::int64_t gpus, ImportedPlan& result) {
  const auto [copies, shards] = mesh;
  if (copies <= 1) return;
  if (shards <= 1) {
    result.plan.zero = 0;
    return;
  }
  constexpr std::int64_t kUsualNode = 8;
  if (shards != kUsualNode && copies * shards == gpus) {
    in.fail(fmt::format("{} copies of weights sharded over {} GPUs", copies, shards),
            "shards over all GPUs, or over a node of 8, are read");
  }
  result.parts[StackPart::kShardGroup] = kShardOverNode;
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
      const auto text = text_of_named(*named, inputs, kAbove);
      if (!text) {
        return not_there(*named, path_of(file),
                         ", or import it beside: tpsim import " + path_of(file) + " FILE");
      }
      json.text = *text;
    }
    TPSIM_TRY(config, read_deepspeed_config(json));
    result.outside.insert(result.outside.end(), config.outside.begin(), config.outside.end());
    if (own) in.left().clear();
  } else if (stage >= 0) {
    config.stage = stage;
    config.offloads = device == "cpu";
    if (device != "cpu" && device != "none") {
      in.fail(fmt::format("offload_optimizer_device is {}: cpu or none", device));
    }
  } else {
    return Ok{};
  }
  result.stack = "deepspeed-zero3";
  result.plan.zero = static_cast<int>(config.stage);
  result.plan.offload = config.offloads ? Offload::kOptimizer : Offload::kNone;
  return Ok{};
}

void read_numbers(FlatReader& in, const DeepSpeedConfig& config, Plan& plan) {
  const std::string mixed = in.text("mixed_precision").value_or("no");
  const bool bf16 = any_flag(in, {"bf16", "bfloat16"}) || mixed == "bf16" || config.bf16;
  const bool fp16 = in.flag("fp16", false) || mixed == "fp16" || config.fp16;
  if (mixed == "fp8")
    in.fail("mixed_precision is fp8", "tpsim's plans compute in bf16, fp16 or fp32");
  const bool leaves_open = config.precision_is_auto && !fp16;  // what its Trainer is told
  plan.dtype = bf16 || leaves_open ? DType::kBFloat16 : fp16 ? DType::kFloat16 : DType::kFloat32;
  plan.gradient_dtype = plan.dtype == DType::kFloat16 ? DType::kFloat16 : DType::kFloat32;
  if (config.gradients) plan.gradient_dtype = *config.gradients;
}

// LLaMA-Factory's word for it.
bool says_flash(FlatReader& in) {
  const auto word = in.text("flash_attn");
  return word && !matches_any(*word, "false disabled");
}

// LLaMA-Factory recomputes unless told otherwise.
Recompute recompute_of_trainer(FlatReader& in) {
  const bool usual = in.has("finetuning_type") || in.has("stage");
  const bool off = in.flag("disable_gradient_checkpointing", false);
  return in.flag("gradient_checkpointing", usual && !off) ? Recompute::kFull : Recompute::kNone;
}

void read_trainer_kernels(FlatReader& in, ImportedPlan& result) {
  const std::string kind = any_text(in, {"attn_implementation", "attention"}).value_or("sdpa");
  if (kind.starts_with("flex")) {
    in.fail(fmt::format("{} makes another plan of it", kind),
            "its kernel is timed nowhere here; --set attn_implementation=flash_attention_2 reads "
            "it as FlashAttention");
  }
  const bool flash =
      any_flag(in, {"flash_attention", "sdp_attention", "use_flash_attention_2"}) || says_flash(in);
  const bool plain = any_flag(in, {"eager_attention"}) || (kind == "eager" && !flash);
  result.plan.attention = plain ? AttentionKind::kUnfused : AttentionKind::kFlash;
  PartValues& parts = result.parts;
  if (plain)
    parts[StackPart::kAttentionKernel] = static_cast<std::int64_t>(AttentionKernel::kTorch);
  if (any_flag(in, {"torch_compile"})) parts[StackPart::kCompile] = 1;
  const bool liger = any_flag(in, {"use_liger_kernel", "use_liger", "enable_liger_kernel"});
  if (in.flag("liger_fused_linear_cross_entropy", liger)) {
    parts[StackPart::kLossHead] = static_cast<std::int64_t>(LossHead::kFused);
  }
  const bool layer_norm = in.flag("liger_layer_norm", false);
  if (in.flag("liger_rms_norm", liger) || layer_norm) parts[StackPart::kNormKernel] = 0;
  if (in.flag("liger_rope", liger)) parts[StackPart::kRotaryKernel] = 0;
  const bool glu = any_flag(in, {"liger_glu_activation", "liger_swiglu"});
  if (liger || glu) parts[StackPart::kActivationKernel] = 0;
  const std::string optimizer = any_text(in, {"optim", "optimizer"}).value_or("adamw_torch");
  if (optimizer == "adamw_torch_fused") parts[StackPart::kOptimizerKernel] = 0;
  if (optimizer != "adamw_torch" && optimizer != "adamw_torch_fused" && optimizer != "adamw_hf" &&
      optimizer != "adamw_apex_fused") {
    in.fail(fmt::format("the optimizer {} makes another plan of it", optimizer), kAdamState);
  }
}

struct TrainerSize {
  std::int64_t gpus = 0;
  std::int64_t micro = -1;
  std::int64_t accumulation = -1;
};

// Each is said by one of the files, or by the options of the import; else it is asked for.
TrainerSize trainer_size(FlatReader& in, const DeepSpeedConfig& config, const ImportInputs& inputs,
                         const Mesh& mesh, OpenQuestions& open) {
  TrainerSize size;
  size.micro = any_integer(in, {"per_device_train_batch_size", "micro_batch_size"});
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
  if (size.gpus < 1 && mesh.shards > 1) size.gpus = mesh.copies * mesh.shards;
  if (size.gpus < 1) open.ask(kHowManyGpus);
  if (size.micro < 1) open.ask({"the file leaves the batch of a GPU open", "--micro-batch N"});
  if (size.gpus < 1 || size.micro < 1) return size;
  const std::int64_t whole = inputs.global_batch > 0 ? inputs.global_batch : config.train_batch;
  if (size.accumulation < 1 && whole > 0) size.accumulation = whole / (size.micro * size.gpus);
  if (size.accumulation < 1) size.accumulation = 1;
  return size;
}

// Without layers where it is asked for.
ModelSpec trainer_model(FlatReader& in, const ImportInputs& inputs, OpenQuestions& open) {
  const auto name = any_text(in, {"base_model", "model_name_or_path", "model_id"});
  if (inputs.model) return *inputs.model;
  if (name && inputs.load) {
    Result<ModelSpec> model = inputs.load(*name);
    if (model.ok()) return *std::move(model);
  }
  open.ask({name ? fmt::format("the catalogue has no model '{}'", *name)
                 : "which model? The file names none",
            kModelAnswer});
  return {};
}

}  // namespace

Result<ImportedPlan> import_trainer(FlatReader in, const LaunchFile& file,
                                    const ImportInputs& inputs) {
  ImportedPlan result;
  result.stack = "pytorch-fsdp";
  Plan& plan = result.plan;
  plan.zero = 0;
  plan.recompute = Recompute::kNone;
  DeepSpeedConfig config;
  TPSIM_TRY_STATUS(refuse_first(in, file, kTrainerModelRows));
  TPSIM_TRY_STATUS(read_deepspeed(in, file, inputs, config, result));
  const std::string kind = in.text("distributed_type").value_or("");
  if (kind == "MEGATRON_LM") in.fail("distributed_type MEGATRON_LM: import Megatron's own script");
  read_fsdp(in, kind == "FSDP", result);
  read_numbers(in, config, plan);
  if (recompute_of_trainer(in) == Recompute::kFull) plan.recompute = Recompute::kFull;
  read_trainer_kernels(in, result);
  OpenQuestions open;
  result.model = trainer_model(in, inputs, open);
  const std::int64_t seq = any_integer(
      in, {"sequence_len", "max_seq_length", "max_length", "model_max_length", "cutoff_len"});
  if (seq > 0 && !inputs.keeps_seq) result.model.seq = seq;
  if (plan.attention == AttentionKind::kFlash && result.model.attention_dropout > 0) {
    result.model.attention_dropout = 0;
    result.notes.emplace_back(kNoFlashDropout);
  }
  const Mesh mesh = mesh_of(in);
  const TrainerSize size = trainer_size(in, config, inputs, mesh, open);
  TPSIM_TRY_STATUS(open.status());
  read_mesh(in, mesh, size.gpus, result);
  read_loaded_bits(in, result);
  plan.degrees.dp = size.gpus;
  plan.micro_batch = size.micro;
  plan.global_batch = size.micro * size.accumulation * size.gpus;
  plan.stage_layers = {result.model.layers};
  if (in.flag("accelerator_config.gradient_accumulation_kwargs.sync_each_batch", false)) {
    result.parts[StackPart::kGradientSync] =
        static_cast<std::int64_t>(GradientSync::kEveryMicroBatch);
  }
  TPSIM_TRY_STATUS(settle_left(in, file, kTrainerRows, result.outside));
  TPSIM_TRY_STATUS(validate(plan, result.model));
  return result;
}

// As scripts start it: by accelerate, torchrun or deepspeed, with arguments of its own and the
// configurations that the command names.
namespace {

// "--per-device-train-batch-size" is one of its arguments too.
std::string key_of(std::string_view option) {
  std::string key(option.substr(option.find_first_not_of('-')));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

Result<std::string> opened(const std::string& name, const LaunchFile& by,
                           const ImportInputs& inputs) {
  auto text = text_of_named(name, inputs, kAbove);
  if (!text) return not_there(name, path_of(by));
  return *std::move(text);
}

}  // namespace

bool is_trainer_command(const LaunchCommand& command) {
  return !command.configs.empty() ||
         has_any_option(command.options, {"--per_device_train_batch_size",
                                          "--per-device-train-batch-size", "--model_name_or_path"});
}

Result<ImportedPlan> import_trainer_command(const LaunchCommand& command, const LaunchFile& file,
                                            const ImportInputs& inputs) {
  std::vector<FlatSetting> settings;
  const auto put = [&](FlatSetting setting) {
    std::erase_if(settings, [&](const FlatSetting& one) { return one.key == setting.key; });
    settings.push_back(std::move(setting));
  };
  for (const std::string& marked : command.configs) {
    const std::string name = without_marks(marked);
    TPSIM_TRY(std::string text, opened(name, file, inputs));
    TPSIM_TRY(std::vector<FlatSetting> own, flat_settings({name, std::move(text)}));
    for (FlatSetting& one : own) put(std::move(one));
  }
  for (const LaunchOption& option : command.options) {
    const std::string key = key_of(option.name);
    if (key == "config") continue;
    put({key, option.value.empty() ? "true" : option.value, 0});
  }
  settings = with_values(std::move(settings), inputs.given);
  ImportInputs all = inputs;
  if (all.gpus == 0 && command.size.nodes > 0) {  // the command line goes first
    all.gpus = command.size.nodes * command.size.gpus_per_node;
  }
  all.open = [&](const std::string& name) { return opened(name, file, inputs); };
  return import_trainer(FlatReader(std::move(settings)), file, all);
}

}  // namespace tpsim
