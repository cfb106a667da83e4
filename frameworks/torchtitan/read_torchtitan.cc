// Reads torchtitan's command-line options of 2024 to 2026.
//
// Sources: torchtitan/config/configs.py and trainer.py of commits 0014ac2c and b5bcd76 (2026), and
// torchtitan/config/job_config.py of 2025. The model is a flavor of torchtitan's registry.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/software/launch_rules.h"
#include "frameworks/launch/facts.h"
#include "frameworks/launch/imported_plan.h"
#include "frameworks/launch/megatron_options.h"
#include "frameworks/torchtitan/titan_options.h"

namespace tpsim {
namespace {

constexpr auto kReducedAsComputed = static_cast<std::int64_t>(ReduceDtype::kAsComputed);
constexpr const char* kComponents = "--compile.components";
// Options of 2024 and 2025.
constexpr const char* kNoLossParallel = "--parallelism.disable_loss_parallel";
constexpr const char* kNormType = "--model.norm_type";

// Options that count tokens instead of sequences.
constexpr const char* kTokenOptions[] = {kTitanContext, kTitanMicroTokens, kTitanStepTokens};

bool counts_tokens(const std::vector<LaunchOption>& options) {
  return std::any_of(std::begin(kTokenOptions), std::end(kTokenOptions),
                     [&](const char* name) { return has_key(options, name); });
}

// Returns the value of an option and removes the option. 0 if it is absent or not a number.
std::int64_t taken_number(std::vector<LaunchOption>& options, const char* name) {
  const std::int64_t number = setting_number(options, name);
  drop_settings(options, name);
  return number;
}

// Reads the replicate and shard degrees. If both exceed 1, sets the shard group in `parts`.
void read_data_parallel(LaunchOptionReader& in, const LaunchSize& size, Plan& plan,
                        PartValues& parts) {
  const std::int64_t world = size.nodes * size.gpus_per_node;
  const std::int64_t copies = in.integer("--parallelism.data_parallel_replicate_degree", 1);
  const std::int64_t others = copies * plan.degrees.tp * plan.degrees.cp * plan.degrees.pp;
  // The default -1 means all ranks that the other degrees leave.
  const bool is_rest = !in.has("--parallelism.data_parallel_shard_degree") ||
                       in.has_value("--parallelism.data_parallel_shard_degree", "-1");
  if (is_rest) in.drop("--parallelism.data_parallel_shard_degree");
  const std::int64_t shards = is_rest ? std::max<std::int64_t>(1, others > 0 ? world / others : 1)
                                      : in.integer("--parallelism.data_parallel_shard_degree", 1);
  std::string reshard = in.text("--parallelism.fsdp_reshard_after_forward").value_or("default");
  // By default weights are resharded after forward, except with a pipeline.
  if (reshard == "default") reshard = shards == 1 ? "" : plan.degrees.pp > 1 ? "never" : "always";
  if (copies > 1 && shards > 1) {
    const std::int64_t group = shards * plan.degrees.tp * plan.degrees.cp;
    parts[StackPart::kShardGroup] = shard_group_of(group, size);
  }
  if (!reshard.empty() && reshard != "always" && reshard != "never") {
    in.fail(fmt::format("fsdp_reshard_after_forward is '{}'; it must be default, always or never",
                        reshard));
  }
  plan.degrees.dp = copies * shards;
  plan.zero = reshard.empty() ? 0 : reshard == "always" ? 3 : 2;
}

void read_pipeline(LaunchOptionReader& in, const ModelSpec& model, Plan& plan) {
  const std::string schedule = in.text("--parallelism.pipeline_parallel_schedule").value_or("1F1B");
  plan.schedule = schedule == "GPipe"             ? ScheduleKind::kGpipe
                  : schedule == "Interleaved1F1B" ? ScheduleKind::kInterleaved
                                                  : ScheduleKind::kOneFOneB;
  if (schedule != titan_schedule(plan.schedule)) {
    in.fail(fmt::format(
        "pipeline_parallel_schedule is '{}'; it must be 1F1B, GPipe or Interleaved1F1B", schedule));
  }
  const std::int64_t first =
      in.integer("--parallelism.pipeline_parallel_first_stage_less_layers", 1);
  const std::int64_t last = in.integer("--parallelism.pipeline_parallel_last_stage_less_layers", 1);
  const std::int64_t counted = model.layers + first + last;
  const std::int64_t per_stage =
      in.integer("--parallelism.pipeline_parallel_layers_per_stage", counted);
  const std::int64_t pp = plan.degrees.pp;
  if (first > 1 || first != last || per_stage < 1 || counted % per_stage != 0 ||
      counted / per_stage % pp != 0) {
    return in.fail(
        "the layers cannot be divided evenly among the pipeline stages",
        "the layers plus pipeline_parallel_first_stage_less_layers and ..last_stage_less_layers "
        "(both 0 or both 1) must be a multiple of pipeline_parallel_layers_per_stage x stages");
  }
  plan.virtual_stages = counted / per_stage / pp;
  plan.stage_layers = even_stage_layers(model.layers, counted / per_stage, first == 1);
}

// Reads the batch sizes. Without a pipeline the local batch is the micro-batch. With a pipeline it
// is a rank's batch of a whole step.
void read_batch(LaunchOptionReader& in, Plan& plan) {
  const std::int64_t local = in.integer("--training.local_batch_size", 1);
  if (in.has_value("--training.global_batch_size", "-1")) in.drop("--training.global_batch_size");
  plan.global_batch = in.integer("--training.global_batch_size", local * plan.degrees.dp);
  if (plan.degrees.pp == 1) {
    plan.micro_batch = local;
    return;
  }
  plan.micro_batch = in.integer("--parallelism.pipeline_parallel_microbatch_size", 1);
  if (plan.micro_batch < 1 || local % plan.micro_batch != 0) {
    return in.fail("local_batch_size is not a multiple of pipeline_parallel_microbatch_size");
  }
  if (plan.global_batch != local * plan.degrees.dp) {
    in.fail("with a pipeline, global_batch_size must be local_batch_size x data-parallel ranks");
  }
}

// Reads the recompute mode: a word, or the options of versions before 2026. Selective recompute is
// by op, or recomputes every n-th block. n = 1 is full recompute.
Recompute recompute_of(LaunchOptionReader& in) {
  if (in.flag(kNoCheckpointing)) return Recompute::kNone;
  if (in.flag(kFullCheckpointing)) return Recompute::kFull;
  if (in.flag(kSelectiveCheckpointing)) return Recompute::kOps;
  const std::string mode = in.text("--activation_checkpoint.mode").value_or("selective");
  const std::string option = in.text("--activation_checkpoint.selective_ac_option").value_or("op");
  if (mode == "none") return Recompute::kNone;
  if (mode == "full" || (mode == "selective" && option == "1")) return Recompute::kFull;
  if (mode != "selective" || option != "op") {
    in.fail(
        fmt::format("activation_checkpoint mode {} with option {} is not modelled", mode, option),
        "tpsim models none, full, and selective with option op");
  }
  return Recompute::kOps;
}

PartValues reduce_parts(const std::vector<LaunchOption>& options) {
  if (setting_value(options, kTitanReduce) != "bfloat16") return {};
  return {{StackPart::kReduceDtype, kReducedAsComputed}};
}

}  // namespace

void count_sequences(std::vector<LaunchOption>& options, std::int64_t seq) {
  if (!counts_tokens(options)) return;
  const std::int64_t context = taken_number(options, kTitanContext);
  const std::int64_t tokens = taken_number(options, kTitanMicroTokens);
  const std::int64_t step = taken_number(options, kTitanStepTokens);
  const std::int64_t stages = setting_number(options, "--parallelism.pipeline_parallel_degree", 1);
  const std::int64_t stated = taken_number(options, kTitanMicroBatches);
  const std::int64_t micro_batches = stages > 1 ? std::max<std::int64_t>(1, stated) : 1;
  std::int64_t whole = context > 0 ? context : seq;
  if (tokens > 0) whole = std::min(whole, tokens);
  const std::int64_t micro_batch = tokens > 0 ? tokens / whole : 1;
  const auto add = [&](const char* name, std::int64_t value) {
    put_setting(options, name, std::to_string(value));
  };
  add("--training.seq_len", whole);
  add("--training.local_batch_size", micro_batch * micro_batches);
  if (stages > 1) add("--parallelism.pipeline_parallel_microbatch_size", micro_batch);
  if (step > 0) add("--training.global_batch_size", step / whole);
}

void take_titan_choices(const std::vector<LaunchOption>& options, bool keeps_seq,
                        ModelSpec& model) {
  const LaunchOption* seq = find_setting(options, "--training.seq_len");
  if (seq == nullptr || keeps_seq) return;
  take_run_choices(
      {{"--seq-length", seq->value}, {"--attention-dropout", "0"}, {"--hidden-dropout", "0"}},
      false, model);
}

PartValues take_torchtitan_parts(std::vector<LaunchOption>& options) {
  PartValues parts = reduce_parts(options);
  const auto set = [&](StackPart part, std::string_view word) {
    parts[part] = parse_value(row_of(part), word).value();
  };
  // Until May 2026 the loss was whole, context parallelism a ring, and attention PyTorch's
  // scaled_dot_product_attention.
  if (!counts_tokens(options) && !has_key(options, kTitanLossChunks)) {
    set(StackPart::kLossHead, "eager");
    set(StackPart::kCpCommType, "torch_ring");
    set(StackPart::kAttentionKernel, "flash2");
  }
  const std::string components = setting_value(options, kComponents);
  const bool compiles_model = components.empty() || matches_any("model", components);
  if (compiles_model && has_any_key(options, {kTitanCompile, "--training.compile"})) {
    set(StackPart::kCompile, "on");
  }
  if (has_any_key(options, {kTitanAsyncTensor, kFormerAsyncTensor})) {
    set(StackPart::kTpOverlap, "userbuffers");
  }
  // Versions that count tokens capture forward and backward as a CUDA graph unless told otherwise.
  if (counts_tokens(options) && !has_key(options, kTitanNoGraphs)) {
    set(StackPart::kCudaGraphs, "full_iteration");
  }
  if (has_key(options, kTitanBalanced)) set(StackPart::kExpertLoad, "balanced");
  if (const LaunchOption* chunks = find_setting(options, kTitanLossChunks)) {
    set(StackPart::kLossHead, parse_number<std::int64_t>(chunks->value) == 1 ? "eager" : "chunked");
  }
  if (has_key(options, kNoLossParallel)) set(StackPart::kLossHead, "gathered");
  if (const LaunchOption* norm = find_setting(options, kNormType)) {
    set(StackPart::kNormKernel, norm->value == "fused_rmsnorm" ? "fused" : "torch");
  }
  // bfloat16: weights and Adam's moments are in bf16, without an fp32 copy.
  if (setting_value(options, kTitanWeights) == "bfloat16") {
    set(StackPart::kMasterWeights, "none");
    set(StackPart::kOptimizerDtype, "bf16");
    drop_settings(options, kTitanWeights);
  }
  if (const LaunchOption* const optimizer = find_setting(options, kTitanOptimizer)) {
    set(StackPart::kOptimizerKernel, optimizer->value.starts_with("fused") ? "fused" : "torch");
    if (optimizer->value == kNarrowMoments) set(StackPart::kOptimizerDtype, "bf16");
  }
  drop_settings(options, fact_names("torchtitan-parts", "taken"));
  return parts;
}

Result<Plan> plan_of_torchtitan(const ShellOptions& shell, ImportedPlan& result,
                                LeftSettings& left) {
  const ModelSpec& model = result.model;
  LaunchOptionReader in(shell.options);
  Plan plan;
  plan.attention = AttentionKind::kFlash;
  in.expect("--training.seq_len", model.seq);
  plan.degrees.tp = in.integer("--parallelism.tensor_parallel_degree", 1);
  plan.degrees.cp = in.integer("--parallelism.context_parallel_degree", 1);
  plan.degrees.pp =
      std::max<std::int64_t>(1, in.integer("--parallelism.pipeline_parallel_degree", 1));
  read_data_parallel(in, shell.size, plan, result.parts);
  const std::int64_t experts = in.integer("--parallelism.expert_parallel_degree", 1);
  const std::int64_t cut = in.integer("--parallelism.expert_tensor_parallel_degree", 1);
  if (has_experts(model)) {
    // Without expert parallelism experts are split over the tensor ranks, as all GEMMs are.
    plan.degrees.ep = std::max<std::int64_t>(1, experts);
    plan.degrees.etp = cut == plan.degrees.tp || plan.degrees.ep == 1 ? 0 : cut;
  }
  const bool on = in.flag(kTitanSequenceParallel);
  const bool off = in.flag(kTitanNoSequenceParallel);
  if (on && off) in.fail("the options switch sequence parallelism both on and off");
  plan.sequence_parallel = !off && plan.degrees.tp > 1;
  const std::string dtype = in.text("--training.mixed_precision_param").value_or("bfloat16");
  plan.dtype = dtype == "float32" ? DType::kFloat32 : DType::kBFloat16;
  const std::string reduced = in.text(kTitanReduce).value_or("float32");
  if (!matches_any(reduced, "float32 bfloat16")) {
    in.fail(fmt::format("{} is {}; it must be float32 or bfloat16", kTitanReduce, reduced));
  }
  read_torchtitan_recipe(in, plan);
  read_batch(in, plan);
  if (plan.degrees.pp > 1) {
    read_pipeline(in, model, plan);
  } else {
    plan.stage_layers = {model.layers};
    for (const char* unused : {"schedule", "microbatch_size", "microbatches", "split_points"}) {
      in.drop(fmt::format("--parallelism.pipeline_parallel_{}", unused));
    }
  }
  plan.recompute = recompute_of(in);
  const std::int64_t world = shell.size.nodes * shell.size.gpus_per_node;
  if (gpu_count(plan) != world) {
    in.fail(fmt::format("data {} x tensor {} x pipeline {} x context {} are {} GPUs, not {}",
                        plan.degrees.dp, plan.degrees.tp, plan.degrees.pp, plan.degrees.cp,
                        gpu_count(plan), world),
            "data_parallel_shard_degree = -1 uses all GPUs that the other degrees leave");
  }
  if (titan_casts_nothing(plan)) {
    plan.dtype = DType::kFloat32;
    result.notes.emplace_back(
        "torchtitan trains in fp32 here: with tensor or pipeline parallelism its mixed precision "
        "takes effect only where weights are sharded");
  }
  TPSIM_TRY_STATUS(in.finish(left));
  TPSIM_TRY_STATUS(validate(plan, model));
  return plan;
}

}  // namespace tpsim
