// The plans of one family after the other in closed form: which fit, and how good each can be.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "plans/search/enumerate.h"
#include "plans/search/search_space.h"
#include "sim/bounds/group_bounds.h"
#include "sim/bounds/plan_bounds.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

// A plan that fits: what is needed to score it, and to rebuild it.
struct Candidate {
  double bound = 0;  // no better score is possible
  double step = 0;   // nor a shorter step
  double peak = 0;
  double busy = 0;         // what a device works in the pipeline, mean over stages
  std::int64_t place = 0;  // in the order of enumeration: ties are broken by it
  Plan plan;               // without stage_layers
  const StageCut* cut = nullptr;
};

// What the objective minimises for a candidate with this step; memory is exact in it already.
double score_of(Objective objective, const Candidate& candidate, double step);

// A group of plans, some of which may fit: no score of theirs is below the bound.
struct BoundedGroup {
  double bound = 0;
  std::int64_t place = 0;          // of its first plan
  std::int64_t plans = 0;          // that were not ruled out
  std::uint32_t arrangements = 0;  // a bit for each of the group's: not ruled out
  std::uint32_t slots = 0;         // the same, a bit for each ZeRO stage and rank order
  GroupKey key;
};

// Groups that an earlier search found too slow: the ZeRO stages and rank orders
// (BoundedGroup::slots) to skip.
using SlowGroups = std::unordered_map<GroupKey, std::uint32_t, GroupKeyHash>;

// Evaluates the plans of families in closed form; one for each thread. What of a group at once
// tells that no plan of it fits (sim/bounds/group_bounds.h) is asked before its plans are.
//
// Of plans that differ only in how many blocks they recompute, fewer are never slower: the tasks of
// the pipeline grow with them and nothing shrinks but what an overlapped reduction leaves exposed,
// by no more than a last backward has grown by. With virtual stages that backward is of several
// chunks, not all of which need delay a stage's end: there every number is tried.
class FamilySearch {
 public:
  struct Found {
    EnumerationCount count;
    std::int64_t over_memory = 0, over_host = 0, more_recompute = 0, too_long = 0;
    std::int64_t not_as_good = 0;  // as the score that was to be reached
    std::vector<Candidate> candidates;
    std::vector<BoundedGroup> groups;
  };

  FamilySearch(std::shared_ptr<LayerPricer> pricer, const PlanSpace& plans,
               const SearchSpace& space, bool trades_memory)
      : shared_pricer_(std::move(pricer)),
        pricer_(*shared_pricer_),
        bounds_(pricer_),
        group_bounds_(pricer_),
        plans_(plans),
        objective_(space.objective),
        trades_memory_(trades_memory),
        limit_(memory_limit(pricer_.scenario(), space)),
        first_order_(plans.first_rank_order()) {}

  // All plans, one by one. Stops adding candidates when there are more than `most`.
  Found run(std::int64_t family, std::int64_t most);
  // Groups alone, but for those whose bound is above `goal` and those in `slow`, which may be null:
  // plans in them that do not fit are not counted yet.
  Found bound_groups(std::int64_t family, double goal, const SlowGroups* slow);
  // The plans of such a group; those that cannot score `goal` or less are not looked at further.
  Found open(const BoundedGroup& group, double goal);

  LayerPricer& pricer() { return pricer_; }

 private:
  struct MemoryFloor {
    std::int64_t micro_batch = 0;  // that was asked last
    bool is_over_limit = false;
  };

  using Walk = void (FamilySearch::*)(const PlanGroup& group);

  Found visit(std::int64_t family, Walk walk);
  void bound(const PlanGroup& group);
  void consider_group(const PlanGroup& group);
  std::uint32_t fast_enough(const PlanGroup& group);
  std::uint32_t may_fit(const PlanGroup& group, std::uint32_t arrangements);
  double bound_of(const Plan& plan, const CutFloors& cuts);
  void consider_plans(const PlanGroup& group, std::uint32_t arrangements);
  void consider(const Plan& plan, const StageCut& cut);
  void consider_counts(Plan plan, const StageCut& cut);
  bool cannot_reach_goal(const Plan& plan, const StageCut& cut);
  bool add_if_it_fits(const Plan& plan, const StageCut& cut);
  bool fewest_is_fastest(const Plan& plan) const;
  bool is_below_floor(const Plan& plan);

  std::shared_ptr<LayerPricer> shared_pricer_;  // for as long as this lives
  LayerPricer& pricer_;
  PlanBounds bounds_;
  GroupBounds group_bounds_;
  const PlanSpace& plans_;
  Objective objective_;
  bool trades_memory_;  // less memory may be worth a longer step
  Bytes limit_;
  Found found_;
  // Of the family at hand, by layout and arrangement.
  std::unordered_map<LayerKey, MemoryFloor, LayerKeyHash> floors_;
  RankOrder first_order_;
  int zero_over_memory_ = -1;  // of the cut at hand, what did not fit in the first order
  double goal_ = 0;
  const SlowGroups* slow_ = nullptr;
  std::size_t most_ = 0;
  std::int64_t place_ = 0;
};

}  // namespace tpsim
