#include "sim/step/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/normal.h"
#include "core/plan/rank_layout.h"
#include "costs/scan_model.h"
#include "sim/layers/expert_prices.h"
#include "sim/layers/low_precision.h"
#include "sim/layers/recomputed_ops.h"
#include "sim/step/predict.h"
#include "sim/step/terms.h"
#include "sim/step/usual_spreads.h"

namespace tpsim {
namespace {

// The group over which a term's collectives run; nothing where they are not most of the term.
std::optional<GroupKind> group_of(StepTerm term) {
  switch (term) {
    case StepTerm::kTensorCommunication: return GroupKind::kTensor;
    case StepTerm::kZeroCommunication:
    case StepTerm::kGradientReduction:
    case StepTerm::kWeightGather: return GroupKind::kData;
    case StepTerm::kContextCommunication: return GroupKind::kContext;
    case StepTerm::kExpertCommunication: return GroupKind::kExpert;
    case StepTerm::kTransfer: return GroupKind::kPipeline;
    case StepTerm::kTiedEmbedding: return GroupKind::kEmbedding;
    default: return std::nullopt;
  }
}

// Shares of the step, each uncertain for a reason of its own.
struct UncertainShares {
  double host = 0;     // the device waits for the host
  double network = 0;  // exposed collectives of groups that span nodes
  double kernels = 0;  // kernels that are not the profile's: one factor of the stack stands for all
  double experts = 0;  // grouped GEMMs, permutation, imbalance; dispatch inside a node
  double scans = 0;    // kernels of recurrences
};

using UncertainShare = double UncertainShares::*;

// The share that a term belongs to, where no network between nodes carries the term; null: the
// term is as certain as the prices of its ops.
UncertainShare share_within_nodes(StepTerm term, const StackSpec& stack, const Plan& plan) {
  switch (term) {
    case StepTerm::kHostWait:
    case StepTerm::kHostStep: return &UncertainShares::host;
    case StepTerm::kAttention:
      return stack.flash_speed != 1 && plan.attention == AttentionKind::kFlash
                 ? &UncertainShares::kernels
                 : nullptr;
    case StepTerm::kElementwise:
      return stack.eager_traffic != 1 ? &UncertainShares::kernels : nullptr;
    case StepTerm::kRecurrence: return &UncertainShares::scans;
    case StepTerm::kGroupedProducts:
    case StepTerm::kPermute:
    case StepTerm::kExpertCommunication:
    case StepTerm::kImbalance: return &UncertainShares::experts;
    case StepTerm::kMatmul:
    case StepTerm::kTensorCommunication:
    case StepTerm::kZeroCommunication:
    case StepTerm::kContextCommunication:
    case StepTerm::kTransfer:
    case StepTerm::kBubble:
    case StepTerm::kGradientReduction:
    case StepTerm::kTiedEmbedding:
    case StepTerm::kClipping:
    case StepTerm::kOptimizer:
    case StepTerm::kWeightGather:
    case StepTerm::kStragglers:
    case StepTerm::kUncalibratedOverhead: return nullptr;
  }
  return nullptr;
}

// A term counts in one share at most.
UncertainShares uncertain_shares(const Scenario& scenario, const Plan& plan, const StepCost& cost) {
  const std::int64_t node = node_size(scenario.cluster, gpu_count(plan));
  UncertainShares shares;
  for (const StepTerm term : kStepTerms) {
    const std::optional<GroupKind> group = group_of(term);
    const bool spans_nodes = group && place_group(plan, *group, node).nodes > 1;
    const UncertainShare share =
        spans_nodes ? &UncertainShares::network : share_within_nodes(term, scenario.stack, plan);
    if (share != nullptr) shares.*share += std::max(0.0, cost.terms[term] / cost.step);
  }
  return shares;
}

// Relative standard deviation of a prediction: how well the stack's calibration rows were met
// (tools/interval_spreads.py), how much runs differ among themselves, and what of this step hangs
// on prices far from measured ones, on the host, and on the network between nodes.
double relative_spread(const Scenario& scenario, const Plan& plan, const StepCost& cost,
                       const Sources& sources) {
  constexpr double kModelSpread = 0.05;         // prices from constants, one device constant off
  constexpr double kDatasheetSpread = 0.12;     // from those of a sibling, or judged
  constexpr double kInterpolatedSpread = 0.02;  // between measured entries
  constexpr double kExpertSpread = 0.15;        // kernels and dispatchers of a release
  const double model_spread =
      scenario.profile.model.provenance == Provenance::kDatasheet ? kDatasheetSpread : kModelSpread;
  const UncertainShares shares = uncertain_shares(scenario, plan, cost);
  const CalibrationFacts& software = scenario.stack.calibrated;
  const CalibrationFacts& network = scenario.cluster.calibrated;
  double variance = 0;
  for (const double spread :
       {scenario.stack.run_spread, scenario.stack.residual_spread,
        sources.model * model_spread + sources.interpolated_entries * kInterpolatedSpread,
        shares.host * (software.rows > 0 ? software.host_spread : kHostSpread),
        shares.network * (network.rows > 0 ? network.network_spread : kNetworkSpread),
        shares.kernels * (software.rows > 0 ? software.kernel_spread : kKernelSpread),
        shares.experts * kExpertSpread, shares.scans * kScanSpread}) {
    variance += spread * spread;
  }
  return std::sqrt(variance);
}

Sources sources_of(const StepCost& cost) {
  Seconds all;
  for (const Seconds time : cost.by_source) all += time;
  if (all <= Seconds()) return {};
  return {cost.by_source[PriceSource::kExact] / all,
          cost.by_source[PriceSource::kInterpolated] / all,
          cost.by_source[PriceSource::kModel] / all};
}

void add_rates(Prediction& p, const Scenario& scenario, const Plan& plan) {
  const double gpus = static_cast<double>(gpu_count(plan));
  const Flops model = model_flops_per_step(scenario.model, plan.global_batch);
  const Flops hardware = model + recomputed_flops(scenario.model, scenario.stack.parts, plan);
  const FlopsPerSecond model_rate = model / p.step / gpus;
  p.model_tflops_per_gpu = model_rate.value() * 1e-12;
  p.hardware_tflops_per_gpu = (hardware / p.step).value() / gpus * 1e-12;
  const DType operands = product_dtype(plan);
  const DeviceFacts& device = scenario.profile.device;
  p.mfu = model_rate / (is_narrow(operands) ? matrix_peak(device, operands) : device.matmul_peak);
  p.tokens_per_s = static_cast<double>(plan.global_batch * scenario.model.seq) / p.step.value();
}

void add_memory(Prediction& p, const Scenario& scenario, const Plan& plan, const PlanCosts& costs) {
  p.capacity = scenario.profile.device.memory;
  p.memory = memory_by_stage(scenario.stack, plan, costs);
  for (const StageMemory& stage : p.memory) p.peak = std::max(p.peak, stage.total());
  p.p_oom = probability_of_oom(scenario, p.peak);
  for (const StageCost& stage : costs.stages) {
    p.host_memory =
        std::max(p.host_memory, host_memory_of_node(scenario.cluster, plan, stage.host));
  }
  p.host_capacity = scenario.cluster.host.memory;
  if (p.host_memory > p.host_capacity) p.p_oom = 1;
}

Status check_against_cluster(const Scenario& scenario, const Plan& plan) {
  const std::int64_t available = gpus_for(scenario.cluster, gpu_count(plan));
  if (gpu_count(plan) > available) {
    return bad_input(fmt::format("the plan needs {} GPUs; cluster {} has {}", gpu_count(plan),
                                 scenario.cluster.name, available),
                     "", "choose a larger cluster or a smaller plan");
  }
  TPSIM_TRY_STATUS(check_precision(scenario, plan.precision));
  TPSIM_TRY_STATUS(check_load(scenario.stack, scenario.model));
  const StackLimit limit = violated_limit(scenario.stack, scenario.model, plan);
  if (!limit.reason.empty()) {
    return bad_input(fmt::format("stack {}: {}", scenario.stack.name, limit.reason), "",
                     limit.hint + "; --ignore-stack-limits predicts it all the same");
  }
  return Ok{};
}

}  // namespace

Bytes host_memory_of_node(const ClusterSpec& cluster, const Plan& plan, Bytes of_rank) {
  return static_cast<double>(std::min(gpu_count(plan), host_size(cluster))) * of_rank;
}

double probability_of_oom(const Scenario& scenario, Bytes peak) {
  const double spread = scenario.stack.memory.spread * peak.value();
  return normal_cdf((peak - scenario.profile.device.memory).value() / spread);
}

Bytes peak_at_risk(const Scenario& scenario, double risk) {
  const double spread = scenario.stack.memory.spread;
  return scenario.profile.device.memory / (1 - normal_quantile(risk) * spread);
}

Status check_plan(const Scenario& scenario, const Plan& plan) {
  TPSIM_TRY_STATUS(validate(scenario.model));
  TPSIM_TRY_STATUS(validate(plan, scenario.model));
  return check_against_cluster(scenario, plan);
}

namespace {

// The low end of an interval as a share of the step: linear in the spread, as it was calibrated, up
// to half of the step, and falling exponentially from there, so that no spread reaches zero.
constexpr double kLinearSpread = 0.5;
double low_end(double spread) {
  if (spread <= kLinearSpread) return 1 - spread;
  constexpr double kRest = 1 - kLinearSpread;
  return kRest * std::exp((kLinearSpread - spread) / kRest);
}
// The spread that low_end() turns into this share.
double spread_below(double share) {
  constexpr double kRest = 1 - kLinearSpread;
  return share >= kRest ? 1 - share : kLinearSpread - kRest * std::log(share / kRest);
}

// The slow side is the longer one, as it is in measurements.
void set_interval(Prediction& p, double faster, double slower) {
  p.step_low = low_end(faster) * p.step;
  p.step_high = std::exp(slower) * p.step;
}

Prediction predicted(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs) {
  const Scenario& scenario = pricer.scenario();
  const StepCost cost = step_cost(pricer, plan, costs, nullptr);
  Prediction p;
  p.step = cost.step;
  p.sources = sources_of(cost);
  const double half_width = kHalfOf90 * relative_spread(scenario, plan, cost, p.sources);
  set_interval(p, half_width, half_width);
  p.bubble_fraction = cost.bubble_fraction;
  p.breakdown = explained_terms(pricer, plan, cost);
  add_rates(p, scenario, plan);
  add_memory(p, scenario, plan, costs);
  return p;
}

// Of everything that lies in the pipeline's time, or ends up in a span of the timeline.
Status check_countable(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs) {
  const HostCost& host = pricer.scenario().stack.host;
  Seconds chunk, ends;
  for (const ChunkCost& kind : costs.kinds) {
    chunk = std::max({chunk, kind.forward.time.alone(), kind.backward.time.alone()});
  }
  for (const StageCost& stage : costs.stages) {
    Seconds end;
    for (const Seconds part : stage.end) end += part;
    ends = std::max(ends, end);
  }
  ends += pricer.global_norm(plan) + host.per_step;
  const Seconds task = chunk + costs.transfer.gather + costs.transfer.wire + host.per_micro_batch;
  // No more tasks than these can lie one behind another: forward and backward.
  const double tasks = 2.0 * static_cast<double>(micro_batches(plan)) *
                       static_cast<double>(plan.stage_layers.size());
  if (is_countable(pricer.scenario().stack, tasks * task + ends)) return Ok{};
  return step_too_long(pricer.scenario());
}

// Of each task, `more` than its simulation needs is kept.
Status check_tasks(const Scenario& scenario, const Plan& plan, Bytes more) {
  const double tasks = 2.0 * static_cast<double>(micro_batches(plan)) *
                       static_cast<double>(plan.stage_layers.size());
  WorkEstimate work = work_of_tasks(tasks);
  work.memory += tasks * more;
  return check_work(fmt::format("a step of {:.1e} tasks", tasks), work, scenario.limits);
}

constexpr double kMostDays = 50;  // 106 in picoseconds

}  // namespace

void widen_interval(Prediction& prediction, double faster, double slower) {
  set_interval(prediction,
               std::hypot(spread_below(prediction.step_low / prediction.step), kHalfOf90 * faster),
               std::hypot(std::log(prediction.step_high / prediction.step), kHalfOf90 * slower));
}

bool is_countable(const StackSpec& stack, Seconds one_by_one) {
  constexpr double kLatest = 7;  // no rank of 10^10 is later, in standard deviations
  return (1 + kLatest * stack.rank_jitter) * one_by_one < Seconds(kMostDays * 86400);
}

Error step_too_long(const Scenario& scenario) {
  return bad_input(
      fmt::format("at the prices of {} and {} on {} a step may take more than {} days: no more "
                  "are counted",
                  scenario.profile.name, scenario.stack.name, scenario.cluster.name, kMostDays),
      "", "one of the three is not of a machine for this model");
}

Result<Prediction> predict(LayerPricer& pricer, const Plan& plan) {
  TPSIM_TRY_STATUS(check_tasks(pricer.scenario(), plan, {}));
  const PlanCosts costs = plan_costs(pricer, plan);
  TPSIM_TRY_STATUS(check_countable(pricer, plan, costs));
  return predicted(pricer, plan, costs);
}

Result<Prediction> simulate(const Scenario& scenario, const Plan& plan) {
  TPSIM_TRY_STATUS(check_plan(scenario, plan));
  LayerPricer pricer(scenario);
  return predict(pricer, plan);
}

Result<Timeline> simulate_timeline(const Scenario& scenario, const Plan& plan) {
  TPSIM_TRY_STATUS(check_plan(scenario, plan));
  constexpr Bytes kSpan(2 * sizeof(TimelineSpan) + 200);  // and its text in a file
  TPSIM_TRY_STATUS(check_tasks(scenario, plan, kSpan));
  LayerPricer pricer(scenario);
  const PlanCosts costs = plan_costs(pricer, plan);
  TPSIM_TRY_STATUS(check_countable(pricer, plan, costs));
  Timeline timeline;
  step_cost(pricer, plan, costs, &timeline);
  std::stable_sort(timeline.spans.begin(), timeline.spans.end(),
                   [](const TimelineSpan& a, const TimelineSpan& b) {
                     return std::pair(a.stage, a.begin) < std::pair(b.stage, b.begin);
                   });
  return timeline;
}

}  // namespace tpsim
