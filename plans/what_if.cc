#include "plans/what_if.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/predict.h"
#include "sim/step.h"

namespace tpsim {
namespace {

constexpr double kLeastGain = 0.01;  // of speed
constexpr double kFurthest = 4;      // times today's value
constexpr double kPrecision = 1e-3;

void scale_samples(Profile& profile, bool products, double speed) {
  for (OpSample& sample : profile.ops) {
    if (runs_on_matrix_units(sample.key.kind) == products) sample.median *= 1 / speed;
  }
}

// The least time of each collective and number of ranks is latency; the rest is traffic.
void scale_collectives(Profile& profile, double latency, double traffic) {
  std::map<std::pair<CollectiveKind, std::int64_t>, Seconds> least;
  for (const CollectiveSample& sample : profile.collectives) {
    Seconds& known = least.try_emplace({sample.kind, sample.ranks}, sample.median).first->second;
    known = std::min(known, sample.median);
  }
  for (CollectiveSample& sample : profile.collectives) {
    const Seconds base = least.at({sample.kind, sample.ranks});
    sample.median = latency * base + traffic * (sample.median - base);
  }
}

void scale_host(HostCost& host, double factor) {
  for (Seconds* time :
       {&host.per_op, &host.per_collective, &host.per_block_forward, &host.per_block_backward,
        &host.per_routing_forward, &host.per_routing_backward, &host.per_micro_batch,
        &host.per_step, &host.blocking_op, &host.blocking_collective}) {
    *time *= factor;
  }
}

class BreakEvenFinder {
 public:
  BreakEvenFinder(const Scenario& scenario, const SearchSpace& space, int threads)
      : scenario_(scenario), space_(space), threads_(threads) {}

  Result<std::optional<Plan>> best_at(Constant constant, double factor) const {
    TPSIM_TRY(const SearchResult found,
              search(with_constant(scenario_, constant, factor), space_, 1, {}, threads_));
    if (found.plans.empty()) return std::optional<Plan>();
    return std::optional<Plan>(found.plans.front().plan);
  }

  // Between today's value, where `today` is best, and `furthest`. Nothing when it stays best.
  Result<std::optional<PlanBreakEven>> change(Constant constant, const Plan& today,
                                              double furthest) const {
    TPSIM_TRY(std::optional<Plan> other, best_at(constant, furthest));
    if (!other || *other == today) return std::optional<PlanBreakEven>();
    double near = 1, far = furthest;
    // Factors are ratios: halving them in logarithms treats twice and half alike.
    while (std::abs(std::log(far / near)) > kPrecision) {
      const double middle = std::sqrt(near * far);
      TPSIM_TRY(const std::optional<Plan> there, best_at(constant, middle));
      if (there && *there == today) {
        near = middle;
      } else {
        far = middle;
        other = there;
      }
    }
    return std::optional<PlanBreakEven>({constant, far, today, *other});
  }

 private:
  const Scenario& scenario_;
  const SearchSpace& space_;
  int threads_;
};

}  // namespace

std::string_view name_of(Constant constant) {
  switch (constant) {
    case Constant::kLinkBandwidth: return "link bandwidth";
    case Constant::kNicBandwidth: return "NIC bandwidth";
    case Constant::kLatency: return "network latency";
    case Constant::kMemoryBandwidth: return "memory bandwidth";
    case Constant::kFlops: return "FLOP/s";
    case Constant::kHost: return "host time";
    case Constant::kJitter: return "jitter";
  }
  return "?";
}

Scenario with_constant(Scenario scenario, Constant constant, double factor) {
  Profile& profile = scenario.profile;
  ClusterSpec& cluster = scenario.cluster;
  switch (constant) {
    case Constant::kLinkBandwidth:
      cluster.intra_node.bandwidth *= factor;
      // Measured collectives are of one node: a NIC's bandwidth is in none of them.
      scale_collectives(profile, 1, 1 / factor);
      break;
    case Constant::kNicBandwidth: cluster.inter_node.bandwidth *= factor; break;
    case Constant::kLatency:
      cluster.intra_node.latency *= factor;
      cluster.inter_node.latency *= factor;
      scale_collectives(profile, factor, 1);
      break;
    case Constant::kMemoryBandwidth:
      profile.device.memory_bandwidth *= factor;
      scale_samples(profile, false, factor);
      break;
    case Constant::kFlops:
      for (FlopsPerSecond* peak : {&profile.device.matmul_peak, &profile.device.fp8_peak,
                                   &profile.device.mxfp8_peak, &profile.device.nvfp4_peak}) {
        *peak *= factor;
      }
      scale_samples(profile, true, factor);
      break;
    case Constant::kHost: scale_host(scenario.stack.host, factor); break;
    case Constant::kJitter: scenario.stack.rank_jitter *= factor; break;
  }
  return scenario;
}

std::vector<Sensitivity> sensitivities(const Scenario& scenario, const Plan& plan) {
  const auto step_of = [&](const Scenario& machine) {
    LayerPricer pricer(machine);
    return step_cost(pricer, plan, plan_costs(pricer, plan), nullptr).step;
  };
  const Seconds today = step_of(scenario);
  std::vector<Sensitivity> all;
  for (int i = 0; i < kConstantCount; ++i) {
    const auto constant = static_cast<Constant>(i);
    const Seconds step = step_of(with_constant(scenario, constant, kNudge));
    all.push_back({constant, step, step / today - 1});
  }
  std::stable_sort(all.begin(), all.end(), [](const Sensitivity& a, const Sensitivity& b) {
    return std::abs(a.change) > std::abs(b.change);
  });
  return all;
}

// Plans that no other beats in step and memory are just those that some amount of memory unlocks.
Result<std::vector<MemoryBreakEven>> memory_break_evens(const Scenario& scenario,
                                                        const SearchSpace& space, double most,
                                                        int threads) {
  Scenario larger = scenario;
  larger.profile.device.memory *= most;
  SearchSpace unlimited = space;
  unlimited.memory_limit = Bytes();
  unlimited.objective = Objective::kTime;
  TPSIM_TRY(SearchResult found, pareto_front(larger, unlimited, {}, threads));
  const Bytes today = memory_limit(scenario, space);
  std::vector<MemoryBreakEven> all;
  Seconds best;  // of what fits so far
  for (auto run = found.plans.rbegin(); run != found.plans.rend(); ++run) {
    const Prediction& predicted = run->predicted;
    if (predicted.peak <= today) {
      best = predicted.step;
      continue;
    }
    // Where nothing fits today, any memory that lets something run is an endless gain.
    const double gain = best > Seconds() ? best / predicted.step - 1 : INFINITY;
    const double last = all.empty() ? 0 : all.back().gain;
    if ((1 + gain) / (1 + last) < 1 + kLeastGain) continue;
    all.push_back({memory_for(scenario, space, predicted.peak), *run, gain});
  }
  return all;
}

Result<std::vector<PlanBreakEven>> plan_break_evens(const Scenario& scenario,
                                                    const SearchSpace& space, int threads) {
  const BreakEvenFinder finder(scenario, space, threads);
  std::vector<PlanBreakEven> all;
  TPSIM_TRY(const std::optional<Plan> today, finder.best_at(Constant::kNicBandwidth, 1));
  if (!today) return all;
  for (const Constant constant : {Constant::kLinkBandwidth, Constant::kNicBandwidth}) {
    for (const double furthest : {kFurthest, 1 / kFurthest}) {
      TPSIM_TRY(const auto change, finder.change(constant, *today, furthest));
      if (change) all.push_back(*change);
    }
  }
  return all;
}

}  // namespace tpsim
