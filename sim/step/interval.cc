#include "sim/step/interval.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/base/normal.h"
#include "core/base/text.h"
#include "core/scenario/node_map.h"
#include "core/software/cpu_optimizers.h"
#include "costs/scan_model.h"
#include "lowering/passes/step_habits.h"
#include "sim/step/usual_spreads.h"

namespace tpsim {
namespace {

// Returns the group of a term's collectives; nullopt if the term is not mainly collectives.
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

// Shares of the step whose uncertainty has a cause of its own.
struct UncertainShares {
  double host = 0;     // the device waits for the host
  double network = 0;  // exposed collectives of groups that span nodes
  // Kernels that are not in the profile and use one calibrated factor of the stack.
  double kernels = 0;
  double experts = 0;  // grouped GEMMs, permutation, imbalance; dispatch inside a node
  double scans = 0;    // kernels of recurrences
  double offload = 0;  // an optimizer on the CPU
};

using UncertainShare = double UncertainShares::*;

// Returns the member of UncertainShares to which a term is added if its group is within a node.
// Null if the term is as uncertain as the prices of its ops.
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
    case StepTerm::kOptimizer:
      return offloads_optimizer(plan) ? &UncertainShares::offload : nullptr;
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
    case StepTerm::kWeightGather:
    case StepTerm::kStragglers:
    case StepTerm::kUncalibratedOverhead: return nullptr;
  }
  return nullptr;
}

// Returns the shares of the step. Each term counts in at most one of them.
UncertainShares uncertain_shares(const Scenario& scenario, const Plan& plan, const StepCost& cost) {
  const NodeMap nodes = node_map(scenario, plan);
  UncertainShares shares;
  for (const StepTerm term : kStepTerms) {
    const std::optional<GroupKind> group = group_of(term);
    const bool spans_nodes = group && place_group(plan, *group, nodes).nodes > 1;
    const UncertainShare share =
        spans_nodes ? &UncertainShares::network : share_within_nodes(term, scenario.stack, plan);
    if (share != nullptr) shares.*share += std::max(0.0, cost.terms[term] / cost.step);
  }
  return shares;
}

// Whether residual_spread rests on rows of the scenario's GPU.
bool has_rows_of_gpu(const Scenario& scenario) {
  std::string_view names = scenario.stack.spread_gpus;
  bool found = names.empty();
  while (!names.empty()) found |= scenario.profile.name.starts_with(cut_off(names, ","));
  return found;
}

// Returns the relative standard deviation of a predicted step. The causes are independent:
// residuals of the stack's calibration rows (tools/interval_spreads.py), variation between runs,
// prices that were not measured, host, network between nodes, kernels without profile entries, and
// an optimizer on the CPU.
double relative_spread(const Scenario& scenario, const Plan& plan, const StepCost& cost,
                       const Sources& sources) {
  // Expert kernels and dispatchers, with constants of one release.
  constexpr double kExpertSpread = 0.15;
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
        shares.experts * kExpertSpread, shares.scans * kScanSpread,
        shares.offload * offload_spread(cpu_optimizer(scenario.stack), scenario.cluster.host)}) {
    variance += spread * spread;
  }
  return std::sqrt(variance);
}

// Returns the low end of an interval as a share of the step. Up to a spread of 0.5 the low end is 1
// - spread, as calibrated. For larger spreads it decays exponentially and never reaches zero.
constexpr double kLinearSpread = 0.5;
double low_end(double spread) {
  if (spread <= kLinearSpread) return 1 - spread;
  constexpr double kRest = 1 - kLinearSpread;
  return kRest * std::exp((kLinearSpread - spread) / kRest);
}
// Inverse of low_end().
double spread_below(double share) {
  constexpr double kRest = 1 - kLinearSpread;
  return share >= kRest ? 1 - share : kLinearSpread - kRest * std::log(share / kRest);
}

// The upper end is exponential in the spread. It is therefore farther from the step than the lower
// end, as in measurements.
void set_ends(Prediction& p, double faster, double slower) {
  p.step_low = low_end(faster) * p.step;
  p.step_high = std::exp(slower) * p.step;
}

}  // namespace

void set_interval(Prediction& prediction, const Scenario& scenario, const Plan& plan,
                  const StepCost& cost) {
  const double half_width = kHalfOf90 * relative_spread(scenario, plan, cost, prediction.sources);
  set_ends(prediction, half_width, half_width);
  const StackSpec& stack = scenario.stack;
  if (stack.spread_programs.empty() && has_rows_of_gpu(scenario)) return;
  widen_interval(prediction, {stack.other_runs, stack.other_runs});
}

StepSpreads spreads_of(const Prediction& prediction) {
  return {spread_below(prediction.step_low / prediction.step) / kHalfOf90,
          std::log(prediction.step_high / prediction.step) / kHalfOf90};
}

void widen_interval(Prediction& prediction, const StepSpreads& more) {
  const StepSpreads own = spreads_of(prediction);
  set_ends(prediction, kHalfOf90 * std::hypot(own.faster, more.faster),
           kHalfOf90 * std::hypot(own.slower, more.slower));
}

}  // namespace tpsim
