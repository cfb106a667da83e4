#include "evidence/runs/run_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/base/text.h"
#include "core/machine/node_rate.h"
#include "core/model/model_support.h"
#include "core/software/optimizer_kinds.h"
#include "evidence/runs/framework_name.h"
#include "evidence/runs/stated_words.h"
#include "evidence/runs/usual_machines.h"
#include "sim/step/usual_spreads.h"

namespace tpsim {
namespace {

// Names of AdamW in run tables besides kAdamNames, in lower case.
constexpr std::string_view kAdamImplementations =
    "adamw_torch adamw_torch_fused adamw_hf fused_adam fusedadam adam_fused deepspeedcpuadam";

bool is_priced_optimizer(const std::string& name) {
  return name.empty() || optimizer_called(name) != nullptr ||
         matches_any(in_lower_case(name), kAdamNames) ||
         matches_any(in_lower_case(name), kAdamImplementations);
}

std::vector<std::string> assumptions(const PublishedRun& run, const RunEnvironment& environment,
                                     const Scenario& scenario, bool states_network) {
  std::vector<std::string> assumed;
  if (!environment.by_names) return assumed;  // the environment states all values below
  const bool is_usual = scenario.cluster.name == environment.runs_on;
  if (!states_network && is_usual) assumed.push_back("network of " + scenario.cluster.name);
  assumed.push_back("software of stack " + scenario.stack.name);
  if (run.gradient_dtype.empty()) assumed.emplace_back("dtype of gradients");
  if (!is_priced_optimizer(run.optimizer)) assumed.push_back("adam instead of " + run.optimizer);
  if (run.attention.empty() && !run.parts.contains(StackPart::kAttentionKernel)) {
    assumed.emplace_back("flash attention");
  }
  const PartRow& kernel = row_of(StackPart::kAttentionKernel);
  if (scenario.stack.choices.parts.contains(kernel.part)) {
    assumed.push_back(
        fmt::format("attention kernel {}", text_of(kernel, kernel.get(scenario.stack))));
  }
  if (run.recompute.empty()) assumed.emplace_back("no recompute");
  if (run.virtual_stages > 1 && !run.settings.contains(Setting::kSchedule)) {
    assumed.emplace_back("the interleaved schedule");
  }
  if (has_recurrences(scenario.model))
    assumed.emplace_back("scan times computed from bytes and FLOPs");
  return assumed;
}

// Adds assumed sizes and the assumed ZeRO stage to the list of assumptions.
void add_sizes_assumed(std::vector<std::string>& assumed, const PublishedRun& stated,
                       const PublishedRun& run, const Plan& plan) {
  if (stated.seq == 0) assumed.push_back(fmt::format("sequences of {} tokens", run.seq));
  if (stated.micro_batch == 0) assumed.emplace_back("micro-batches of one sequence");
  if (stated.global_batch == 0) {
    assumed.push_back(fmt::format("batch of {} sequences", run.global_batch));
  }
  if (run.zero.empty() && has_replicas(plan)) assumed.push_back(fmt::format("ZeRO {}", plan.zero));
}

// Applies the row's node size and network rate. The rate is per node as the row counts nodes. Racks
// with one NVLink domain (over 16 GPUs) keep their size, since tables count their trays as nodes.
ClusterSpec cluster_of_row(ClusterSpec cluster, const PublishedRun& run, double node_gbps) {
  constexpr std::int64_t kLargestNode = 16;
  const std::int64_t own = cluster.gpus_per_node;
  const bool differs = run.gpus_per_node > 0 && run.gpus_per_node != own &&
                       run.gpus > run.gpus_per_node && own <= kLargestNode &&
                       run.gpus_per_node <= kLargestNode;
  if (differs) {
    cluster.nodes = cluster.nodes * own / run.gpus_per_node + 1;
    cluster.nics_per_node =
        std::max<std::int64_t>(1, cluster.nics_per_node * run.gpus_per_node / own);
    cluster.gpus_per_node = run.gpus_per_node;
  }
  return node_gbps > 0 ? with_node_rate(std::move(cluster), node_gbps) : cluster;
}

double gpus_of(const PublishedRun& run) {
  return static_cast<double>(stated_or(run.gpus, run.tp * run.pp * run.dp * stated_or(run.cp, 1)));
}

// Removes the limits of the stack. Limits describe what its launcher supports today, and the run
// took place. A violated limit is added to the assumptions.
void lift_limits(RunSetup& setup) {
  Scenario& scenario = setup.scenario;
  StackLimit limit = violated_limit(scenario.stack, scenario.model, setup.plan);
  if (!limit.reason.empty()) setup.assumed.push_back(std::move(limit.reason));
  scenario.stack = without_limits(std::move(scenario.stack));
}

// Whether the framework names a program whose training step the stack describes.
bool is_described(const StackSpec& stack, const std::string& framework) {
  if (stack.spread_programs.empty()) return true;
  std::string_view names = stack.spread_programs;
  while (!names.empty()) {
    const std::string name = in_lower_case(std::string(trimmed(cut_off(names, ","))));
    if (in_lower_case(framework).find(name) != std::string::npos) return true;
  }
  return false;
}

// Widens the stack's spreads for a run of a program that no stack describes.
void widen_for_other_program(StackSpec& stack) {
  stack.residual_spread = std::hypot(stack.residual_spread, stack.other_runs);
  stack.spread_gpus.clear();  // other_runs counts once
  stack.memory.spread = std::max(stack.memory.spread, kUncalibratedMemorySpread);
}

}  // namespace

RunLoader::RunLoader(Catalogue catalogue, std::vector<RunEnvironment> environments,
                     RunOverrides overrides)
    : catalogue_(std::move(catalogue)),
      models_(catalogue_),
      environments_(std::move(environments)),
      overrides_(std::move(overrides)) {
  fallback_.runs_on = overrides_.cluster;
  fallback_.by_names = true;
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
  std::vector<ClusterSpec> clusters;
  for (const std::string& name : catalogue_.list(CatalogueKind::kClusters)) {
    TPSIM_TRY(ClusterSpec cluster, catalogue_.load_cluster(name));
    profile_of_[name] = cluster.profile;
    clusters_called_.add(cluster.aliases, name);
    clusters.push_back(std::move(cluster));
  }
  std::vector<RunEnvironment> usual = usual_environments(clusters);
  std::move(usual.begin(), usual.end(), std::back_inserter(environments_));
  // Rows without a GPU may name a cluster of the catalogue. Names sort before their beginnings.
  for (auto entry = profile_of_.rbegin(); entry != profile_of_.rend(); ++entry) {
    RunEnvironment named;
    named.cluster = named.runs_on = entry->first;
    named.by_names = true;
    environments_.push_back(std::move(named));
  }
  return Ok{};
}

// Returns the cluster that the row names: by its name in the catalogue, or by an alias if its
// profile is that of the environment's cluster or a variant of it ("b200-simumax" of "b200").
// Otherwise returns the environment's cluster.
const std::string& RunLoader::cluster_of(const RunEnvironment& environment,
                                         const PublishedRun& run) {
  const bool is_entry = !run.cluster.empty() && profile_of_.contains(run.cluster);
  if (environment.by_names && is_entry) return run.cluster;
  const std::string& place = clusters_called_.called(run.cluster, month_of(run.date, "")).entry;
  const std::string& usual = profile_of_[environment.runs_on];
  const bool is_same = profile_of_[place] == usual || profile_of_[place].starts_with(usual + "-");
  const bool fits = environment.by_names && !place.empty() && is_same;
  return fits ? place : environment.runs_on;
}

const KnownNames::Found& RunLoader::stack_called(const PublishedRun& run) const {
  const FrameworkName framework = split_framework(run.framework);
  std::optional<int> zero = framework.zero;
  if (run.zero.size() == 1 && run.zero[0] >= '0' && run.zero[0] <= '3') zero = run.zero[0] - '0';
  return stacks_called_.called(framework.name, month_of(run.date, run.framework), zero, run.gpu,
                               run.model);
}

Result<const RunLoader::Machine*> RunLoader::machine(const RunEnvironment& environment,
                                                     const PublishedRun& run) {
  const auto chosen = [](const std::string& first, const std::string& second) {
    return first.empty() ? second : first;
  };
  const std::string cluster = chosen(overrides_.cluster, cluster_of(environment, run));
  const std::string usual =
      environment.by_names ? chosen(stack_called(run).entry, environment.stack) : environment.stack;
  const std::string stack = chosen(overrides_.stack, usual);
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

// Adds the parts by which the row's program differs from the stack, unless the row states them.
Status RunLoader::add_program_parts(const PublishedRun& run, PartValues& parts) const {
  const std::string& program = stack_called(run).parts;
  for (std::string_view left = program; !left.empty();) {
    std::string_view value = cut_off(left, "/");
    const std::string_view key = cut_off(value, "=");
    const auto row = std::find_if(part_rows().begin(), part_rows().end(),
                                  [&](const PartRow& known) { return known.key == key; });
    if (row == part_rows().end()) {
      return bad_input(fmt::format("the stacks' aliases name an unknown part '{}'", key));
    }
    TPSIM_TRY(const std::int64_t fact, parse_value(*row, value));
    parts.try_emplace(row->part, fact);
  }
  return Ok{};
}

PublishedRun RunLoader::completed(const PublishedRun& run) {
  PublishedRun all = with_degrees(models_.completed(with_usual_words(run)));
  const RunEnvironment* where = environment(all);
  if (all.vocab == 0 && where != nullptr) all.vocab = where->vocab;
  if (const auto zero = split_framework(run.framework).zero; all.zero.empty() && zero) {
    all.zero = std::to_string(*zero);
  }
  return with_usual_batch(std::move(all));
}

void RunLoader::set_spread(const PublishedRun& run, const RunEnvironment& where, bool is_known,
                           RunSetup& setup) const {
  StackSpec& stack = setup.scenario.stack;
  const bool names_program = is_known && is_described(stack, run.framework);
  if (is_known && !names_program) {
    setup.assumed.emplace_back("a program that its stack does not describe");
  }
  const SettingValue precision = setting_of(setup.plan, Setting::kPrecision);
  const bool is_other =
      !stack.choices.has(precision) || (overrides_.stack.empty() && !names_program);
  lift_limits(setup);
  stack.spread_programs.clear();  // `is_other` replaces it
  // The calibrated spread already covers such runs.
  if (stack.calibrated.rows > 0) return;
  if (is_other) widen_for_other_program(stack);
  double& spread = stack.residual_spread;
  const std::string& own = where.by_names ? stack_called(run).entry : where.stack;
  const bool foreign = !overrides_.stack.empty() && overrides_.stack != own;
  spread = std::hypot(spread, where.extra_spread, foreign ? kForeignSpread : 0.0);
}

Result<RunSetup> RunLoader::setup(const PublishedRun& stated) {
  if (!stated.unknown.empty()) return bad_input(stated.unknown);
  const PublishedRun run = completed(stated);
  const RunEnvironment* where = environment(run);
  if (where == nullptr) {
    return bad_input(fmt::format("unknown cluster '{}' with GPU '{}'; add --cluster NAME",
                                 run.cluster, run.gpu));
  }
  // An environment without a cluster only states, in `source`, why its rows are not predicted.
  if (where->runs_on.empty()) return bad_input(where->source);
  TPSIM_TRY_STATUS(check_stated(run));
  RunSetup setup;
  TPSIM_TRY(const Machine* machine, this->machine(*where, run));
  TPSIM_TRY(setup.stated_parts, parts_of(run, machine->stack));
  if (where->by_names && overrides_.stack.empty()) {
    TPSIM_TRY_STATUS(add_program_parts(run, setup.stated_parts));
  }
  for (const auto& [part, value] : setup.stated_parts) {
    setup.stack_parts[part] = row_of(part).get(machine->stack);
  }
  TPSIM_TRY(const PartValues parts, with_engine(run, *where, machine->stack, setup.stated_parts));
  const double asked = overrides_.node_gbps;
  const double leaves = asked > 0 ? asked : run.node_gbps.value_or(0);
  std::optional<ModelSpec> model = models_.of(run);
  if (!model) {
    model = model_of(run, *where);
    models_.set_activation(run, *model);
  }
  setup.scenario = {*std::move(model), cluster_of_row(machine->cluster, run, leaves),
                    machine->profile, with_parts(machine->stack, parts)};
  Bytes& memory = setup.scenario.profile.device.memory;
  if (where->by_names) memory = smaller_memory(run.gpu, memory).value_or(memory);
  TPSIM_TRY_STATUS(check_plannable(setup.scenario.model));
  TPSIM_TRY(setup.plan, plan_of(run, *where, setup.scenario.stack));
  // Tables also state expert tensor parallelism 1 for dense models, which have none.
  if (std::int64_t& etp = setup.plan.degrees.etp; !has_experts(setup.scenario.model) && etp == 1) {
    etp = 0;
  }
  const DType operands = product_dtype(setup.plan);
  if (is_narrow(operands) && matrix_peak(machine->profile.device, operands) <= FlopsPerSecond()) {
    return bad_input(fmt::format("profile {} has no GEMM rate for {}", machine->profile.name,
                                 name_of(operands)));
  }
  setup.assumed = assumptions(stated, *where, setup.scenario, leaves > 0);
  add_sizes_assumed(setup.assumed, stated, run, setup.plan);
  const bool is_unknown = where->by_names && stack_called(run).entry.empty();
  if (is_unknown && !run.framework.empty()) {
    setup.assumed.push_back("unknown framework " + run.framework);
  }
  if (stated.layers == 0 || stated.hidden == 0) setup.assumed.push_back("sizes of " + run.model);
  set_spread(run, *where, !is_unknown, setup);
  setup.applied_parts = parts;
  return setup;
}

namespace {

// FLOPs of a step that repeats the forward pass of everything but the head: Narayanan et al. 2021,
// arXiv 2104.04473, eq. 3, for any model.
Flops full_recompute_flops(const ModelSpec& model, std::int64_t global_batch) {
  const auto heads = static_cast<double>(1 + model.ends.prediction_layers);
  const double logits = 2.0 * static_cast<double>(global_batch * model.seq) *
                        static_cast<double>(model.hidden) * static_cast<double>(model.vocab);
  return 4.0 / 3 * model_flops_per_step(model, global_batch) - Flops(heads * logits);
}

}  // namespace

Result<Seconds> measured_step(const PublishedRun& run, const ModelSpec& model) {
  if (run.step_s && *run.step_s > 0) return Seconds(*run.step_s);
  const double gpus = gpus_of(run);
  if (gpus == 0 && (run.tokens_per_s_per_gpu || run.hardware_tflops_per_gpu)) {
    return bad_input(
        "the row states a speed per GPU, but not how many GPUs: fill gpus, or tp, pp and dp");
  }
  if (run.tokens_per_s_per_gpu && *run.tokens_per_s_per_gpu > 0) {
    const auto tokens = static_cast<double>(run.global_batch * run.seq);
    return Seconds(tokens / (*run.tokens_per_s_per_gpu * gpus));
  }
  const double hardware = run.hardware_tflops_per_gpu.value_or(0) * 1e12 * gpus;
  const double stated = run.model_tflops_per_gpu.value_or(0) * 1e12 * gpus;
  // Hardware FLOPs include recompute, and sources agree on their definition only for full
  // recompute.
  if (hardware > 0 && run.recompute == name_of(Recompute::kFull)) {
    return Seconds(full_recompute_flops(model, run.global_batch).value() / hardware);
  }
  if (stated > 0) {
    return Seconds(half_mask_flops_per_step(model, run.global_batch).value() / stated);
  }
  return bad_input(
      hardware > 0
          ? "the row states only hardware TFLOP/s, which tpsim converts to a step time only for "
            "full recompute"
          : "the row states neither step time nor speed");
}

}  // namespace tpsim
