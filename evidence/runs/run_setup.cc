#include "evidence/runs/run_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/machine/node_rate.h"
#include "core/model/model_support.h"
#include "core/plan/pipeline_layout.h"
#include "sim/step/usual_spreads.h"

namespace tpsim {
namespace {

// Before the modules that Megatron-Core's selective recompute is given.
constexpr std::string_view kModules = "mod:";
constexpr std::string_view kUnstatedModules = "mod";
constexpr const char* kOwnZeroOne = "BF16_Optimizer";

Error cannot(std::string reason) { return bad_input(std::move(reason)); }

Result<DType> dtype_of(const std::string& text, DType otherwise) {
  if (text.empty()) return otherwise;
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    if (text == name_of(dtype)) return dtype;
  }
  return cannot(fmt::format("dtype {} is not modelled", text));
}

// Half-precision training adds gradients up in its own dtype where nothing else is said, bf16
// training in what its software does.
Result<DType> gradient_dtype_of(const PublishedRun& run, const RunEnvironment& environment,
                                const StackSpec& stack, DType dtype) {
  return dtype_of(stated_or(run.gradient_dtype, environment.gradient_dtype),
                  dtype == DType::kBFloat16 ? stack.gradient_dtype : dtype);
}

// A table of runs says whether Transformer Engine's userbuffers were on.
Result<std::int64_t> tensor_overlap_of(const StackSpec& stack, const std::string& text) {
  if (text == "1") return static_cast<std::int64_t>(TpOverlap::kUserbuffers);
  if (text != "0") return parse_value(row_of(StackPart::kTpOverlap), text);
  const TpOverlap own = stack.parts.tp_overlap;
  const bool in_pieces = own == TpOverlap::kUserbuffers;
  return static_cast<std::int64_t>(in_pieces ? TpOverlap::kBackward : own);
}

Result<PartValues> parts_of(const PublishedRun& run, const StackSpec& stack) {
  PartValues parts;
  for (const auto& [part, text] : run.parts) {
    const Result<std::int64_t> value = part == StackPart::kTpOverlap
                                           ? tensor_overlap_of(stack, text)
                                           : parse_value(row_of(part), text);
    if (!value.ok()) return cannot(fmt::format("{} '{}' is not modelled", row_of(part).key, text));
    parts[part] = *value;
  }
  // Capacities pad or cut every expert's share to the same.
  if (run.load_balance == "forced" || run.load_balance == "capacity") {
    parts.try_emplace(StackPart::kExpertLoad, kBalancedLoad);
  } else if (run.load_balance == "natural" || run.load_balance == "aux") {
    parts.try_emplace(StackPart::kExpertLoad, kNaturalLoad);
  } else if (!run.load_balance.empty()) {
    return cannot(fmt::format("load_balance '{}' is not modelled", run.load_balance));
  }
  if (run.recompute.starts_with(kModules)) {
    const PartRow& modules = row_of(StackPart::kRecomputeModules);
    const Result<std::int64_t> value =
        parse_value(modules, std::string_view(run.recompute).substr(kModules.size()));
    if (!value.ok()) return cannot(fmt::format("recompute '{}' is not modelled", run.recompute));
    parts[StackPart::kRecomputeModules] = *value;
  }
  return parts;
}

// A table's dtype of fewer than 16 bits: that of the linear layers, all else as in bf16 training.
bool names_recipe(const std::string& dtype) {
  return dtype == "fp8" || dtype == "mxfp8" || dtype == "nvfp4";
}

// See StackSpec::deepspeed_engine.
Result<PartValues> with_engine(const PublishedRun& run, const RunEnvironment& environment,
                               const StackSpec& stack, PartValues parts) {
  const bool is_stated = parts.contains(StackPart::kDataParallelSync);
  if (is_stated || !stack.deepspeed_engine || environment.default_stack.empty()) return parts;
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

// What "fp8" alone means: scales of steps before, Transformer Engine's usual recipe, where the
// software has it, else the first recipe of 8 bits that it has.
Precision usual_recipe(const StackSpec& stack) {
  for (const Precision recipe : {Precision::kFp8, Precision::kFp8Current, Precision::kFp8Block}) {
    if (stack.choices.has({Setting::kPrecision, static_cast<std::int64_t>(recipe)})) return recipe;
  }
  return Precision::kFp8;
}

// The recipe by the dtype and the column of that name.
Result<Precision> precision_of(const PublishedRun& run, const StackSpec& stack) {
  const std::string& recipe = run.precision_recipe;
  if (!names_recipe(run.dtype)) {
    if (recipe.empty() || recipe == "none") return Precision::kNone;
    return cannot(fmt::format("precision_recipe {} with dtype {}", recipe, run.dtype));
  }
  if (run.dtype != "fp8" && !recipe.empty() && recipe != run.dtype) {
    return cannot(fmt::format("precision_recipe {} with dtype {}", recipe, run.dtype));
  }
  if (run.dtype == "fp8" && recipe.empty()) return usual_recipe(stack);
  const std::string& words = recipe.empty() ? run.dtype : recipe;
  for (const auto& [word, precision] :
       {std::pair{"delayed", Precision::kFp8}, std::pair{"current", Precision::kFp8Current},
        std::pair{"block", Precision::kFp8Block}, std::pair{"mxfp8", Precision::kMxFp8},
        std::pair{"nvfp4", Precision::kNvFp4}}) {
    if (words == word) return precision;
  }
  return cannot(fmt::format("precision_recipe '{}' is not modelled", words));
}

Result<int> zero_of(const PublishedRun& run, const StackSpec& stack, int otherwise) {
  // DeepSpeed's bf16 optimizer calls itself stage 0 and shards its state all the same.
  if (stack.parts.sync == DataParallelSync::kBf16Optimizer) return 1;
  if (run.zero.empty()) return otherwise;
  if (run.zero.find(kOwnZeroOne) != std::string::npos) return 1;
  if (run.zero.size() == 1 && run.zero[0] >= '0' && run.zero[0] <= '3') return run.zero[0] - '0';
  return cannot(fmt::format("ZeRO stage '{}' is not known", run.zero));
}

// "full", "blocks:3"; nothing stated: none.
Status set_recompute(Plan& plan, const std::string& text) {
  const bool by_modules = text.starts_with(kModules) || text == kUnstatedModules;
  plan.recompute = by_modules ? Recompute::kSelective : Recompute::kNone;
  if (text.empty() || plan.recompute == Recompute::kSelective) return Ok{};
  const Result<std::vector<SettingValue>> values = parse_settings("recompute=" + text);
  if (!values.ok()) return cannot(fmt::format("recompute '{}' is not modelled", text));
  if (const SettingRow& row = row_of(values->front().setting); row.counts_for != nullptr) {
    set(plan, *row.counts_for);
  }
  set(plan, values->front());
  return Ok{};
}

bool writes_scores(AttentionKernel kernel) {
  return kernel == AttentionKernel::kTorch || kernel == AttentionKernel::kFusedSoftmax;
}

Result<AttentionKind> attention_of(const std::string& text, const StackSpec& stack) {
  if (writes_scores(stack.parts.attention)) return AttentionKind::kUnfused;
  if (text.empty() || text == name_of(AttentionKind::kFlash)) return AttentionKind::kFlash;
  if (text == name_of(AttentionKind::kUnfused)) return AttentionKind::kUnfused;
  return cannot(fmt::format("attention '{}' is not modelled", text));
}

std::int64_t virtual_stages_of(const PublishedRun& run, const RunEnvironment& environment) {
  if (run.virtual_stages > 0) return run.virtual_stages;
  const std::int64_t blocks_of_stages = environment.blocks_per_chunk * run.pp;
  if (run.pp == 1 || blocks_of_stages == 0 || run.layers % blocks_of_stages != 0) return 1;
  return run.layers / blocks_of_stages;
}

Status check_stated(const PublishedRun& run) {
  for (const auto& [name, value] :
       {std::pair{"layers", run.layers}, std::pair{"hidden", run.hidden},
        std::pair{"heads", run.heads}, std::pair{"seq", run.seq}, std::pair{"tp", run.tp},
        std::pair{"pp", run.pp}, std::pair{"dp", run.dp},
        std::pair{"global_batch", run.global_batch}}) {
    if (value < 1) return cannot(fmt::format("{} is not stated", name));
  }
  if (run.head_dim == 0 && run.hidden % run.heads != 0) {
    return cannot(fmt::format("hidden {} does not divide by {} heads", run.hidden, run.heads));
  }
  return Ok{};
}

std::vector<std::string> assumptions(const PublishedRun& run, const RunEnvironment& environment,
                                     const Scenario& scenario, bool states_network) {
  std::vector<std::string> assumed;
  // An entry of its own says where its source states all that.
  if (environment.default_stack.empty()) return assumed;
  const bool is_usual = scenario.cluster.name == environment.runs_on;
  if (!states_network && is_usual) assumed.push_back("network of " + scenario.cluster.name);
  assumed.push_back("software of stack " + scenario.stack.name);
  if (run.gradient_dtype.empty()) assumed.emplace_back("dtype of gradients");
  if (!run.optimizer.empty() && run.optimizer != "adam" && run.optimizer != "adamw") {
    assumed.push_back("adam in place of " + run.optimizer);
  }
  if (run.micro_batch == 0) assumed.emplace_back("micro-batches of one sequence");
  if (run.attention.empty() && !run.parts.contains(StackPart::kAttentionKernel)) {
    assumed.emplace_back("flash attention");
  }
  if (run.recompute.empty()) assumed.emplace_back("no recompute");
  if (has_recurrences(scenario.model)) assumed.emplace_back("scans by their bytes and FLOPs");
  return assumed;
}

double gpus_of(const PublishedRun& run) {
  return static_cast<double>(stated_or(run.gpus, run.tp * run.pp * run.dp * stated_or(run.cp, 1)));
}

// What was run could be run: a stack's limits say what its launcher offers today.
void lift_limits(RunSetup& setup) {
  Scenario& scenario = setup.scenario;
  StackLimit limit = violated_limit(scenario.stack, scenario.model, setup.plan);
  if (!limit.reason.empty()) setup.assumed.push_back(std::move(limit.reason));
  scenario.stack = without_limits(std::move(scenario.stack));
}

Result<std::vector<std::int64_t>> stages_of(const PublishedRun& run,
                                            const RunEnvironment& environment,
                                            std::int64_t chunks) {
  if (run.layout.empty()) {
    std::vector<std::int64_t> even = even_stage_layers(
        run.layers, chunks,
        run.stage_split.find("embedding") != std::string::npos || environment.embedding_counts);
    if (even.empty()) return cannot("the stages cannot be cut as stated");
    return even;
  }
  const std::optional<PipelineLayout> layout = parse_pipeline_layout(run.layout);
  const bool fits =
      layout && static_cast<std::int64_t>(layout->blocks.size()) == chunks &&
      std::accumulate(layout->blocks.begin(), layout->blocks.end(), std::int64_t{0}) == run.layers;
  if (!fits) {
    return cannot(fmt::format("layout '{}' is no cut of {} blocks into {} chunks", run.layout,
                              run.layers, chunks));
  }
  return layout->blocks;
}

}  // namespace

Result<Plan> plan_of(const PublishedRun& run, const RunEnvironment& environment,
                     const StackSpec& stack) {
  TPSIM_TRY_STATUS(check_stated(run));
  Plan plan;
  plan.degrees = {run.tp, run.pp, run.dp, stated_or(run.cp, 1)};
  plan.virtual_stages = virtual_stages_of(run, environment);
  if (plan.virtual_stages > 1) plan.schedule = ScheduleKind::kInterleaved;
  plan.micro_batch = stated_or(run.micro_batch, 1);
  plan.global_batch = run.global_batch;
  // Without a tensor group there is nothing to shard norms over.
  plan.sequence_parallel =
      run.tp > 1 && run.sequence_parallel.value_or(environment.sequence_parallel);
  TPSIM_TRY(plan.zero, zero_of(run, stack, environment.zero));
  TPSIM_TRY_STATUS(set_recompute(plan, run.recompute));
  TPSIM_TRY(plan.attention, attention_of(stated_or(run.attention, environment.attention), stack));
  TPSIM_TRY(plan.dtype, dtype_of(names_recipe(run.dtype) ? "bf16" : run.dtype, environment.dtype));
  TPSIM_TRY(plan.precision, precision_of(run, stack));
  TPSIM_TRY(plan.gradient_dtype, gradient_dtype_of(run, environment, stack, plan.dtype));
  const bool by_tensor =
      plan.precision == Precision::kFp8 || plan.precision == Precision::kFp8Current;
  plan.fp8_param_gather = by_tensor && stack.fp8_param_gather;
  for (const auto& [setting, text] : run.settings) {
    const Result<std::int64_t> value = parse_value(row_of(setting), text);
    if (!value.ok()) return cannot(fmt::format("{} '{}' is not modelled", name_of(setting), text));
    set(plan, {setting, *value});
  }
  TPSIM_TRY(plan.stage_layers, stages_of(run, environment, chunk_count(plan)));
  if (run.gpus > 0 && run.gpus != gpu_count(plan)) {
    return cannot(
        fmt::format("{} GPUs are stated, the layout takes {}", run.gpus, gpu_count(plan)));
  }
  return plan;
}

RunLoader::RunLoader(Catalogue catalogue, std::vector<RunEnvironment> environments,
                     RunOverrides overrides)
    : catalogue_(std::move(catalogue)),
      models_(catalogue_),
      environments_(std::move(environments)),
      overrides_(std::move(overrides)) {
  fallback_.runs_on = overrides_.cluster;
  names_status_ = learn_names();
}

const RunEnvironment* RunLoader::environment(const PublishedRun& run) const {
  const RunEnvironment* found = environment_of(environments_, run);
  return found != nullptr || fallback_.runs_on.empty() ? found : &fallback_;
}

Status RunLoader::learn_names() {
  for (const std::string& name : catalogue_.list(CatalogueKind::kStacks)) {
    TPSIM_TRY(const StackSpec stack, catalogue_.load_stack(name));
    stacks_called_.add(stack.aliases, name);
  }
  for (const std::string& name : catalogue_.list(CatalogueKind::kClusters)) {
    TPSIM_TRY(const ClusterSpec cluster, catalogue_.load_cluster(name));
    profile_of_[name] = cluster.profile;
    clusters_called_.add(cluster.aliases, name);
  }
  return Ok{};
}

// A place that the row names, where its GPUs are those of the usual one.
const std::string& RunLoader::cluster_of(const RunEnvironment& environment,
                                         const PublishedRun& run) {
  const std::string& place = clusters_called_.called(run.cluster, month_of(run.date, ""));
  const bool fits = !environment.default_stack.empty() && !place.empty() &&
                    profile_of_[place] == profile_of_[environment.runs_on];
  return fits ? place : environment.runs_on;
}

Result<const RunLoader::Machine*> RunLoader::machine(const RunEnvironment& environment,
                                                     const PublishedRun& run) {
  const auto chosen = [](const std::string& first, const std::string& second) {
    return first.empty() ? second : first;
  };
  const std::string cluster = chosen(overrides_.cluster, cluster_of(environment, run));
  const std::string usual =
      environment.default_stack.empty()
          ? environment.stack
          : chosen(stacks_called_.called(run.framework, month_of(run.date, run.framework)),
                   environment.default_stack);
  const std::string stack = chosen(overrides_.stack, chosen(environment.stack, usual));
  std::unique_ptr<Machine>& slot = machines_[cluster + "\n" + stack];
  if (slot == nullptr) {
    auto loaded = std::make_unique<Machine>();
    TPSIM_TRY(loaded->cluster, catalogue_.load_cluster(cluster));
    TPSIM_TRY(loaded->stack, catalogue_.load_stack(chosen(stack, loaded->cluster.stack)));
    TPSIM_TRY(loaded->profile,
              catalogue_.load_profile(chosen(overrides_.profile, loaded->cluster.profile)));
    slot = std::move(loaded);
  }
  return static_cast<const Machine*>(slot.get());
}

PublishedRun RunLoader::completed(const PublishedRun& run) {
  PublishedRun all = with_degrees(models_.completed(run));
  const RunEnvironment* where = environment(all);
  if (all.vocab == 0 && where != nullptr) all.vocab = where->vocab;
  return all;
}

Result<RunSetup> RunLoader::setup(const PublishedRun& stated) {
  const PublishedRun run = completed(stated);
  const RunEnvironment* where = environment(run);
  if (where == nullptr) {
    return cannot(
        fmt::format("no environment is known for cluster '{}', GPU '{}'; --cluster names one",
                    run.cluster, run.gpu));
  }
  // An environment without a cluster is there to say why its rows are not predicted.
  if (where->runs_on.empty()) return cannot(where->source);
  TPSIM_TRY_STATUS(check_stated(run));
  RunSetup setup;
  TPSIM_TRY(const Machine* machine, this->machine(*where, run));
  TPSIM_TRY(setup.stated_parts, parts_of(run, machine->stack));
  // Where the row does not say.
  setup.stated_parts.insert(where->parts.begin(), where->parts.end());
  TPSIM_TRY(const PartValues parts, with_engine(run, *where, machine->stack, setup.stated_parts));
  const double asked = overrides_.node_gbps;
  const double leaves = asked > 0 ? asked : run.node_gbps.value_or(0);
  std::optional<ModelSpec> named = models_.of(run);
  setup.scenario = {named ? *std::move(named) : model_of(run, *where),
                    leaves > 0 ? with_node_rate(machine->cluster, leaves) : machine->cluster,
                    machine->profile, with_parts(machine->stack, parts)};
  TPSIM_TRY_STATUS(check_plannable(setup.scenario.model));
  TPSIM_TRY(setup.plan, plan_of(run, *where, setup.scenario.stack));
  // Tables state it of dense models too.
  if (std::int64_t& etp = setup.plan.degrees.etp; !has_experts(setup.scenario.model) && etp == 1) {
    etp = 0;
  }
  const DType operands = product_dtype(setup.plan);
  if (is_narrow(operands) && matrix_peak(machine->profile.device, operands) <= FlopsPerSecond()) {
    return cannot(fmt::format("{} has no rate for {}", machine->profile.name, name_of(operands)));
  }
  // Tables with an entry of their own calibrate software, or show how far it is off without that.
  const bool is_calibrated = setup.scenario.stack.calibrated.rows > 0;
  if (where != &fallback_ && where->default_stack.empty() && !is_calibrated) {
    setup.scenario.stack.uncalibrated_overhead = 0;
  }
  setup.assumed = assumptions(run, *where, setup.scenario, leaves > 0);
  if (stated.layers == 0 || stated.hidden == 0) setup.assumed.push_back("sizes of " + run.model);
  lift_limits(setup);
  setup.applied_parts = parts;
  if (is_calibrated) return setup;  // its spread is that of such runs
  double& spread = setup.scenario.stack.residual_spread;
  const bool foreign = !overrides_.stack.empty() && overrides_.stack != where->stack;
  spread = std::hypot(spread, where->extra_spread, foreign ? kForeignSpread : 0.0);
  return setup;
}

std::optional<Seconds> step_of_model_flops(const PublishedRun& run, const ModelSpec& model) {
  if (!run.model_tflops_per_gpu || *run.model_tflops_per_gpu <= 0) return std::nullopt;
  const auto batch = static_cast<double>(run.global_batch);
  // Megatron counts causal attention by half.
  const Flops unseen = 1.5 * batch * attention_core_forward_flops(model);
  const Flops flops = model_flops_per_step(model, run.global_batch) - unseen;
  return Seconds(flops.value() / (*run.model_tflops_per_gpu * 1e12 * gpus_of(run)));
}

Result<Seconds> measured_step(const PublishedRun& run) {
  if (run.step_s && *run.step_s > 0) return Seconds(*run.step_s);
  const auto tokens = static_cast<double>(run.global_batch * run.seq);
  const double gpus = gpus_of(run);
  if (run.tokens_per_s_per_gpu && *run.tokens_per_s_per_gpu > 0) {
    return Seconds(tokens / (*run.tokens_per_s_per_gpu * gpus));
  }
  if (!run.hardware_tflops_per_gpu || *run.hardware_tflops_per_gpu <= 0) {
    return cannot("neither time nor speed is stated");
  }
  // What a source counts as hardware FLOPs is agreed upon for full recompute alone.
  if (run.recompute != name_of(Recompute::kFull)) {
    return cannot("only hardware TFLOPs are stated, and not of full recompute");
  }
  const auto h = static_cast<double>(run.hidden), s = static_cast<double>(run.seq);
  const auto l = static_cast<double>(run.layers);
  const auto v = static_cast<double>(stated_or(run.vocab, kUsualVocabulary));
  // Narayanan et al. 2021, arXiv 2104.04473: FLOPs of a step with full recompute.
  const double flops = 96 * tokens * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  return Seconds(flops / (*run.hardware_tflops_per_gpu * 1e12 * gpus));
}

}  // namespace tpsim
