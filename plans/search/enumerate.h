// Enumerates all combinations of plan settings for a model and a cluster, and counts illegal ones
// by reason.
//
// Plans are grouped into families. A family has one tensor-parallel degree and one value of every
// variant setting (recompute, attention, ...), which determine how a layer is traced and priced.
// Inside a family micro-batches ascend. In a group, a plan that recomputes some blocks represents
// all numbers of recomputed blocks. Families can be visited in any order, by several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "plans/search/allowed_values.h"
#include "plans/search/search_space.h"
#include "sim/bounds/group_bounds.h"
#include "sim/schedule/stage_cut.h"

namespace tpsim {

// Settings of a plan other than layout and chunks, which do not change the cost of a layer.
struct Arrangement {
  int zero = 0;
  RankOrder rank_order{};
};
inline Plan arranged(Plan plan, const Arrangement& arrangement) {
  plan.zero = arrangement.zero;
  plan.rank_order = arrangement.rank_order;
  return plan;
}

// Identifies a group of a space, so that it can be rebuilt.
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

// Plans of one family, layout, micro-batch, number of chunks and schedule, with every arrangement
// and every cut. The space owns the cuts.
struct PlanGroup {
  GroupKey key;
  Plan settings;  // without zero, rank_order, recompute_blocks and stage_layers
  std::span<const StageCut> cuts;
  const CutFloors* floors = nullptr;  // of these cuts
  std::int64_t plans = 0;             // per arrangement
  std::vector<Arrangement> arrangements;
};

struct EnumerationCount {
  std::int64_t considered = 0;
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

  // Calls `visit` with every group of a family that has a legal plan. Illegal combinations are
  // counted by reason. A layout that excludes all its combinations counts all of them. The order is
  // deterministic.
  using GroupVisit = std::function<void(const PlanGroup&)>;
  EnumerationCount visit_groups(std::int64_t family, const GroupVisit& visit) const;
  PlanGroup group(const GroupKey& key) const;

  // Calls `visit` with every legal plan of a family, cut by cut within its group. The plan's
  // stage_layers are not set; they are cut.layers.
  using Visit = std::function<void(const Plan&, const StageCut&)>;
  EnumerationCount visit_family(std::int64_t family, const Visit& visit) const;

  // Visits all families in order.
  EnumerationCount visit_plans(const Visit& visit) const;

  // Returns the allowed numbers of recomputed blocks per chunk, ascending: the requested ones, or
  // all that leave the largest chunk at least one block without recompute.
  std::span<const std::int64_t> recompute_counts(const StageCut& cut) const;
  // Returns the number of plans that a visited plan represents.
  std::int64_t plans_of(const Plan& plan, const StageCut& cut) const {
    const bool some = plan.recompute == Recompute::kBlocks;
    return some ? static_cast<std::int64_t>(recompute_counts(cut).size()) : 1;
  }
  // Whether the space has, for plans that recompute some blocks, the same plans without recompute.
  bool has_without_recompute() const { return has_without_recompute_; }

 private:
  friend class FamilyWalk;
  struct Cuts {
    std::int64_t virtual_stages = 1;
    std::int64_t recompute_counts = 0;  // summed over all cuts
    std::vector<StageCut> cuts;
    std::vector<StageCut> refused;  // cuts that the software does not support
    CutFloors floors;               // of `cuts`
  };

  const std::vector<std::int64_t>& values(Setting setting) const { return space_.asked[setting]; }
  bool is_asked(Setting setting, std::int64_t value) const {
    return is_allowed(scenario_, space_, {setting, value});
  }
  void add_families();
  void add_variants(std::size_t first, const Plan& plan);
  void add_cuts();
  void add_custom_cut(Cuts& cuts, std::int64_t pp) const;
  void exclude_refused(Cuts& cuts, std::int64_t pp) const;

  // Returns the first of the software's rules that the plan violates; null if there is none.
  const char* refusal(const Plan& plan) const;

  const Scenario& scenario_;
  std::vector<const LaunchRule*> rules_;  // of the software, for whole plans
  SearchSpace space_;                     // with the lists filled that do not depend on the layout
  std::vector<std::int64_t> gpu_counts_;
  std::int64_t impossible_rank_orders_ = 0;  // requested, but not supported by the stack
  std::vector<std::int64_t> micro_batches_;
  bool has_without_recompute_ = false;
  bool asks_for_selective_ = false;  // only selective recompute is requested
  std::vector<Plan> families_;       // plans with the tp and the variants of each family
  std::map<std::int64_t, std::vector<Cuts>> cuts_;  // by pp
};

// Visits the whole plans of all families in order.
EnumerationCount enumerate_plans(const Scenario& scenario, const SearchSpace& space,
                                 const std::function<void(const Plan&)>& visit);

}  // namespace tpsim
