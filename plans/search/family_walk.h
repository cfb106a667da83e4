// Enumerates the groups of one family of a plan space, and counts the rejected combinations by
// reason.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plans/search/enumerate.h"

namespace tpsim {

// Returns whether the other rank order places some group of the plan on different nodes.
bool rank_order_matters(const Scenario& scenario, const Plan& plan);

class FamilyWalk {
 public:
  FamilyWalk(const PlanSpace& space, std::int64_t family);

  EnumerationCount run(const PlanSpace::GroupVisit& visit);
  PlanGroup group(const GroupKey& key);

 private:
  struct Layout {
    ParallelDegrees degrees;
    bool rank_order_matters = false;
  };

  std::int64_t plans_of(const PlanSpace::Cuts& cuts) const {
    return plan_.recompute == Recompute::kBlocks ? cuts.recompute_counts
                                                 : static_cast<std::int64_t>(cuts.cuts.size());
  }
  const std::vector<std::int64_t>& values(Setting setting) const { return space_.values(setting); }
  // has(): whether the software supports a value. refusal(): the reason if it does not.
  bool has(const SettingValue& value) const { return scenario_.stack.choices.has(value); }
  static const char* refusal(Setting setting) { return tpsim::refusal_reason(setting).c_str(); }

  void prune(const char* reason, std::int64_t combinations);
  std::int64_t settings() const;
  std::int64_t rank_orders() const;
  void add_layouts();
  void add_expert_layouts(ParallelDegrees degrees);
  void add_layout(const ParallelDegrees& degrees);
  bool rank_order_matters(const ParallelDegrees& degrees) const;
  const char* refusal_reason(const ParallelDegrees& degrees) const;
  void visit_schedules(const PlanSpace::GroupVisit& visit);
  void visit_schedule(const PlanSpace::Cuts& by_chunks, const PlanSpace::GroupVisit& visit);
  bool suits(ScheduleKind schedule) const;
  PlanGroup arrange(const PlanSpace::Cuts& by_chunks);
  void arrange_ranks(PlanGroup& group);
  const char* reason_against_family() const;
  bool runs_without_zero();
  const char* reason_against_zero();

  const Scenario& scenario_;
  const PlanSpace& space_;
  const SearchSpace& asked_;
  std::int64_t family_;
  Plan plan_;
  const char* reason_against_family_ = nullptr;
  std::vector<Layout> layouts_;
  bool rank_order_matters_ = false;  // whether it matters in the current layout
  EnumerationCount count_;
  std::vector<std::pair<const char*, std::int64_t>> pruned_;  // so far, few reasons
};

}  // namespace tpsim
