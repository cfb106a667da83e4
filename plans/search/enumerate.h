// Every combination of plan settings for a model and a cluster, legal or counted with its reason.
//
// Plans come in families: one tensor-parallel degree and one value of every setting that is a
// variant (recompute, attention, ...), which decide how a layer is traced and priced. Inside a
// family micro-batches ascend. Of a group, plans that recompute some blocks of every chunk stand
// once for all their numbers of blocks. Families can be visited in any order, by several threads.
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

// What of a plan is neither its layout nor its chunks and decides no layer's cost by itself.
struct Arrangement {
  int zero = 0;
  RankOrder rank_order{};
};
inline Plan arranged(Plan plan, const Arrangement& arrangement) {
  plan.zero = arrangement.zero;
  plan.rank_order = arrangement.rank_order;
  return plan;
}

// Names a group of a space: enough to make it again.
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

// Plans of one family, layout, micro-batch, number of chunks and schedule: every arrangement with
// every cut. Cuts live as long as the space.
struct PlanGroup {
  GroupKey key;
  Plan settings;  // all but zero, rank_order, recompute_blocks and stage_layers
  std::span<const StageCut> cuts;
  const CutFloors* floors = nullptr;  // of these cuts
  std::int64_t plans = 0;             // of an arrangement
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

  // Calls `visit` with every group of a family that has a legal plan. Combinations that cannot run
  // are counted by reason; a layout that rules out all its combinations counts all of them.
  // Deterministic order.
  using GroupVisit = std::function<void(const PlanGroup&)>;
  EnumerationCount visit_groups(std::int64_t family, const GroupVisit& visit) const;
  PlanGroup group(const GroupKey& key) const;

  // Calls `visit` with every legal plan of a family, cut by cut within its group: everything but
  // stage_layers, which are cut.layers.
  using Visit = std::function<void(const Plan&, const StageCut&)>;
  EnumerationCount visit_family(std::int64_t family, const Visit& visit) const;

  // All families in turn.
  EnumerationCount visit_plans(const Visit& visit) const;

  // How many blocks of every chunk a plan of this cut may recompute, ascending: what was asked for,
  // or any number that leaves the largest chunk a block that is not.
  std::span<const std::int64_t> recompute_counts(const StageCut& cut) const;
  // Plans that a visited one stands for.
  std::int64_t plans_of(const Plan& plan, const StageCut& cut) const {
    const bool some = plan.recompute == Recompute::kBlocks;
    return some ? static_cast<std::int64_t>(recompute_counts(cut).size()) : 1;
  }
  // Whether plans that recompute some blocks stand beside the same ones that recompute none.
  bool has_without_recompute() const { return has_without_recompute_; }

 private:
  friend class FamilyWalk;
  struct Cuts {
    std::int64_t virtual_stages = 1;
    std::int64_t recompute_counts = 0;  // of all cuts
    std::vector<StageCut> cuts;
    std::vector<StageCut> refused;  // that the software does not cut
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

  // The first of the software's rules that the plan breaks; null where it breaks none.
  const char* refusal(const Plan& plan) const;

  const Scenario& scenario_;
  std::vector<const LaunchRule*> rules_;  // of the software, for whole plans
  SearchSpace space_;                     // lists that do not follow from the layout are filled
  std::vector<std::int64_t> gpu_counts_;
  std::int64_t impossible_rank_orders_ = 0;  // asked for, but not the stack's
  std::vector<std::int64_t> micro_batches_;
  bool has_without_recompute_ = false;
  bool asks_for_selective_ = false;  // and for no other recompute
  std::vector<Plan> families_;       // of which a family's plans have tp and the variants
  std::map<std::int64_t, std::vector<Cuts>> cuts_;  // by pp
};

// All families in turn, with whole plans.
EnumerationCount enumerate_plans(const Scenario& scenario, const SearchSpace& space,
                                 const std::function<void(const Plan&)>& visit);

}  // namespace tpsim
