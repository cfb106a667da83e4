// Enumerates all combinations of plan settings for a model and a cluster, and counts illegal ones
// by reason.
//
// Plans are grouped into families. The plans of a family have the same tensor-parallel degree and
// the same value of every variant setting (recompute, attention, ...), which determine how a layer
// is traced and priced. A family consists of groups (PlanGroup), which are visited in ascending
// order of the micro-batch. With Recompute::kBlocks, one plan of a group represents all numbers of
// recomputed blocks. Families can be visited in any order, by several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "plans/search/allowed_values.h"
#include "plans/search/layouts.h"
#include "plans/search/search_space.h"
#include "sim/bounds/group_bounds.h"
#include "sim/schedule/stage_cut.h"

namespace tpsim {

// The settings that vary within a PlanGroup, in addition to the stage cut.
struct Arrangement {
  int zero = 0;
  RankOrder rank_order{};
};
inline Plan arranged(Plan plan, const Arrangement& arrangement) {
  plan.zero = arrangement.zero;
  plan.rank_order = arrangement.rank_order;
  return plan;
}

// Identifies a group of a space. PlanSpace::group() rebuilds the group from it.
struct GroupKey {
  std::int64_t family = 0;
  ParallelDegrees degrees;
  bool rank_order_matters = false;
  std::int64_t micro_batch = 1;
  std::int64_t virtual_stages = 1;
  ScheduleKind schedule{};
  friend bool operator==(const GroupKey&, const GroupKey&) = default;
};
struct GroupKeyHash {
  std::size_t operator()(const GroupKey& key) const noexcept;
};

// Plans with the same family, layout, micro-batch, number of chunks and schedule: every combination
// of an arrangement and a stage cut. The space owns the cuts.
struct PlanGroup {
  GroupKey key;
  Plan settings;  // without zero, rank_order, recompute_blocks and stage_layers
  std::span<const StageCut> cuts;
  const CutFloors* floors = nullptr;  // lower bounds over `cuts`
  std::int64_t plans = 0;             // number of plans per arrangement
  std::vector<Arrangement> arrangements;
};

struct EnumerationCount {
  std::int64_t considered = 0;
  std::int64_t too_slow = 0;                   // combinations of layouts that LayoutTest left out
  std::map<std::string, std::int64_t> pruned;  // reason -> combinations

  EnumerationCount& operator+=(const EnumerationCount& other);
};

class PlanSpace {
 public:
  // `scenario` must outlive the space.
  PlanSpace(const Scenario& scenario, SearchSpace space);

  RankOrder first_rank_order() const {
    const std::vector<std::int64_t>& orders = values(Setting::kRankOrder);
    return orders.empty() ? RankOrder{} : static_cast<RankOrder>(orders.front());
  }
  std::int64_t families() const { return static_cast<std::int64_t>(families_.size()); }

  // Calls `visit` with every group of a family that has a legal plan, in a deterministic order.
  // Counts illegal combinations by reason. If a layout is illegal, all of its combinations are
  // counted.
  using GroupVisit = std::function<void(const PlanGroup&)>;
  // Returns whether all plans with the layout and micro-batch of `plan`, with any schedule, are too
  // slow to be visited. Their combinations are counted without looking at rules.
  using LayoutTest = std::function<bool(const Plan& plan, bool rank_order_matters)>;
  EnumerationCount visit_groups(std::int64_t family, const GroupVisit& visit,
                                const LayoutTest& is_too_slow = {}) const;
  PlanGroup group(const GroupKey& key) const;

  // Calls `visit` with every legal plan of a family, cut by cut within its group. The plan's
  // stage_layers are not set: use those of the cut.
  using Visit = std::function<void(const Plan&, const StageCut&)>;
  EnumerationCount visit_family(std::int64_t family, const Visit& visit) const;
  // The same for one arrangement and one cut of a group.
  void visit_plans_of(const PlanGroup& group, const Arrangement& arrangement, const StageCut& cut,
                      const Visit& visit) const;

  // Calls `visit` with every legal plan of the space, family by family, in a fixed order.
  EnumerationCount visit_plans(const Visit& visit) const;

  // Returns the allowed numbers of recomputed blocks per chunk, ascending. Without requested
  // numbers, these are all numbers that leave at least one block of the largest chunk without
  // recompute.
  std::span<const std::int64_t> recompute_counts(const StageCut& cut) const;
  // Returns the number of plans that a visited plan represents.
  std::int64_t plans_of(const Plan& plan, const StageCut& cut) const {
    const bool some = plan.recompute == Recompute::kBlocks;
    return some ? static_cast<std::int64_t>(recompute_counts(cut).size()) : 1;
  }
  // Whether the space contains plans without recompute, next to plans that recompute some blocks.
  bool has_without_recompute() const { return has_without_recompute_; }
  // Returns the requested values of a setting that does not depend on the layout.
  const std::vector<std::int64_t>& values(Setting setting) const { return space_.asked[setting]; }

 private:
  friend class FamilyWalk;
  struct Cuts {
    std::int64_t virtual_stages = 1;
    std::int64_t recompute_counts = 0;  // summed over all cuts
    std::vector<StageCut> cuts;
    std::vector<StageCut> refused;  // cuts that the software does not support
    CutFloors floors;               // of `cuts`
  };

  bool is_asked(Setting setting, std::int64_t value) const {
    return is_allowed(scenario_, space_, {setting, value});
  }
  void add_families();
  void add_variants(std::size_t first, const Plan& plan);
  void add_cuts();
  void add_custom_cut(Cuts& cuts, std::int64_t pp) const;
  void exclude_refused(Cuts& cuts, std::int64_t pp) const;

  // Returns the reason of the first launcher or software rule that the plan violates; null if there
  // is none.
  const char* refusal(const Plan& plan) const;

  const Scenario& scenario_;
  // Rules for whole plans that plans of this model with this software may break.
  std::vector<const LaunchRule*> rules_;
  // With the values to try for settings that do not depend on the layout.
  SearchSpace space_;
  std::vector<std::int64_t> gpu_counts_;
  // Number of rank orders to try that the stack does not support.
  std::int64_t impossible_rank_orders_ = 0;
  std::vector<std::int64_t> micro_batches_;
  bool has_without_recompute_ = false;
  bool asks_for_selective_ = false;  // only selective recompute is requested
  std::vector<Plan> families_;       // one plan per family: tp and the variant settings
  std::map<std::pair<std::int64_t, int>, Layouts> layouts_;  // by tp and sequence parallelism
  std::map<std::int64_t, std::vector<Cuts>> cuts_;           // by pp
};

// Calls `visit` with every legal plan of the space, with stage_layers set.
EnumerationCount enumerate_plans(const Scenario& scenario, const SearchSpace& space,
                                 const std::function<void(const Plan&)>& visit);

}  // namespace tpsim
