#include "plans/search/nearest_miss.h"

#include <limits>

#include "sim/bounds/group_bounds.h"
#include "sim/bounds/plan_bounds.h"

namespace tpsim {
namespace {

class MissSearch {
 public:
  MissSearch(LayerPricer& pricer, const PlanSpace& plans)
      : pricer_(pricer), plans_(plans), groups_(pricer), bounds_(pricer) {}

  Candidate run() {
    const Bytes known = peak_of_most_promising();
    miss_.peak = known.value();
    for (std::int64_t family = 0; family < plans_.families(); ++family) {
      plans_.visit_groups(family, [this](const PlanGroup& group) { visit(group); });
      pricer_.drop_programs();
    }
    return miss_;
  }

 private:
  bool may_fit_hosts(const Plan& plan) {
    return !offloads_optimizer(plan) || groups_.may_fit_hosts(plan);
  }

  // Returns the lowest peak in the group with the lowest bound; infinite if it has no valid plan.
  Bytes peak_of_most_promising() {
    Bytes least(std::numeric_limits<double>::max());
    GroupKey key;
    for (std::int64_t family = 0; family < plans_.families(); ++family) {
      plans_.visit_groups(family, [&](const PlanGroup& group) {
        for (const Arrangement& arrangement : group.arrangements) {
          const Plan plan = arranged(group.settings, arrangement);
          const Bytes held = groups_.least_held(plan, *group.floors);
          if (held >= least || !may_fit_hosts(plan)) continue;
          least = held;
          key = group.key;
        }
      });
    }
    miss_.peak = std::numeric_limits<double>::max();
    if (least.value() < miss_.peak) visit(plans_.group(key));
    const Bytes lowest(miss_.peak);
    miss_ = {};
    return lowest;
  }

  void visit(const PlanGroup& group) {
    std::vector<Arrangement> left;
    for (const Arrangement& arrangement : group.arrangements) {
      const Plan plan = arranged(group.settings, arrangement);
      if (groups_.least_held(plan, *group.floors).value() > miss_.peak || !may_fit_hosts(plan) ||
          groups_.least_peak(plan, *group.floors).value() > miss_.peak) {
        continue;
      }
      left.push_back(arrangement);
    }
    for (const StageCut& cut : group.cuts) {
      for (const Arrangement& arrangement : left) {
        plans_.visit_plans_of(
            group, arrangement, cut,
            [this](const Plan& plan, const StageCut& of_plan) { consider(plan, of_plan); });
      }
    }
  }

  void consider(const Plan& plan, const StageCut& cut) {
    if (offloads_optimizer(plan) && !bounds_.fits_hosts(plan, cut)) return;
    const Bytes peak = bounds_.evaluate(plan, cut, Bytes(miss_.peak)).peak;
    const bool is_lower =
        miss_.cut == nullptr ? peak.value() <= miss_.peak : peak.value() < miss_.peak;
    if (is_lower) miss_ = {0, 0, peak.value(), 0, 0, plan, &cut};
  }

  LayerPricer& pricer_;
  const PlanSpace& plans_;
  GroupBounds groups_;
  PlanBounds bounds_;
  Candidate miss_;  // with the lowest peak so far
};

}  // namespace

Candidate nearest_miss(LayerPricer& pricer, const PlanSpace& plans) {
  return MissSearch(pricer, plans).run();
}

}  // namespace tpsim
