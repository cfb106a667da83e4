#include "plans/questions/what_if.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/step/step.h"

namespace tpsim {
namespace {

constexpr double kLeastGain = 0.01;  // least speedup of a memory break-even over the previous one
constexpr double kFurthest = 4;      // relative to today's value
constexpr double kPrecision = 1e-3;

void scale_samples(Profile& profile, bool products, double speed) {
  for (OpSample& sample : profile.ops) {
    if (runs_on_matrix_units(sample.key.kind) == products) sample.median *= 1 / speed;
  }
}

// Scales the samples of collectives. The smallest sample of each collective and rank count is its
// latency and scales with `latency`. The remaining time scales with `traffic`.
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
  for (Seconds* time : times_of(host)) *time *= factor;
}

// Returns the space in which every setting has only the values of the two plans.
SearchSpace between(SearchSpace space, const Plan& one, const Plan& other) {
  for (const SettingRow& row : setting_rows()) {
    if (row.role == SettingRole::kGiven || row.is_list()) continue;
    std::vector<std::int64_t>& asked = space.asked[row.setting];
    asked.clear();
    for (const Plan* plan : {&one, &other}) {
      const bool counts = row.counts_for == nullptr ||
                          setting_of(*plan, row.counts_for->setting) == *row.counts_for;
      if (counts) asked.push_back(row.get(*plan));
    }
    std::sort(asked.begin(), asked.end());
    asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  }
  return space;
}

// Finds the value of a constant at which the best plan changes. A search over all plans is slow; a
// search over the settings of two plans is fast. The fast search finds the value at which another
// plan overtakes today's plan. The slow search then checks whether a third plan is better at this
// value.
class BreakEvenFinder {
 public:
  BreakEvenFinder(const Scenario& scenario, const SearchSpace& space, int threads)
      : scenario_(scenario), space_(space), threads_(threads) {}

  Result<std::optional<Plan>> best_at(Constant constant, double factor) const {
    return best_in(space_, constant, factor);
  }

  // Searches from today's value, at which `today` is the best plan, to `furthest`. Empty if `today`
  // is the best plan at `furthest`.
  Result<std::optional<PlanBreakEven>> change(Constant constant, const Plan& today,
                                              double furthest) const {
    TPSIM_TRY(std::optional<Plan> other, best_at(constant, furthest));
    if (!other || *other == today) return std::optional<PlanBreakEven>();
    PlanBreakEven found{constant, furthest, today, *other};
    for (bool moves = true; moves;) {
      const double before = found.factor;
      TPSIM_TRY_STATUS(approach(found));
      moves = std::abs(std::log(found.factor / before)) > kPrecision;
      if (!moves) break;
      TPSIM_TRY(other, best_at(constant, found.factor));
      moves = other && *other != today && *other != found.after;
      if (moves) found.after = *other;
    }
    return std::optional<PlanBreakEven>(found);
  }

 private:
  Result<std::optional<Plan>> best_in(const SearchSpace& space, Constant constant,
                                      double factor) const {
    TPSIM_TRY(const SearchResult found,
              search(with_constant(scenario_, constant, factor), space, 1, {}, threads_));
    if (found.plans.empty()) return std::optional<Plan>();
    return std::optional<Plan>(found.plans.front().plan);
  }

  // Moves found.factor towards 1, to the value at which a plan with settings of either plan
  // overtakes found.before.
  Status approach(PlanBreakEven& found) const {
    const SearchSpace few = between(space_, found.before, found.after);
    double near = 1;
    // Bisects in logarithms, so that factors 2 and 1/2 are treated alike.
    while (std::abs(std::log(found.factor / near)) > kPrecision) {
      const double middle = std::sqrt(near * found.factor);
      TPSIM_TRY(const std::optional<Plan> there, best_in(few, found.constant, middle));
      if (there && *there == found.before) {
        near = middle;
      } else {
        found.factor = middle;
        if (there) found.after = *there;
      }
    }
    return Ok{};
  }

  const Scenario& scenario_;
  const SearchSpace& space_;
  int threads_;
};

}  // namespace

Scenario with_constant(Scenario scenario, Constant constant, double factor) {
  Profile& profile = scenario.profile;
  ClusterSpec& cluster = scenario.cluster;
  switch (constant) {
    case Constant::kLinkBandwidth:
      cluster.intra_node.bandwidth *= factor;
      // Measured collectives ran within a node, so NIC bandwidth does not scale them.
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
  for (const Constant constant : all_of<Constant>()) {
    const Seconds step = step_of(with_constant(scenario, constant, kNudge));
    all.push_back({constant, step, step / today - 1});
  }
  std::stable_sort(all.begin(), all.end(), [](const Sensitivity& a, const Sensitivity& b) {
    return std::abs(a.change) > std::abs(b.change);
  });
  return all;
}

// The Pareto front of step and memory is the set of plans that some memory size makes the best.
Result<std::vector<MemoryBreakEven>> memory_break_evens(const Scenario& scenario,
                                                        const SearchSpace& space, double most,
                                                        int threads, const HearShare& progress) {
  Scenario larger = scenario;
  larger.profile.device.memory *= most;
  SearchSpace unlimited = space;
  unlimited.memory_limit = Bytes();
  unlimited.objective = Objective::kTime;
  TPSIM_TRY(SearchResult found, pareto_front(larger, unlimited, progress, threads));
  const Bytes today = memory_limit(scenario, space);
  std::vector<MemoryBreakEven> all;
  Seconds best;  // best step that fits so far
  for (auto run = found.plans.rbegin(); run != found.plans.rend(); ++run) {
    const Prediction& predicted = run->predicted;
    if (predicted.peak <= today) {
      best = predicted.step;
      continue;
    }
    const Bytes needed = memory_for(scenario, space, predicted.peak);
    if (best <= Seconds()) {  // nothing fits today, so no gain is defined
      all.push_back({needed, *run, std::nullopt});
      break;
    }
    const double gain = best / predicted.step - 1;
    const double last = all.empty() ? 0 : *all.back().gain;
    if ((1 + gain) / (1 + last) < 1 + kLeastGain) continue;
    all.push_back({needed, *run, gain});
  }
  return all;
}

Result<std::vector<PlanBreakEven>> plan_break_evens(const Scenario& scenario,
                                                    const SearchSpace& space, int threads,
                                                    const HearShare& progress,
                                                    std::optional<Plan> today) {
  const BreakEvenFinder finder(scenario, space, threads);
  std::vector<PlanBreakEven> all;
  if (!today) {
    TPSIM_TRY(today, finder.best_at(Constant::kNicBandwidth, 1));
  }
  if (!today) return all;
  double done = 0;
  for (const Constant constant : {Constant::kLinkBandwidth, Constant::kNicBandwidth}) {
    for (const double furthest : {kFurthest, 1 / kFurthest}) {
      if (progress) progress(done++ / 4);
      TPSIM_TRY(const auto change, finder.change(constant, *today, furthest));
      if (change) all.push_back(*change);
    }
  }
  return all;
}

}  // namespace tpsim
