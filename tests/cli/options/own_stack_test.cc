// The best plan of a stack is legal for its launcher: export and import return the same plan.
#include <catch2/catch.hpp>

#include "core/scenario/catalogue.h"
#include "core/scenario/plan_file.h"
#include "frameworks/launch/launch_files.h"
#include "plans/search/search.h"

namespace tpsim {
namespace {

struct OwnTarget {
  const char* stack;
  LaunchStack target;
};

constexpr OwnTarget kTargets[] = {
    {"megatron-lm", LaunchStack::kMegatronLm},
    {"megatron-core", LaunchStack::kMegatronLm},
    {"nemo", LaunchStack::kNemo},
    {"megatron-deepspeed", LaunchStack::kMegatronDeepSpeed},
    {"megatron-deepspeed-bloom", LaunchStack::kMegatronDeepSpeed},
    {"torchtitan", LaunchStack::kTorchTitan},
};

}  // namespace

TEST_CASE("the best plan of every stack with launch files is exported to it and read back equal") {
  const Result<Catalogue> catalogue = Catalogue::open();
  REQUIRE(catalogue.ok());
  Scenario scenario;
  scenario.cluster = catalogue->load_cluster("dgx-a100").value();
  scenario.profile = catalogue->load_profile(scenario.cluster.profile).value();
  SearchSpace space;
  space.gpus = 32;
  space.global_batch = 256;
  int planned = 0;
  for (const auto& [stack, target] : kTargets) {
    for (const char* model :
         {"llama-2-7b", "llama-3-8b", "bloom-7b1", "gpt-7.5b", "mixtral-8x7b"}) {
      CAPTURE(stack, model);
      scenario.model = catalogue->load_model(model).value();
      scenario.stack = catalogue->load_stack(stack).value();
      const bool runs = broken_rule(scenario.stack.launcher, RuleScope::kModel, scenario.model,
                                    Plan{}) == nullptr;
      const Result<SearchResult> found = search(scenario, space, 1, {});
      if (!runs) {
        CHECK((!found.ok() || found->plans.empty()));
        continue;
      }
      REQUIRE(found.ok());
      if (found->plans.empty()) continue;  // nothing fits
      const Plan& best = found->plans.front().plan;
      const PlanFile file{scenario.model, "dgx-a100", scenario.profile.name, stack, {}, best};
      const auto files = export_plan(target, file, scenario.cluster.gpus_per_node, scenario.stack);
      REQUIRE(files.ok());
      const auto back = import_plan(target, *files, scenario.model);
      REQUIRE(back.ok());
      CHECK(back->plan == best);
      ++planned;
    }
  }
  CHECK(planned >= 12);
}

TEST_CASE("a stack without limits runs what its launcher cannot") {
  const Result<Catalogue> catalogue = Catalogue::open();
  REQUIRE(catalogue.ok());
  const StackSpec stack = catalogue->load_stack("megatron-deepspeed-bloom").value();
  const ModelSpec llama = catalogue->load_model("llama-2-7b").value();
  Plan plan;
  plan.stage_layers = {llama.layers};
  plan.global_batch = 8;
  CHECK(violated_limit(stack, llama, plan).reason == "cannot run RMSNorm");
  CHECK(violated_limit(without_limits(stack), llama, plan).reason.empty());
}

}  // namespace tpsim
