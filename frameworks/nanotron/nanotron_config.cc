// Reads and writes nanotron's YAML, as run_train.py expects. Sources:
// src/nanotron/config/config.py, parallelism_config.py, models_config.py.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/leading_number.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/framework.h"
#include "frameworks/launch/launcher.h"

namespace tpsim {
namespace {

constexpr std::int64_t kMostLayers = 1 << 16;

// Removes rotary positions from every `interval`-th layer, counting from 1. Does nothing if
// `interval` is 0.
void leave_out_rotary(std::int64_t interval, ModelSpec& model) {
  if (interval < 1 || model.layers > kMostLayers) return;
  std::vector<BlockShape> blocks;
  for (std::int64_t layer = 1; layer <= model.layers; ++layer) {
    blocks.emplace_back(model);
    if (layer % interval == 0) blocks.back().attention.position = PositionKind::kNone;
  }
  set_blocks(model, blocks);
}

Result<ModelSpec> model_of_nanotron(FlatReader& in, const LaunchFile& file) {
  const auto key = [](const char* name) { return fmt::format("model.model_config.{}", name); };
  const bool llama = in.flag(key("is_llama_config"), false);
  const bool qwen = in.flag(key("is_qwen2_config"), false);
  if (!llama && !qwen) {
    return bad_input("model.model_config sets neither is_llama_config nor is_qwen2_config",
                     path_of(file), "tpsim reads nanotron's LLaMA and Qwen only");
  }
  ModelSpec model;
  model.layers = in.integer(key("num_hidden_layers"), 0);
  model.hidden = in.integer(key("hidden_size"), 0);
  model.ffn_hidden = in.integer(key("intermediate_size"), 0);
  model.vocab = in.integer(key("vocab_size"), 0);
  model.vocab_multiple =
      std::max<std::int64_t>(1, in.integer("model.make_vocab_size_divisible_by", 1));
  model.attention.heads = in.integer(key("num_attention_heads"), 0);
  model.attention.kv_heads = in.integer(key("num_key_value_heads"), model.attention.heads);
  const std::int64_t heads = std::max<std::int64_t>(1, model.attention.heads);
  model.attention.head_dim = in.integer(key("head_dim"), model.hidden / heads);
  model.attention.position = PositionKind::kRotary;
  model.attention.qkv_bias = in.flag(key("attention_bias"), qwen);
  model.attention.window = std::max<std::int64_t>(0, in.integer(key("sliding_window_size"), 0));
  const auto theta = in.text(key("rope_theta"));
  model.attention.rope_theta = parse_number<double>(theta.value_or("")).value_or(10000.0);
  const auto epsilon = in.text(key("rms_norm_eps"));
  model.norm_epsilon = parse_number<double>(epsilon.value_or("")).value_or(1e-6);
  model.norm = NormKind::kRmsNorm;
  model.mlp = MlpKind::kSwiglu;
  model.linear_bias = false;
  model.fused_qkv = false;
  model.tied_embedding = in.flag(key("tie_word_embeddings"), false);
  model.seq = in.integer("tokens.sequence_length", 0);
  leave_out_rotary(in.integer(key("no_rope_layer"), 0), model);
  return model;
}

Status read_nanotron_layout(FlatReader& in, const ModelSpec& model, Plan& plan) {
  plan.degrees.tp = std::max<std::int64_t>(1, in.integer("parallelism.tp", 1));
  plan.degrees.pp = std::max<std::int64_t>(1, in.integer("parallelism.pp", 1));
  plan.degrees.dp = std::max<std::int64_t>(1, in.integer("parallelism.dp", 1));
  if (in.integer("parallelism.expert_parallel_size", 1) > 1) {
    in.fail(
        "parallelism.expert_parallel_size is above 1: tpsim cannot read nanotron's experts yet");
  }
  if (in.integer("parallelism.context_parallel_size", 1) > 1) {
    in.fail(
        "parallelism.context_parallel_size is above 1: tpsim cannot read nanotron's context "
        "parallelism yet");
  }
  const std::string mode = in.text("parallelism.tp_mode").value_or("ALL_REDUCE");
  plan.sequence_parallel = mode == "REDUCE_SCATTER" && plan.degrees.tp > 1;
  if (mode != "REDUCE_SCATTER" && mode != "ALL_REDUCE") {
    in.fail(
        fmt::format("parallelism.tp_mode is {}; it must be REDUCE_SCATTER or ALL_REDUCE", mode));
  }
  const std::string engine = in.text("parallelism.pp_engine").value_or("1f1b");
  if (engine != "1f1b" && engine != "afab") in.fail("parallelism.pp_engine must be 1f1b or afab");
  plan.schedule = engine == "afab" ? ScheduleKind::kGpipe : ScheduleKind::kOneFOneB;
  TPSIM_TRY_STATUS(in.error());
  if (plan.degrees.pp > model.layers + 2) return Ok{};  // validate() reports the error
  plan.stage_layers = default_stage_layers(model.layers, plan.degrees.pp);
  return Ok{};
}

const char* dtype_word(DType dtype) {
  switch (dtype) {
    case DType::kBFloat16: return "bfloat16";
    case DType::kFloat16: return "float16";
    default: return "float32";
  }
}
const char* yaml_flag(bool on) { return on ? "true" : "false"; }

std::string model_text(const ModelSpec& model, const Plan& plan) {
  std::string text = fmt::format("model:\n  dtype: {}\n  make_vocab_size_divisible_by: {}\n",
                                 dtype_word(plan.dtype), model.vocab_multiple);
  text += "  model_config:\n    is_llama_config: true\n    hidden_act: silu\n";
  const auto add = [&](const char* key, const std::string& value) {
    text += fmt::format("    {}: {}\n", key, value);
  };
  add("num_hidden_layers", std::to_string(model.layers));
  add("hidden_size", std::to_string(model.hidden));
  add("intermediate_size", std::to_string(model.ffn_hidden));
  add("num_attention_heads", std::to_string(model.attention.heads));
  add("num_key_value_heads", std::to_string(model.attention.kv_heads));
  add("max_position_embeddings", std::to_string(model.seq));
  add("rms_norm_eps", fmt::format("{}", model.norm_epsilon));
  add("rope_theta", fmt::format("{}", model.attention.rope_theta));
  add("tie_word_embeddings", yaml_flag(model.tied_embedding));
  add("vocab_size", std::to_string(model.vocab));
  return text;
}

// Returns an error if the file's model and the named model differ in size or number of heads.
Status check_named(const ModelSpec& said, const ModelSpec& named, const LaunchFile& file) {
  const std::pair<const char*, std::int64_t ModelSpec::*> numbers[] = {
      {"num_hidden_layers", &ModelSpec::layers},
      {"hidden_size", &ModelSpec::hidden},
      {"intermediate_size", &ModelSpec::ffn_hidden},
      {"vocab_size", &ModelSpec::vocab}};
  for (const auto& [key, number] : numbers) {
    if (said.*number == named.*number) continue;
    return bad_input(fmt::format("model.model_config.{} is {}; the model of --model has {}", key,
                                 said.*number, named.*number),
                     path_of(file), "name the model that the file describes, or omit --model");
  }
  const bool same_heads = said.attention.heads == named.attention.heads &&
                          said.attention.kv_heads == named.attention.kv_heads;
  if (same_heads) return Ok{};
  return bad_input(fmt::format("num_attention_heads and num_key_value_heads are {} and {}; the "
                               "model of --model has {} and {}",
                               said.attention.heads, said.attention.kv_heads, named.attention.heads,
                               named.attention.kv_heads),
                   path_of(file), "name the model that the file describes, or omit --model");
}

Result<std::string> nanotron_yaml(const PlanFile& file) {
  TPSIM_TRY_STATUS(check_launch_rules(LaunchStack::kNanotron, file));
  const Plan& plan = file.plan;
  std::string text =
      "# Add checkpoints, data_stages, general, logging, tokenizer, tokens.train_steps and the\n"
      "# optimizer's factory and schedule.\n" +
      model_text(file.model, plan);
  text += fmt::format("optimizer:\n  accumulate_grad_in_fp32: {}\n  zero_stage: {}\n",
                      yaml_flag(plan.gradient_dtype == DType::kFloat32), plan.zero);
  text += fmt::format("parallelism:\n  dp: {}\n  pp: {}\n  pp_engine: {}\n", plan.degrees.dp,
                      plan.degrees.pp, plan.schedule == ScheduleKind::kGpipe ? "afab" : "1f1b");
  text += fmt::format("  recompute_layer: {}\n  tp: {}\n  tp_mode: {}\n",
                      yaml_flag(plan.recompute == Recompute::kFull), plan.degrees.tp,
                      plan.sequence_parallel ? "REDUCE_SCATTER" : "ALL_REDUCE");
  const auto again = file.parts.find(StackPart::kTpRecomputeAllgather);
  if (again != file.parts.end()) {
    text += fmt::format("  tp_recompute_allgather: {}\n", yaml_flag(again->second != 0));
  }
  return text + fmt::format(
                    "tokens:\n  batch_accumulation_per_replica: {}\n  micro_batch_size: {}\n"
                    "  sequence_length: {}\n",
                    micro_batches(plan), plan.micro_batch, file.model.seq);
}

class Nanotron final : public Framework {
 public:
  Nanotron() : Framework(LaunchStack::kNanotron, Launcher::kNanotron, kNanotronYamlFile) {}

  bool detects_settings(const std::vector<FlatSetting>& settings) const override {
    return has_key(settings, "parallelism.tp") && has_prefix(settings, "tokens.");
  }
  Result<ImportedPlan> read(const std::vector<LaunchFile>& files,
                            const ImportInputs& inputs) const override {
    TPSIM_TRY(const LaunchFile yaml, file_named(files, kNanotronYamlFile));
    TPSIM_TRY(ImportedPlan plan, import_config(yaml, inputs));
    return with_environment(*this, files, inputs, std::move(plan));
  }
  Result<ImportedPlan> read_settings(const std::vector<FlatSetting>& settings,
                                     const LaunchFile& file,
                                     const ImportInputs& inputs) const override {
    return located(file, import_nanotron(FlatReader(settings), file, inputs));
  }

  Result<std::vector<LaunchFile>> write(const PlanFile& file, const LaunchSize& size,
                                        const StackSpec&) const override {
    TPSIM_TRY(std::string yaml, nanotron_yaml(file));
    LaunchOptions launcher;
    launcher.add("--config-file", kNanotronYamlFile);
    return std::vector<LaunchFile>{
        shell_file(stack(), file, size, launcher, ordered_kernels_line(file.plan)),
        {kNanotronYamlFile, std::move(yaml)}};
  }
  std::string start_command(const ModelSpec&, const std::string& job) const override {
    return torchrun_command(job, "run_train.py");
  }
};

}  // namespace

Result<ImportedPlan> import_nanotron(FlatReader in, const LaunchFile& file,
                                     const ImportInputs& inputs) {
  ImportedPlan result;
  result.stack = "nanotron";
  TPSIM_TRY(result.model, model_of_nanotron(in, file));
  if (inputs.model) {
    const Status is_it = check_named(result.model, *inputs.model, file);
    if (!inputs.model_wins && !is_it.ok()) return is_it.error();
    if (!is_it.ok()) {
      result.notes.push_back(
          fmt::format("{}; the prediction uses the model of --model", is_it.error().message));
    }
    const std::int64_t seq = inputs.keeps_seq ? inputs.model->seq : result.model.seq;
    result.model = *inputs.model;
    result.model.seq = seq;
  }
  Plan& plan = result.plan;
  TPSIM_TRY_STATUS(read_nanotron_layout(in, result.model, plan));
  plan.attention = AttentionKind::kFlash;
  plan.zero = static_cast<int>(in.integer("optimizer.zero_stage", 0));
  if (plan.zero > 1) in.fail("optimizer.zero_stage must be 0 or 1");
  plan.micro_batch = in.integer("tokens.micro_batch_size", 1);
  plan.global_batch =
      plan.micro_batch * plan.degrees.dp * in.integer("tokens.batch_accumulation_per_replica", 1);
  plan.recompute =
      in.flag("parallelism.recompute_layer", false) ? Recompute::kFull : Recompute::kNone;
  if (!in.flag("parallelism.tp_recompute_allgather", true)) {
    result.parts[StackPart::kTpRecomputeAllgather] = 0;
  }
  const std::string dtype = in.text("model.dtype").value_or("bfloat16");
  plan.dtype = dtype == "float32"   ? DType::kFloat32
               : dtype == "float16" ? DType::kFloat16
                                    : DType::kBFloat16;
  if (dtype != "float32" && dtype != "float16" && dtype != "bfloat16") {
    in.fail(fmt::format("model.dtype is {}; tpsim's plans compute in bf16, fp16 or fp32", dtype));
  }
  const bool wide = in.flag("optimizer.accumulate_grad_in_fp32", true);
  plan.gradient_dtype = wide ? DType::kFloat32 : plan.dtype;
  TPSIM_TRY_STATUS(
      settle_left(in, file, fact_table("nanotron").left, result.outside, *inputs.left));
  TPSIM_TRY_STATUS(validate(result.model));
  TPSIM_TRY_STATUS(validate(plan, result.model));
  return result;
}

const Framework& nanotron() {
  static const Nanotron framework;
  return framework;
}

}  // namespace tpsim
