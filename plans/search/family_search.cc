#include "plans/search/family_search.h"

#include <algorithm>
#include <limits>
#include <span>

#include "lowering/passes/shard_groups.h"
#include "lowering/passes/step_habits.h"
#include "sim/step/predict.h"

namespace tpsim {
namespace {

// Bit of an arrangement in a bit set. There are far fewer than 32 ZeRO stages x rank orders.
std::uint32_t bit(std::size_t arrangement) { return std::uint32_t{1} << arrangement; }
bool is_set(std::uint32_t arrangements, std::size_t i) { return (arrangements & bit(i)) != 0; }
std::uint32_t slot_bit(const Arrangement& one) {
  return bit(2 * static_cast<std::size_t>(one.zero) + static_cast<std::size_t>(one.rank_order));
}
constexpr std::uint32_t kAllArrangements = std::numeric_limits<std::uint32_t>::max();

}  // namespace

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

FamilySearch::Found FamilySearch::bound_groups(std::int64_t family, double goal,
                                               const SlowGroups* slow) {
  goal_ = goal;
  slow_ = slow;
  found_ = {};
  floors_.clear();
  place_ = family << 40;
  found_.count = plans_.visit_groups(
      family, [this](const PlanGroup& group) { bound(group); },
      [this](const Plan& plan, bool rank_order_matters) {
        return is_too_slow(plan, rank_order_matters);
      });
  found_.not_as_good += found_.count.too_slow;
  pricer_.drop_programs();
  return std::move(found_);
}

FamilySearch::Found FamilySearch::open(const BoundedGroup& group, double goal) {
  goal_ = goal;
  trades_memory_ = objective_ == Objective::kMemory;
  found_ = {};
  place_ = group.place;
  const PlanGroup plans = plans_.group(group.key);
  std::uint32_t left = 0;
  for (std::size_t i = 0; i < plans.arrangements.size(); ++i) {
    if (!is_set(group.arrangements, i)) continue;
    const Plan plan = arranged(plans.settings, plans.arrangements[i]);
    if (least_of(plan, *plans.floors).bound <= goal) {
      left |= bit(i);
    } else {
      found_.not_as_good += plans.plans;
    }
  }
  consider_plans(plans, left);
  return std::move(found_);
}

FamilySearch::Found FamilySearch::open_smaller(const BoundedGroup& group, const PeakLimit& limit) {
  goal_ = std::numeric_limits<double>::max();
  trades_memory_ = true;
  found_ = {};
  const Bytes whole_limit = limit_;
  const PlanGroup plans = plans_.group(group.key);
  for (std::size_t i = 0; i < plans.arrangements.size(); ++i) {
    if (!is_set(group.arrangements, i)) continue;
    const Plan plan = arranged(plans.settings, plans.arrangements[i]);
    const Bytes smaller(limit(least_of(plan, *plans.floors).step));
    limit_ = std::min(whole_limit, smaller);
    if (group_bounds_.least_peak(plan, *plans.floors) > limit_) {
      found_.not_as_good += plans.plans;
      continue;
    }
    const std::int64_t over_memory = found_.over_memory;
    place_ = group.place;
    consider_plans(plans, bit(i));
    if (smaller < whole_limit) {
      found_.not_as_good += found_.over_memory - over_memory;
      found_.over_memory = over_memory;
    }
  }
  limit_ = whole_limit;
  return std::move(found_);
}

// Returns the arrangements of the group that are not in `slow_`. Counts the plans of the others.
std::uint32_t FamilySearch::fast_enough(const PlanGroup& group) {
  if (slow_ == nullptr) return kAllArrangements;
  const auto known = slow_->find(group.key);
  if (known == slow_->end()) return kAllArrangements;
  std::uint32_t left = 0;
  for (std::size_t i = 0; i < group.arrangements.size(); ++i) {
    if ((known->second & slot_bit(group.arrangements[i])) == 0) {
      left |= bit(i);
    } else {
      found_.not_as_good += group.plans;
    }
  }
  return left;
}

// Returns whether the layers of the whole model, spread evenly over the stages, exceed the goal
// with every rank order. The layers without recompute and with ZeRO 0 have the least work.
bool FamilySearch::is_too_slow(const Plan& plan, bool rank_order_matters) {
  if (goal_ == std::numeric_limits<double>::max() || objective_ == Objective::kMemory) return false;
  const std::vector<std::int64_t>& stages = plans_.values(Setting::kZero);
  const bool has_small_zero =
      std::any_of(stages.begin(), stages.end(), [](std::int64_t zero) { return zero < 2; });
  if (!has_small_zero && stages.size() > 1) return false;
  Plan core = plan;
  if (plans_.has_without_recompute()) core.recompute = Recompute::kNone;
  core.zero = has_small_zero ? 0 : static_cast<int>(stages.front());
  for (const std::int64_t order : plans_.values(Setting::kRankOrder)) {
    core.rank_order = static_cast<RankOrder>(order);
    if (!experts_fit_ranks(core)) continue;
    if (score_of_bound(core, group_bounds_.least_device(core)) <= goal_) return false;
    if (!rank_order_matters) break;
  }
  return true;
}

// Returns the arrangements whose layers alone do not exceed the goal. Counts the plans of the
// others. The layers without recompute and with ZeRO 0 are compared first: most groups need no
// others. Memory is compared last, because the goal rejects more.
std::uint32_t FamilySearch::within_goal(const PlanGroup& group, std::uint32_t arrangements) {
  if (goal_ == std::numeric_limits<double>::max() || objective_ == Objective::kMemory) {
    return arrangements;
  }
  Plan core = group.settings;
  const bool has_small_zero = std::any_of(group.arrangements.begin(), group.arrangements.end(),
                                          [](const Arrangement& one) { return one.zero < 2; });
  if (plans_.has_without_recompute()) core.recompute = Recompute::kNone;
  std::uint32_t left = 0;
  std::array<double, kEnumNames<RankOrder>.size()> scores;
  scores.fill(-1);
  for (std::size_t i = 0; i < group.arrangements.size(); ++i) {
    if (!is_set(arrangements, i)) continue;
    const Plan plan = arranged(group.settings, group.arrangements[i]);
    double& score = scores[static_cast<std::size_t>(plan.rank_order)];
    if (score < 0 || !has_small_zero) {
      core.zero = has_small_zero ? 0 : plan.zero;
      core.rank_order = plan.rank_order;
      score = score_of_bound(plan, group_bounds_.least_core(plan, core, *group.floors));
    }
    const bool may_reach =
        score <= goal_ &&
        score_of_bound(plan, group_bounds_.least_work(plan, *group.floors)) <= goal_;
    if (may_reach) {
      left |= bit(i);
    } else {
      found_.not_as_good += group.plans;
    }
  }
  return left;
}

// Returns the arrangements whose lower bounds of memory are within the limit. Counts the plans of
// the others.
std::uint32_t FamilySearch::may_fit(const PlanGroup& group, std::uint32_t arrangements) {
  std::uint32_t left = 0;
  for (std::size_t i = 0; i < group.arrangements.size(); ++i) {
    if (!is_set(arrangements, i)) continue;
    const Plan plan = arranged(group.settings, group.arrangements[i]);
    // Persistent memory is checked first, because its bound needs no traced layer.
    if (group_bounds_.least_held(plan, *group.floors) <= limit_ && !is_below_floor(plan)) {
      const Bytes peak = group_bounds_.least_peak(plan, *group.floors);
      least_peaks_[i] = peak.value();
      if (peak <= limit_) {
        left |= bit(i);
        continue;
      }
    }
    found_.over_memory += group.plans;
  }
  return left;
}

// Returns lower bounds of the step and the score over all cuts.
Candidate FamilySearch::least_of(const Plan& plan, const CutFloors& cuts) {
  const GroupBounds::Times least = group_bounds_.least_times(plan, cuts);
  Candidate one;
  one.plan = plan;
  one.busy = least.busy.value();
  one.step = least.step.value();
  if (objective_ == Objective::kMemory) one.peak = group_bounds_.least_peak(plan, cuts).value();
  one.bound = score_of(objective_, one, one.step);
  return one;
}

// For objectives other than memory.
double FamilySearch::score_of_bound(const Plan& plan, const GroupBounds::Times& least) const {
  Candidate one;
  one.plan.degrees = plan.degrees;
  one.busy = least.busy.value();
  return score_of(objective_, one, least.step.value());
}

void FamilySearch::bound(const PlanGroup& group) {
  if (space_.is_late()) {
    found_.not_compared += group.plans * std::ssize(group.arrangements);
    return;
  }
  constexpr double kMost = std::numeric_limits<double>::max();
  BoundedGroup bounded{.bound = kMost,
                       .step = kMost,
                       .peak = kMost,
                       .place = place_,
                       .arrangements = may_fit(group, within_goal(group, fast_enough(group))),
                       .key = group.key};
  for (std::size_t i = 0; i < group.arrangements.size(); ++i) {
    if (!is_set(bounded.arrangements, i)) continue;
    const Plan plan = arranged(group.settings, group.arrangements[i]);
    const Candidate least = least_of(plan, *group.floors);
    if (least.bound > goal_) {
      bounded.arrangements &= ~bit(i);
      found_.not_as_good += group.plans;
      continue;
    }
    bounded.bound = std::min(bounded.bound, least.bound);
    bounded.step = std::min(bounded.step, least.step);
    bounded.peak = std::min(bounded.peak, least_peaks_[i]);
    bounded.slots |= slot_bit(group.arrangements[i]);
    bounded.plans += group.plans;
  }
  if (bounded.plans > 0) found_.groups.push_back(bounded);
  place_ += static_cast<std::int64_t>(group.cuts.size() * group.arrangements.size());
}

// Every combination of cut and arrangement gets an index, even if it is pruned.
void FamilySearch::consider_plans(const PlanGroup& group, std::uint32_t arrangements) {
  const std::int64_t first = place_;
  const std::size_t all = group.arrangements.size();
  for (std::size_t i = 0; i < group.cuts.size(); ++i) {
    const StageCut& cut = group.cuts[i];
    if (plans_.plans_of(group.settings, cut) == 0) continue;
    zero_over_memory_ = -1;
    for (std::size_t k = 0; k < all; ++k) {
      place_ = first + static_cast<std::int64_t>(i * all + k);
      if (is_set(arrangements, k)) consider(arranged(group.settings, group.arrangements[k]), cut);
    }
  }
  place_ = first + static_cast<std::int64_t>(group.cuts.size() * all);
}

void FamilySearch::consider(const Plan& plan, const StageCut& cut) {
  if (offloads_optimizer(plan) && !bounds_.fits_hosts(plan, cut)) {
    found_.over_host += plans_.plans_of(plan, cut);
    return;
  }
  if (plan.recompute == Recompute::kBlocks) return consider_counts(plan, cut);
  // The rank order does not change memory, unless shards are spread over the ranks of a node. A
  // plan that does not fit in the first order does not fit in the others.
  const bool moves_shards = shards_over_node(pricer_.scenario().stack);
  if (plan.rank_order != first_order_ && plan.zero == zero_over_memory_ && !moves_shards) {
    ++found_.over_memory;
    return;
  }
  if (cannot_reach_goal(plan, cut)) {
    ++found_.not_as_good;
  } else if (!add_if_it_fits(plan, cut)) {
    zero_over_memory_ = plan.zero;
  }
}

bool FamilySearch::cannot_reach_goal(const Plan& plan, const StageCut& cut) {
  if (goal_ == std::numeric_limits<double>::max()) return false;
  const PlanBounds::Value least = bounds_.times(plan, cut);
  return score_of_bound(plan, {least.step, least.busy}) > goal_;
}

bool FamilySearch::add_if_it_fits(const Plan& plan, const StageCut& cut) {
  const PlanBounds::Value value = bounds_.evaluate(plan, cut, limit_);
  if (value.peak > limit_) {
    ++found_.over_memory;
    return false;
  }
  // Upper limit of the step from its lower bound: the bound is at least the work of one stage, and
  // the step is at most the work of all chunks in sequence.
  const double stages = 2.0 * static_cast<double>(cut.layers.size()) + 1;
  if (!is_countable(pricer_.scenario().stack, stages * value.step)) {
    ++found_.too_long;
    return true;
  }
  Candidate candidate{0,   value.step.value(), value.peak.value(), value.busy.value(), place_, plan,
                      &cut};
  candidate.bound = score_of(objective_, candidate, candidate.step);
  found_.candidates.push_back(candidate);
  return true;
}

bool FamilySearch::fewest_is_fastest(const Plan& plan) const {
  const bool overlaps = overlaps_reduction(pricer_.scenario().stack);
  return !trades_memory_ && (plan.virtual_stages == 1 || !overlaps);
}

// Evaluates a plan with every number of recomputed blocks. All of them have the same index.
void FamilySearch::consider_counts(Plan plan, const StageCut& cut) {
  const std::span<const std::int64_t> counts = plans_.recompute_counts(cut);
  const auto all = static_cast<std::int64_t>(counts.size());
  const bool wants_fewest = fewest_is_fastest(plan);
  // `plan` recomputes no block here, so its bound holds for all numbers.
  if (fewest_is_fastest(plan) && cannot_reach_goal(plan, cut)) {
    found_.not_as_good += all;
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
    if (cannot_reach_goal(plan, cut)) {
      found_.not_as_good += wants_fewest ? all - i : 1;
      if (wants_fewest) return;
    } else if (add_if_it_fits(plan, cut) && wants_fewest) {
      break;
    }
  }
  if (i < all) found_.more_recompute += all - i - 1;
}

// Returns whether a lower bound of memory exceeds the limit for this layout and arrangement, at
// this micro-batch or a smaller one that was checked before. Then no such plan fits.
bool FamilySearch::is_below_floor(const Plan& plan) {
  MemoryFloor& floor = floors_[fixed_key(LayerKind::kWordEmbeddings, plan, pricer_.scenario())];
  if (plan.micro_batch != floor.micro_batch) {
    floor.is_over_limit = floor.is_over_limit || group_bounds_.least_of_block(plan) > limit_;
    floor.micro_batch = plan.micro_batch;
  }
  return floor.is_over_limit;
}

}  // namespace tpsim
