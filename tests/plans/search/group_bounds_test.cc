// Bounds of a group of plans hold for every plan of the group.
#include "sim/bounds/group_bounds.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "plans/search/enumerate.h"
#include "sim/bounds/plan_bounds.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

Scenario scenario_of(ModelSpec model, bool overlaps) {
  Scenario scenario = test::small_scenario(std::move(model));
  scenario.stack.parts.overlap_p2p = overlaps;
  scenario.stack.training.overlap_gradient_reduction = overlaps;
  scenario.stack.training.overlap_parameter_gather = overlaps;
  scenario.stack.rank_jitter = overlaps ? 0.01 : 0.0;
  scenario.stack.memory.caching_allocator = overlaps;
  return scenario;
}

// Dense blocks followed by MoE blocks.
ModelSpec mixture_after_dense() {
  ModelSpec model = test::small_mixture();
  model.layers = 5;
  BlockShape mixture = block_of_kind(model, 0), dense = mixture;
  dense.experts = {};
  set_blocks(model, {dense, dense, mixture, mixture, mixture});
  return model;
}

struct Extremes {
  double lowest_ratio = std::numeric_limits<double>::max();  // plan's step / bound of its group
  std::int64_t plans = 0;
};

Extremes hold_for_all_plans(const Scenario& scenario, const SearchSpace& space) {
  LayerPricer pricer(scenario);
  PlanBounds bounds(pricer);
  GroupBounds groups(pricer);
  const PlanSpace plans(pricer.scenario(), space);
  Extremes extremes;
  const Bytes unlimited(1e18);
  const auto check = [&](const PlanGroup& group, const Plan& plan, const StageCut& cut) {
    const GroupBounds::Times least = groups.least_times(plan, *group.floors);
    const Bytes peak =
        std::max({groups.least_held(plan, *group.floors), groups.least_of_block(plan),
                  groups.least_peak(plan, *group.floors)});
    const PlanBounds::Value value = bounds.evaluate(plan, cut, unlimited);
    if (peak > value.peak || least.step > value.step || least.busy > value.busy) {
      FAIL_CHECK(scenario.model.name << " tp " << plan.degrees.tp << " pp " << plan.degrees.pp
                                     << " v " << plan.virtual_stages << " ep " << plan.degrees.ep
                                     << " zero " << plan.zero << ": " << least.step.value()
                                     << " of " << value.step.value() << " s, " << peak.value()
                                     << " of " << value.peak.value() << " bytes");
    }
    Plan core = plan;
    core.zero = 0;
    core.recompute = Recompute::kNone;
    const double least_work = groups.least_work(plan, *group.floors).step.value();
    const double least_core = groups.least_core(plan, core, *group.floors).step.value();
    const double of_layout = groups.least_device(core).step.value();
    if (of_layout > least_core || least_core > least_work || least_work > least.step.value()) {
      FAIL_CHECK(scenario.model.name << ", recompute " << name_of(plan.recompute) << ", zero "
                                     << plan.zero << ": layout " << of_layout << " s, core "
                                     << least_core << " s, layers " << least_work << " s, group "
                                     << least.step.value() << " s");
    }
    extremes.lowest_ratio = std::min(extremes.lowest_ratio, value.step / least.step);
    ++extremes.plans;
  };
  for (std::int64_t family = 0; family < plans.families(); ++family) {
    plans.visit_groups(family, [&](const PlanGroup& group) {
      for (const StageCut& cut : group.cuts) {
        if (plans.plans_of(group.settings, cut) == 0) continue;
        for (const Arrangement& arrangement : group.arrangements) {
          Plan plan = arranged(group.settings, arrangement);
          if (plan.recompute != Recompute::kBlocks) {
            check(group, plan, cut);
            continue;
          }
          for (const std::int64_t blocks : plans.recompute_counts(cut)) {
            plan.recompute_blocks = blocks;
            check(group, plan, cut);
          }
        }
      }
    });
  }
  return extremes;
}

}  // namespace

TEST_CASE("no plan needs less memory or time than its group") {
  SearchSpace space;
  space.gpus = 8;
  space.global_batch = 16;
  space.uneven_ends = 1;
  for (const bool overlaps : {false, true}) {
    for (const ModelSpec& model :
         {test::small_bloom(), test::small_llama(), test::small_mixture(), mixture_after_dense()}) {
      const Extremes extremes = hold_for_all_plans(scenario_of(model, overlaps), space);
      CHECK(extremes.plans > 1000);
      CHECK(extremes.lowest_ratio < 1.02);  // the bound of some plan is nearly exact
    }
  }
}

TEST_CASE("a group can be reconstructed from its key") {
  const Scenario scenario = test::small_scenario(test::small_mixture());
  SearchSpace space;
  space.gpus = 8;
  space.global_batch = 16;
  const PlanSpace plans(scenario, space);
  for (std::int64_t family = 0; family < plans.families(); ++family) {
    plans.visit_groups(family, [&](const PlanGroup& group) {
      const PlanGroup again = plans.group(group.key);
      CHECK(again.settings.degrees == group.settings.degrees);
      CHECK(again.settings.micro_batch == group.settings.micro_batch);
      CHECK(again.settings.schedule == group.settings.schedule);
      CHECK(again.cuts.data() == group.cuts.data());
      CHECK(again.plans == group.plans);
      REQUIRE(again.arrangements.size() == group.arrangements.size());
      for (std::size_t i = 0; i < again.arrangements.size(); ++i) {
        CHECK(again.arrangements[i].zero == group.arrangements[i].zero);
        CHECK(again.arrangements[i].rank_order == group.arrangements[i].rank_order);
      }
    });
  }
}

}  // namespace tpsim
