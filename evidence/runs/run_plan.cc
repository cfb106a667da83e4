// Converts columns of a run table to plan settings and software parts.
#include "evidence/runs/run_plan.h"

#include <fmt/format.h>

#include <numeric>

#include "core/plan/pipeline_layout.h"
#include "evidence/runs/run_model.h"

namespace tpsim {
namespace {

// Prefix of the list of modules in Megatron-Core's selective recompute.
constexpr std::string_view kModules = "mod:";
constexpr std::string_view kUnstatedModules = "mod";
constexpr const char* kOwnZeroOne = "BF16_Optimizer";

Result<DType> dtype_of(const std::string& text, DType otherwise) {
  if (text.empty()) return otherwise;
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    if (text == name_of(dtype)) return dtype;
  }
  return bad_input(fmt::format("dtype {} is not modelled", text));
}

// Returns the dtype of gradients. The default is the dtype of training for fp16, and the stack's
// for bf16. Without master weights gradients have the dtype of the weights, and with autocast they
// are fp32.
Result<DType> gradient_dtype_of(const PublishedRun& run, const RunEnvironment& environment,
                                const StackSpec& stack, DType dtype) {
  DType usual = dtype == DType::kBFloat16 ? stack.gradient_dtype : dtype;
  if (has_narrow_gradients(stack.parts)) usual = dtype;
  if (stack.parts.master_weights == MasterWeights::kAutocast) usual = DType::kFloat32;
  return dtype_of(stated_or(run.gradient_dtype, environment.gradient_dtype), usual);
}

// A table may state tensor-parallel overlap as 1 or 0: whether Transformer Engine's userbuffers
// were enabled.
Result<std::int64_t> tensor_overlap_of(const StackSpec& stack, const std::string& text) {
  if (text == "1") return static_cast<std::int64_t>(TpOverlap::kUserbuffers);
  if (text != "0") return parse_value(row_of(StackPart::kTpOverlap), text);
  const TpOverlap own = stack.parts.tp_overlap;
  const bool in_pieces = own == TpOverlap::kUserbuffers;
  return static_cast<std::int64_t>(in_pieces ? TpOverlap::kBackward : own);
}

// Whether a table's dtype is a low-precision recipe for linear layers. All else runs as in bf16
// training.
bool names_recipe(const std::string& dtype) {
  return dtype == "fp8" || dtype == "mxfp8" || dtype == "nvfp4";
}

// Returns the default recipe for "fp8": delayed scaling, as in Transformer Engine, if the software
// supports it. Otherwise returns the first supported 8-bit recipe.
Precision usual_recipe(const StackSpec& stack) {
  for (const Precision recipe : {Precision::kFp8, Precision::kFp8Current, Precision::kFp8Block}) {
    if (stack.choices.has({Setting::kPrecision, static_cast<std::int64_t>(recipe)})) return recipe;
  }
  return Precision::kFp8;
}

// Returns the low-precision recipe stated by the columns dtype and precision_recipe.
Result<Precision> precision_of(const PublishedRun& run, const StackSpec& stack) {
  const std::string& recipe = run.precision_recipe;
  if (!names_recipe(run.dtype)) {
    if (recipe.empty() || recipe == "none") return Precision::kNone;
    return bad_input(
        fmt::format("precision_recipe {} is not possible with dtype {}", recipe, run.dtype));
  }
  if (run.dtype != "fp8" && !recipe.empty() && recipe != run.dtype) {
    return bad_input(
        fmt::format("precision_recipe {} is not possible with dtype {}", recipe, run.dtype));
  }
  if (run.dtype == "fp8" && recipe.empty()) return usual_recipe(stack);
  const std::string& words = recipe.empty() ? run.dtype : recipe;
  for (const auto& [word, precision] :
       {std::pair{"delayed", Precision::kFp8}, std::pair{"current", Precision::kFp8Current},
        std::pair{"block", Precision::kFp8Block}, std::pair{"mxfp8", Precision::kMxFp8},
        std::pair{"nvfp4", Precision::kNvFp4}}) {
    if (words == word) return precision;
  }
  return bad_input(fmt::format("precision_recipe '{}' is not modelled", words));
}

Result<int> zero_of(const PublishedRun& run, const StackSpec& stack, int otherwise) {
  // DeepSpeed's bf16 optimizer is configured as ZeRO stage 0, but shards its state like stage 1.
  if (stack.parts.data_parallel_sync == DataParallelSync::kBf16Optimizer) return 1;
  if (run.zero.empty()) return otherwise;
  if (run.zero.find(kOwnZeroOne) != std::string::npos) return 1;
  if (run.zero.size() == 1 && run.zero[0] >= '0' && run.zero[0] <= '3') return run.zero[0] - '0';
  return bad_input(fmt::format("unknown ZeRO stage '{}'", run.zero));
}

// Parses "full", "blocks:3" or modules ("mod:..."), and sets the plan's recompute. An empty text
// means none.
Status set_recompute(Plan& plan, const std::string& text) {
  const bool by_modules = text.starts_with(kModules) || text == kUnstatedModules;
  plan.recompute = by_modules ? Recompute::kSelective : Recompute::kNone;
  if (text.empty() || plan.recompute == Recompute::kSelective) return Ok{};
  const Result<std::vector<SettingValue>> values = parse_settings("recompute=" + text);
  if (!values.ok()) return bad_input(fmt::format("recompute '{}' is not modelled", text));
  if (const SettingRow& row = row_of(values->front().setting); row.counts_for != nullptr) {
    set(plan, *row.counts_for);
  }
  set(plan, values->front());
  return Ok{};
}

bool writes_scores(AttentionKernel kernel) {
  return kernel == AttentionKernel::kTorch || kernel == AttentionKernel::kFusedSoftmax;
}

bool is_flash_kernel(AttentionKernel kernel) {
  return kernel == AttentionKernel::kFlash1 || kernel == AttentionKernel::kFlash2 ||
         kernel == AttentionKernel::kFlash3 || kernel == AttentionKernel::kCudnn ||
         kernel == AttentionKernel::kFlex;
}

Result<AttentionKind> attention_of(const std::string& text, const StackSpec& stack) {
  if (writes_scores(stack.parts.attention_kernel)) return AttentionKind::kUnfused;
  if (text.empty() || text == name_of(AttentionKind::kFlash)) return AttentionKind::kFlash;
  if (text == name_of(AttentionKind::kUnfused)) return AttentionKind::kUnfused;
  return bad_input(fmt::format("attention '{}' is not modelled", text));
}

// Whether the software has no FlashAttention for the dtype: its kernels and cuDNN's have 16-bit
// operands. PyTorch's scaled_dot_product_attention has an fp32 kernel that keeps no scores.
bool lacks_flash_kernel(const StackSpec& stack, DType dtype) {
  const bool calls_sdpa = stack.parts.norm_kernel == KernelFusion::kTorch &&
                          stack.parts.attention_kernel != AttentionKernel::kMegatron;
  return dtype == DType::kFloat32 && !calls_sdpa;
}

std::int64_t virtual_stages_of(const PublishedRun& run, const RunEnvironment& environment) {
  if (run.virtual_stages > 0) return run.virtual_stages;
  const std::int64_t blocks_of_stages = environment.blocks_per_chunk * run.pp;
  if (run.pp == 1 || blocks_of_stages == 0 || run.layers % blocks_of_stages != 0) return 1;
  return run.layers / blocks_of_stages;
}

Result<std::vector<std::int64_t>> stages_of(const PublishedRun& run,
                                            const RunEnvironment& environment,
                                            std::int64_t chunks) {
  if (run.layout.empty()) {
    std::vector<std::int64_t> even = even_stage_layers(
        run.layers, chunks,
        run.stage_split.find("embedding") != std::string::npos || environment.embedding_counts);
    if (even.empty()) return bad_input("the layers cannot be split into the stated stages");
    return even;
  }
  const std::optional<PipelineLayout> layout = parse_pipeline_layout(run.layout);
  const bool fits =
      layout && static_cast<std::int64_t>(layout->blocks.size()) == chunks &&
      std::accumulate(layout->blocks.begin(), layout->blocks.end(), std::int64_t{0}) == run.layers;
  if (!fits) {
    return bad_input(fmt::format("layout '{}' does not split {} layers into {} chunks", run.layout,
                                 run.layers, chunks));
  }
  return layout->blocks;
}

}  // namespace

Result<PartValues> parts_of(const PublishedRun& run, const StackSpec& stack) {
  PartValues parts;
  for (const auto& [part, text] : run.parts) {
    const Result<std::int64_t> value = part == StackPart::kTpOverlap
                                           ? tensor_overlap_of(stack, text)
                                           : parse_value(row_of(part), text);
    if (!value.ok())
      return bad_input(fmt::format("{} '{}' is not modelled", row_of(part).key, text));
    parts[part] = *value;
  }
  // "unfused" attention means PyTorch's ops, unless the stack's own kernel is already unfused.
  if (run.attention == name_of(AttentionKind::kUnfused) &&
      is_flash_kernel(stack.parts.attention_kernel)) {
    parts.try_emplace(StackPart::kAttentionKernel,
                      static_cast<std::int64_t>(AttentionKernel::kTorch));
  }
  // A capacity factor gives every expert the same load, because tokens are padded or dropped.
  if (run.load_balance == "forced" || run.load_balance == "capacity") {
    parts.try_emplace(StackPart::kExpertLoad, kBalancedLoad);
  } else if (run.load_balance == "natural" || run.load_balance == "aux") {
    parts.try_emplace(StackPart::kExpertLoad, kNaturalLoad);
  } else if (!run.load_balance.empty()) {
    return bad_input(fmt::format("load_balance '{}' is not modelled", run.load_balance));
  }
  if (run.recompute.starts_with(kModules)) {
    const PartRow& modules = row_of(StackPart::kRecomputeModules);
    const Result<std::int64_t> value =
        parse_value(modules, std::string_view(run.recompute).substr(kModules.size()));
    if (!value.ok()) return bad_input(fmt::format("recompute '{}' is not modelled", run.recompute));
    parts[StackPart::kRecomputeModules] = *value;
  }
  return parts;
}

Result<PartValues> with_engine(const PublishedRun& run, const RunEnvironment& environment,
                               const StackSpec& stack, PartValues parts) {
  const bool is_stated = parts.contains(StackPart::kDataParallelSync);
  if (is_stated || !stack.deepspeed_engine || !environment.by_names) return parts;
  TPSIM_TRY(const DType dtype,
            dtype_of(names_recipe(run.dtype) ? "bf16" : run.dtype, environment.dtype));
  TPSIM_TRY(const DType gradients, gradient_dtype_of(run, environment, stack, dtype));
  const bool in_fp32 = dtype == DType::kBFloat16 && gradients == DType::kFloat32;
  DataParallelSync sync = DataParallelSync::kAllReduce;
  if (in_fp32 && run.zero != "2" && run.zero != "3") sync = DataParallelSync::kBf16Optimizer;
  if (!in_fp32 && run.zero == "1") sync = DataParallelSync::kSlices;
  parts[StackPart::kDataParallelSync] = static_cast<std::int64_t>(sync);
  return parts;
}

Status check_stated(const PublishedRun& run) {
  for (const auto& [name, value] :
       {std::pair{"layers", run.layers}, std::pair{"hidden", run.hidden},
        std::pair{"heads", run.heads}, std::pair{"seq", run.seq}, std::pair{"tp", run.tp},
        std::pair{"pp", run.pp}, std::pair{"dp", run.dp},
        std::pair{"global_batch", run.global_batch}}) {
    if (value >= 1) continue;
    const bool has_name = std::string_view(name) == "layers" && !run.model.empty();
    return bad_input(
        fmt::format("the row does not state {}{}", name,
                    has_name ? ", and no known model of its sizes is called " + run.model : ""));
  }
  if (run.head_dim == 0 && run.hidden % run.heads != 0) {
    return bad_input(fmt::format("hidden {} is not divisible by {} heads: fill head_dim",
                                 run.hidden, run.heads));
  }
  return Ok{};
}

Result<Plan> plan_of(const PublishedRun& run, const RunEnvironment& environment,
                     const StackSpec& stack) {
  TPSIM_TRY_STATUS(check_stated(run));
  Plan plan;
  plan.degrees = {run.tp, run.pp, run.dp, stated_or(run.cp, 1)};
  plan.virtual_stages = virtual_stages_of(run, environment);
  if (plan.virtual_stages > 1) plan.schedule = ScheduleKind::kInterleaved;
  plan.micro_batch = stated_or(run.micro_batch, 1);
  plan.global_batch = run.global_batch;
  // Sequence parallelism requires tensor parallelism.
  plan.sequence_parallel = run.tp > 1 && run.sequence_parallel.value_or(
                                             environment.by_names ? stack.sequence_parallel
                                                                  : environment.sequence_parallel);
  // The ZeRO stage of a row that does not state it: the stack's default if the row's framework
  // selects the stack, else the environment's.
  const bool by_stack = environment.by_names && stack.default_zero >= 0;
  TPSIM_TRY(plan.zero, zero_of(run, stack, by_stack ? stack.default_zero : environment.zero));
  TPSIM_TRY_STATUS(set_recompute(plan, run.recompute));
  TPSIM_TRY(plan.attention, attention_of(stated_or(run.attention, environment.attention), stack));
  TPSIM_TRY(plan.dtype, dtype_of(names_recipe(run.dtype) ? "bf16" : run.dtype, environment.dtype));
  if (lacks_flash_kernel(stack, plan.dtype)) plan.attention = AttentionKind::kUnfused;
  TPSIM_TRY(plan.precision, precision_of(run, stack));
  TPSIM_TRY(plan.gradient_dtype, gradient_dtype_of(run, environment, stack, plan.dtype));
  const bool by_tensor =
      plan.precision == Precision::kFp8 || plan.precision == Precision::kFp8Current;
  plan.fp8_param_gather = by_tensor && stack.fp8_param_gather;
  for (const auto& [setting, text] : run.settings) {
    const Result<std::int64_t> value = parse_value(row_of(setting), text);
    if (!value.ok())
      return bad_input(fmt::format("{} '{}' is not modelled", name_of(setting), text));
    set(plan, {setting, *value});
  }
  TPSIM_TRY(plan.stage_layers, stages_of(run, environment, chunk_count(plan)));
  if (run.gpus > 0 && run.gpus != gpu_count(plan)) {
    return bad_input(
        fmt::format("the row states {} GPUs, but its layout needs {}", run.gpus, gpu_count(plan)));
  }
  return plan;
}

}  // namespace tpsim
