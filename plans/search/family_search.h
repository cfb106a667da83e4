// Evaluates the plans of one family in closed form: whether each plan fits in memory, and a lower
// bound of its score.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "plans/search/enumerate.h"
#include "plans/search/search_space.h"
#include "sim/bounds/group_bounds.h"
#include "sim/bounds/plan_bounds.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

// A plan that fits in memory, with the data to score and rebuild it.
struct Candidate {
  double bound = 0;  // lower bound of the score
  double step = 0;   // lower bound of the step
  double peak = 0;
  double busy = 0;         // busy time of a device in the pipeline, mean over stages
  std::int64_t place = 0;  // index in the enumeration order, which breaks ties
  Plan plan;               // without stage_layers
  const StageCut* cut = nullptr;
};

// Returns the score, the value that the objective minimizes, of a candidate whose step takes `step`
// seconds. The candidate's peak memory is exact.
double score_of(Objective objective, const Candidate& candidate, double step);

// A group of which some plans may fit in memory. No plan of the group has a score below `bound`, a
// step below `step` or a peak below `peak`.
struct BoundedGroup {
  double bound = 0;
  double step = 0;
  double peak = 0;
  std::int64_t place = 0;          // index of the group's first plan in the enumeration order
  std::int64_t plans = 0;          // plans that were not pruned
  std::uint32_t arrangements = 0;  // bit set of arrangements that were not pruned
  // The same arrangements, with one bit per ZeRO stage and rank order.
  std::uint32_t slots = 0;
  GroupKey key;
};

// Groups that an earlier search found too slow. The value has the BoundedGroup::slots to skip.
using SlowGroups = std::unordered_map<GroupKey, std::uint32_t, GroupKeyHash>;

// Evaluates the plans of families in closed form; one object per thread. Bounds of a whole group
// (sim/bounds/group_bounds.h) are checked before its plans.
//
// Plans that differ only in the number of recomputed blocks: fewer blocks are never slower, so only
// the smallest number that fits is evaluated. More recompute lengthens the tasks of the pipeline.
// It can shorten only the exposed part of an overlapped reduction, by at most the growth of the
// last backward. With virtual stages the last backward consists of several chunks, and not all of
// them delay the end of a stage. Then every number is evaluated.
class FamilySearch {
 public:
  struct Found {
    EnumerationCount count;
    std::int64_t over_memory = 0, over_host = 0, more_recompute = 0, too_long = 0;
    std::int64_t not_as_good = 0;   // plans whose bound exceeds the goal
    std::int64_t not_compared = 0;  // plans that were left at SearchSpace::until
    std::vector<Candidate> candidates;
    std::vector<BoundedGroup> groups;
  };

  FamilySearch(std::shared_ptr<LayerPricer> pricer, const PlanSpace& plans,
               const SearchSpace& space)
      : shared_pricer_(std::move(pricer)),
        pricer_(*shared_pricer_),
        bounds_(pricer_),
        group_bounds_(pricer_),
        plans_(plans),
        space_(space),
        objective_(space.objective),
        limit_(memory_limit(pricer_.scenario(), space)),
        first_order_(plans.first_rank_order()) {}

  // Computes bounds of groups only. Leaves out groups whose bound exceeds `goal`, and the slots in
  // `slow` (may be null). Memory is checked last, and that of single plans not yet. Leaves out the
  // groups that follow SearchSpace::until.
  Found bound_groups(std::int64_t family, double goal, const SlowGroups* slow);
  // Evaluates the plans of a group. Skips plans whose bound exceeds `goal`.
  Found open(const BoundedGroup& group, double goal);
  // Returns the largest peak that is of interest for a plan whose step takes at least `step`
  // seconds.
  using PeakLimit = std::function<double(double step)>;
  // Evaluates the plans of a group with every number of recomputed blocks. Skips plans whose peak
  // exceeds `limit` and counts them in Found::not_as_good.
  Found open_smaller(const BoundedGroup& group, const PeakLimit& limit);

  LayerPricer& pricer() { return pricer_; }

 private:
  struct MemoryFloor {
    std::int64_t micro_batch = 0;  // last micro-batch that was checked
    bool is_over_limit = false;
  };

  void bound(const PlanGroup& group);
  bool is_too_slow(const Plan& plan, bool rank_order_matters);
  std::uint32_t fast_enough(const PlanGroup& group);
  std::uint32_t within_goal(const PlanGroup& group, std::uint32_t arrangements);
  std::uint32_t may_fit(const PlanGroup& group, std::uint32_t arrangements);
  Candidate least_of(const Plan& plan, const CutFloors& cuts);
  double score_of_bound(const Plan& plan, const GroupBounds::Times& least) const;
  void consider_plans(const PlanGroup& group, std::uint32_t arrangements);
  void consider(const Plan& plan, const StageCut& cut);
  void consider_counts(Plan plan, const StageCut& cut);
  bool cannot_reach_goal(const Plan& plan, const StageCut& cut);
  bool add_if_it_fits(const Plan& plan, const StageCut& cut);
  bool fewest_is_fastest(const Plan& plan) const;
  bool is_below_floor(const Plan& plan);

  std::shared_ptr<LayerPricer> shared_pricer_;  // keeps the pricer alive
  LayerPricer& pricer_;
  PlanBounds bounds_;
  GroupBounds group_bounds_;
  const PlanSpace& plans_;
  const SearchSpace& space_;
  Objective objective_;
  bool trades_memory_ = false;  // a longer step for less memory is of interest
  Bytes limit_;
  Found found_;
  // Results of is_below_floor() for the current family, by layout and arrangement.
  std::unordered_map<LayerKey, MemoryFloor, LayerKeyHash> floors_;
  RankOrder first_order_;
  int zero_over_memory_ = -1;  // ZeRO stage with which the current cut exceeded memory; -1: none
  double goal_ = 0;
  std::array<double, 32> least_peaks_{};  // by arrangement: lower bounds of the last may_fit()
  const SlowGroups* slow_ = nullptr;
  std::int64_t place_ = 0;
};

}  // namespace tpsim
