// The plans of one family after the other in closed form: which fit, and how good each can be.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plans/enumerate.h"
#include "plans/search.h"
#include "sim/layer_pricer.h"
#include "sim/plan_bounds.h"

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

// Evaluates the plans of families in closed form; one for each thread.
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
    std::vector<Candidate> candidates;
  };

  FamilySearch(std::shared_ptr<const PriceLists> prices, const PlanSpace& plans,
               const SearchSpace& space, bool trades_memory)
      : pricer_(std::move(prices)),
        bounds_(pricer_),
        plans_(plans),
        objective_(space.objective),
        trades_memory_(trades_memory),
        limit_(memory_limit(pricer_.scenario(), space)),
        first_order_(plans.first_rank_order()) {}

  // Stops adding candidates when there are more than `most`.
  Found run(std::int64_t family, std::int64_t most);

 private:
  struct MemoryFloor {
    std::int64_t cp;
    std::int64_t micro_batch = 0;
    bool is_over_limit = false;
  };

  void consider(const Plan& plan, const StageCut& cut);
  void consider_counts(Plan plan, const StageCut& cut);
  bool add_if_it_fits(const Plan& plan, const StageCut& cut);
  bool fewest_is_fastest(const Plan& plan) const;
  bool is_below_floor(const Plan& plan);
  MemoryFloor& floor_of(std::int64_t cp);

  LayerPricer pricer_;
  PlanBounds bounds_;
  const PlanSpace& plans_;
  Objective objective_;
  bool trades_memory_;  // less memory may be worth a longer step
  Bytes limit_;
  Found found_;
  std::vector<MemoryFloor> floors_;  // of the family at hand
  RankOrder first_order_;
  bool was_over_memory_ = false;  // the plan before
  std::size_t most_ = 0;
  std::int64_t place_ = 0;
};

}  // namespace tpsim
