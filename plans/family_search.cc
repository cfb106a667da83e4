#include "plans/family_search.h"

#include <algorithm>
#include <span>

#include "sim/predict.h"

namespace tpsim {

double score_of(Objective objective, const Candidate& candidate, double step) {
  const auto gpus = static_cast<double>(gpu_count(candidate.plan));
  switch (objective) {
    case Objective::kTime: return step;
    case Objective::kMemory: return candidate.peak;
    case Objective::kCost: return gpus * step;
    case Objective::kEnergy:
      return gpus * (kWaitingDraw * step + (1 - kWaitingDraw) * candidate.busy);
  }
  return 0;
}

FamilySearch::Found FamilySearch::run(std::int64_t family, std::int64_t most) {
  most_ = static_cast<std::size_t>(most);
  found_ = {};
  floors_.clear();
  place_ = family << 40;
  found_.count = plans_.visit_family(
      family, [this](const Plan& plan, const StageCut& cut) { consider(plan, cut); });
  pricer_.drop_traces();
  return std::move(found_);
}

void FamilySearch::consider(const Plan& plan, const StageCut& cut) {
  if (plan.offload == Offload::kOptimizer && !bounds_.fits_hosts(plan, cut)) {
    found_.over_host += plans_.plans_of(plan, cut);
    was_over_memory_ = true;
    return;
  }
  if (plan.recompute == Recompute::kBlocks) {
    consider_counts(plan, cut);
    ++place_;
    return;
  }
  // Where ranks lie changes no memory: what did not fit in one order fits in none.
  const bool same_but_order = plan.rank_order != first_order_ && was_over_memory_;
  was_over_memory_ = same_but_order || is_below_floor(plan);
  if (was_over_memory_) {
    ++found_.over_memory;
    return;
  }
  was_over_memory_ = !add_if_it_fits(plan, cut);
  if (!was_over_memory_) ++place_;
}

bool FamilySearch::add_if_it_fits(const Plan& plan, const StageCut& cut) {
  const PlanBounds::Value value = bounds_.evaluate(plan, cut, limit_);
  if (value.peak > limit_) {
    ++found_.over_memory;
    return false;
  }
  // The bound is no shorter than what one stage does; every chunk's tasks one after another are no
  // more than all stages'.
  const double stages = 2.0 * static_cast<double>(cut.layers.size()) + 1;
  if (!is_countable(pricer_.scenario().stack, stages * value.step)) {
    ++found_.too_long;
    return true;
  }
  Candidate candidate{0,   value.step.value(), value.peak.value(), value.busy.value(), place_, plan,
                      &cut};
  candidate.bound = score_of(objective_, candidate, candidate.step);
  if (found_.candidates.size() <= most_) found_.candidates.push_back(candidate);
  return true;
}

bool FamilySearch::fewest_is_fastest(const Plan& plan) const {
  const bool overlaps = pricer_.scenario().stack.training.overlap_gradient_reduction;
  return !trades_memory_ && (plan.virtual_stages == 1 || !overlaps);
}

// All numbers of recomputed blocks of a plan. They share a place.
void FamilySearch::consider_counts(Plan plan, const StageCut& cut) {
  const std::span<const std::int64_t> counts = plans_.recompute_counts(cut);
  const auto all = static_cast<std::int64_t>(counts.size());
  const bool wants_fewest = fewest_is_fastest(plan);
  if (is_below_floor(plan)) {
    found_.over_memory += all;
    return;
  }
  if (wants_fewest && plans_.has_without_recompute() && bounds_.fits(plan, cut, limit_)) {
    found_.more_recompute += all;
    return;
  }
  const std::int64_t least = bounds_.least_recomputed_blocks(plan, cut, limit_);
  auto i = std::lower_bound(counts.begin(), counts.end(), least) - counts.begin();
  found_.over_memory += i;
  for (; i < all; ++i) {
    plan.recompute_blocks = counts[static_cast<std::size_t>(i)];
    if (add_if_it_fits(plan, cut) && wants_fewest) break;
  }
  if (i < all) found_.more_recompute += all - i - 1;
}

// Whether no plan of this micro-batch and cp, and so of no larger micro-batch, can fit.
bool FamilySearch::is_below_floor(const Plan& plan) {
  MemoryFloor& floor = floor_of(plan.degrees.cp);
  if (plan.micro_batch != floor.micro_batch) {
    floor.is_over_limit = floor.is_over_limit || bounds_.least_peak(plan) > limit_;
    floor.micro_batch = plan.micro_batch;
  }
  return floor.is_over_limit;
}

FamilySearch::MemoryFloor& FamilySearch::floor_of(std::int64_t cp) {
  for (MemoryFloor& floor : floors_) {
    if (floor.cp == cp) return floor;
  }
  return floors_.emplace_back(MemoryFloor{cp});
}

}  // namespace tpsim
