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
  if (run.recompute.empty()) assumed.emplace_back("no recompute");
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
  std::ranges::move(usual_environments(clusters), std::back_inserter(environments_));
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
  const std::string& place = clusters_called_.called(run.cluster, month_of(run.date, ""));
  const std::string& usual = profile_of_[environment.runs_on];
  const bool is_same = profile_of_[place] == usual || profile_of_[place].starts_with(usual + "-");
  const bool fits = environment.by_names && !place.empty() && is_same;
  return fits ? place : environment.runs_on;
}

const std::string& RunLoader::stack_called(const PublishedRun& run) const {
  const FrameworkName framework = split_framework(run.framework);
  std::optional<int> zero = framework.zero;
  if (run.zero.size() == 1 && run.zero[0] >= '0' && run.zero[0] <= '3') zero = run.zero[0] - '0';
  return stacks_called_.called(framework.name, month_of(run.date, run.framework), zero, run.gpu);
}

Result<const RunLoader::Machine*> RunLoader::machine(const RunEnvironment& environment,
                                                     const PublishedRun& run) {
  const auto chosen = [](const std::string& first, const std::string& second) {
    return first.empty() ? second : first;
  };
  const std::string cluster = chosen(overrides_.cluster, cluster_of(environment, run));
  const std::string usual =
      environment.by_names ? chosen(stack_called(run), environment.stack) : environment.stack;
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

PublishedRun RunLoader::completed(const PublishedRun& run) {
  PublishedRun all = with_degrees(models_.completed(with_usual_words(run)));
  const RunEnvironment* where = environment(all);
  if (all.vocab == 0 && where != nullptr) all.vocab = where->vocab;
  if (const auto zero = split_framework(run.framework).zero; all.zero.empty() && zero) {
    all.zero = std::to_string(*zero);
  }
  return with_usual_batch(std::move(all));
}

Result<RunSetup> RunLoader::setup(const PublishedRun& stated) {
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
  const bool is_unknown = where->by_names && !run.framework.empty() && stack_called(run).empty();
  if (is_unknown) setup.assumed.push_back("unknown framework " + run.framework);
  if (stated.layers == 0 || stated.hidden == 0) setup.assumed.push_back("sizes of " + run.model);
  lift_limits(setup);
  setup.applied_parts = parts;
  // The calibrated spread already covers such runs.
  if (setup.scenario.stack.calibrated.rows > 0) return setup;
  double& spread = setup.scenario.stack.residual_spread;
  const std::string& own = where->by_names ? stack_called(run) : where->stack;
  const bool foreign = !overrides_.stack.empty() && overrides_.stack != own;
  spread = std::hypot(spread, where->extra_spread, foreign ? kForeignSpread : 0.0);
  return setup;
}

std::optional<Seconds> step_of_model_flops(const PublishedRun& run, const ModelSpec& model) {
  if (!run.model_tflops_per_gpu || *run.model_tflops_per_gpu <= 0) return std::nullopt;
  const Flops flops = half_mask_flops_per_step(model, run.global_batch);
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
    return bad_input("the row states neither step time nor speed");
  }
  // Hardware FLOPs include recompute, and sources agree on their definition only for full
  // recompute.
  if (run.recompute != name_of(Recompute::kFull)) {
    return bad_input(
        "the row states only hardware TFLOP/s, which tpsim converts to a step time only for full "
        "recompute");
  }
  const auto h = static_cast<double>(run.hidden), s = static_cast<double>(run.seq);
  const auto l = static_cast<double>(run.layers);
  const auto v = static_cast<double>(stated_or(run.vocab, kUsualVocabulary));
  // FLOPs of a step with full recompute, from Narayanan et al. 2021, arXiv 2104.04473, eq. 3.
  const double flops = 96 * tokens * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  return Seconds(flops / (*run.hardware_tflops_per_gpu * 1e12 * gpus));
}

}  // namespace tpsim
