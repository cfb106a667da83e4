// Every plan is either unchanged by export and import, or refused with a reason.
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <utility>

#include "frameworks/launch/launch_files.h"
#include "plans/search/enumerate.h"
#include "tests/frameworks/launch/launch_plans.h"
#include "tests/frameworks/launch/stack_rules.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

using test::file_of;
using test::holds_line;
using test::without;

const std::vector<LaunchStack> kStacks = {LaunchStack::kMegatronLm, LaunchStack::kMegatronDeepSpeed,
                                          LaunchStack::kNemo,       LaunchStack::kTorchTitan,
                                          LaunchStack::kNanotron,   LaunchStack::kAccelerate,
                                          LaunchStack::kDeepSpeed,  LaunchStack::kSlurm,
                                          LaunchStack::kKubernetes};

// True if the stack's configuration has required settings that are not part of a plan.
bool names_more(LaunchStack stack) {
  return stack == LaunchStack::kNanotron || stack == LaunchStack::kAccelerate ||
         stack == LaunchStack::kDeepSpeed;
}

// All combinations of the search on 16 GPUs, with every dtype and rank order, with and without
// sequence parallelism. With sanitizers only one in TPSIM_EVERY_PLAN.
std::vector<Plan> all_plans(const ModelSpec& model) {
  std::vector<Plan> plans;
  SearchSpace space;
  space.gpus = 16;
  space.global_batch = 32;
  space.uneven_ends = 0;
  space.asked[Setting::kRankOrder] = {static_cast<std::int64_t>(RankOrder::kTpDpPp)};
  space.asked[Setting::kCp] = {1, 2};
  space.asked[Setting::kRecomputeBlocks] = {1};
  space.asked[Setting::kOffload] = {0, 1};  // without and with an offloaded optimizer
  std::size_t seen = 0;
  enumerate_plans(test::small_scenario(model), space, [&](const Plan& plan) {
    if (seen++ % TPSIM_EVERY_PLAN != 0) return;
    plans.push_back(plan);
    Plan other = plan;
    other.dtype = other.gradient_dtype = DType::kFloat16;
    other.rank_order = RankOrder::kTpPpDp;
    plans.push_back(other);
    other.rank_order = RankOrder::kTpDpPp;
    plans.push_back(other);
  });
  return plans;
}

// A legal plan with mostly random settings.
Plan random_plan(const ModelSpec& model, std::mt19937& random) {
  const auto pick = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
  };
  for (;;) {
    Plan plan;
    plan.degrees = {.tp = pick({1, 2, 4}), .pp = pick({1, 2, 3, 4, 8}), .dp = pick({1, 2, 3, 8})};
    plan.virtual_stages = pick({1, 1, 2, 3});
    plan.zero = static_cast<int>(pick({0, 1, 2, 3}));
    plan.micro_batch = pick({1, 2, 3, 5});
    plan.global_batch = plan.degrees.dp * plan.micro_batch * pick({1, 2, 6, 24});
    plan.sequence_parallel = pick({0, 1}) == 1;
    plan.recompute = static_cast<Recompute>(pick({0, 1, 2, 3}));
    if (plan.recompute == Recompute::kBlocks) plan.recompute_blocks = pick({1, 2, 3});
    plan.attention = static_cast<AttentionKind>(pick({0, 1}));
    plan.schedule = static_cast<ScheduleKind>(pick({0, 1, 2}));
    plan.dtype = static_cast<DType>(pick({0, 1, 2}));
    plan.gradient_dtype = pick({0, 1}) == 0 ? DType::kFloat32 : static_cast<DType>(pick({0, 1, 2}));
    plan.offload = pick({0, 0, 0, 0, 1}) == 0 ? Offload::kNone : Offload::kOptimizer;
    plan.rank_order = pick({0, 0, 1}) == 0 ? RankOrder::kTpDpPp : RankOrder::kTpPpDp;
    plan.stage_layers = even_stage_layers(model.layers, chunk_count(plan), pick({0, 1}) == 1);
    if (plan.stage_layers.empty()) continue;
    if (pick({0, 0, 1}) == 1) {  // moves all blocks of a stage to another stage
      const std::size_t from = random() % plan.stage_layers.size();
      const std::size_t to = random() % plan.stage_layers.size();
      plan.stage_layers[to] += std::exchange(plan.stage_layers[from], 0) * (from != to ? 1 : 0);
    }
    if (validate(plan, model).ok()) return plan;
  }
}

}  // namespace

TEST_CASE("every plan of the search comes back exactly, or is refused with a reason") {
  for (const ModelSpec& model : {test::small_bloom(), test::small_llama(), test::small_gpt()}) {
    std::map<LaunchStack, int> taken;
    for (const Plan& plan : all_plans(model)) {
      for (const LaunchStack stack : kStacks) {
        const auto files = export_plan(stack, file_of(model, plan), 4);
        if (!files.ok()) {
          CHECK(files.error().kind == ErrorKind::kBadInput);
          CHECK_FALSE(files.error().hint.empty());
          continue;
        }
        ++taken[stack];
        REQUIRE(test::objection(stack, *files) == "");
        constexpr int kJobs = 100;  // bash runs a job to read it
        if (is_job(stack) && taken[stack] % kJobs != 0) continue;
        const auto back = import_plan(stack, *files, model);
        INFO(name_of(stack) << " " << short_name(plan)
                            << (back.ok() ? "" : to_string(back.error())));
        REQUIRE(back.ok());
        CHECK(back->plan == plan);
        CHECK(back->outside.empty() != names_more(stack));
      }
    }
    const bool bloom = model.embedding_norm;
    const bool llama = model.norm == NormKind::kRmsNorm;
    CHECK((taken[LaunchStack::kMegatronLm] > 0) == !bloom);
    CHECK((taken[LaunchStack::kNemo] > 0) == !bloom);
    CHECK((taken[LaunchStack::kMegatronDeepSpeed] > 0) == !llama);
    CHECK((taken[LaunchStack::kTorchTitan] > 0) == llama);
    CHECK((taken[LaunchStack::kNanotron] > 0) == llama);
    CHECK(taken[LaunchStack::kAccelerate] > 0);
    CHECK(taken[LaunchStack::kDeepSpeed] > 0);
  }
}

TEST_CASE("random plans come back exactly in every dimension, or are refused with a reason") {
  constexpr int kPlans = 6000;
  std::mt19937 random(20220711);
  std::map<LaunchStack, int> taken;
  for (ModelSpec model : {test::small_bloom(), test::small_llama(), test::small_gpt()}) {
    model.hidden_dropout = model.norm == NormKind::kRmsNorm ? 0 : 0.1;
    for (int i = 0; i < kPlans; ++i) {
      const Plan plan = random_plan(model, random);
      StackSpec software;
      software.training.overlap_gradient_reduction = i % 2 == 1;
      software.training.overlap_parameter_gather = i % 4 == 3;
      software.parts.cp_comm_type = i % 3 == 0 ? CpCommType::kP2p : CpCommType::kAllGather;
      for (const LaunchStack stack : kStacks) {
        const auto files = export_plan(stack, file_of(model, plan), 1, software);
        INFO(name_of(stack) << " " << short_name(plan));
        if (!files.ok()) {
          CHECK_FALSE(files.error().hint.empty());
          continue;
        }
        ++taken[stack];
        REQUIRE(test::objection(stack, *files) == "");
        constexpr int kJobs = 500;
        if (is_job(stack) && taken[stack] % kJobs != 0) continue;
        const auto back = import_plan(stack, *files, model);
        if (!back.ok()) FAIL(to_string(back.error()));
        REQUIRE(back->plan == plan);
        const auto exchange = back->parts.find(StackPart::kCpCommType);
        if (exchange != back->parts.end()) {
          REQUIRE(exchange->second == static_cast<int>(software.parts.cp_comm_type));
        }
      }
    }
  }
  for (const LaunchStack stack : kStacks) CHECK(taken[stack] > 20);
}

TEST_CASE("context parallelism is exported to stacks with the reference model's method") {
  const ModelSpec model = test::small_llama();
  Plan plan = test::plan_of(model, {.tp = 2, .pp = 1, .dp = 2, .cp = 2}, 4);
  plan.attention = AttentionKind::kFlash;
  plan.recompute = Recompute::kNone;
  plan.zero = 1;
  const auto megatron = export_plan(LaunchStack::kMegatronLm, file_of(model, plan), 4);
  REQUIRE(megatron.ok());
  CHECK(holds_line(megatron->front().text, "--context-parallel-size 2"));
  CHECK(holds_line(megatron->front().text, "--cp-comm-type all_gather"));
  // Without the option Megatron uses its ring (p2p). PyTorch's context parallelism has no equal
  // option.
  const auto exchanged = [&](const std::string& instead) {
    auto files = *megatron;
    files.front().text = without(files.front().text, "  --cp-comm-type all_gather\n", instead);
    const auto back = import_plan(LaunchStack::kMegatronLm, files, model);
    if (!back.ok()) return back.error().message;
    const PartRow& row = row_of(StackPart::kCpCommType);
    return text_of(row, back->parts.at(row.part));
  };
  CHECK(exchanged("") == "p2p");
  CHECK(exchanged("  --cp-comm-type all_gather\n") == "all_gather");
  CHECK(exchanged("  --cp-comm-type allgather allgather\n") == "all_gather");
  CHECK_THAT(exchanged("  --cp-comm-type p2p a2a\n"), Catch::Contains("is p2p a2a"));
  CHECK(exchanged("  --cp-comm-type a2a\n") == "a2a");
  CHECK_THAT(exchanged("  --cp-comm-type a2a+p2p\n"), Catch::Contains("p2p, all_gather and a2a"));
  PlanFile ring = file_of(model, plan);
  ring.parts = {{StackPart::kCpCommType, static_cast<int>(CpCommType::kP2p)}};
  for (const LaunchStack stack : {LaunchStack::kMegatronLm, LaunchStack::kNemo}) {
    const auto files = export_plan(stack, ring, 4);
    REQUIRE(files.ok());
    CHECK(import_plan(stack, *files, model).value().parts.at(StackPart::kCpCommType) ==
          ring.parts.at(StackPart::kCpCommType));
  }
  ring.parts = {{StackPart::kCpCommType, static_cast<int>(CpCommType::kTorchRing)}};
  CHECK_THAT(export_plan(LaunchStack::kMegatronLm, ring, 4).error().hint, Catch::Contains("p2p"));

  const auto titan = export_plan(LaunchStack::kTorchTitan, file_of(model, plan), 4);
  REQUIRE_FALSE(titan.ok());
  CHECK_THAT(titan.error().hint, Catch::Contains("ZeRO 2 or 3"));
  plan.zero = 3;
  const auto sharded = export_plan(LaunchStack::kTorchTitan, file_of(model, plan), 4);
  REQUIRE(sharded.ok());
  CHECK(import_plan(LaunchStack::kTorchTitan, *sharded, model).value().plan == plan);

  const ModelSpec gpt = test::small_gpt();
  plan = test::plan_of(gpt, {.tp = 2, .pp = 1, .dp = 2, .cp = 2}, 4);
  const auto unfused = export_plan(LaunchStack::kMegatronLm, file_of(gpt, plan), 4);
  REQUIRE_FALSE(unfused.ok());
  CHECK_THAT(unfused.error().message, Catch::Contains("unfused attention"));
  const auto deepspeed = export_plan(LaunchStack::kMegatronDeepSpeed, file_of(gpt, plan), 4);
  REQUIRE_FALSE(deepspeed.ok());
  CHECK_THAT(deepspeed.error().message, Catch::Contains("context parallelism"));
}

TEST_CASE("uneven stages are exported to Megatron and refused by stacks with equal stages") {
  ModelSpec model = test::small_gpt();
  Plan plan = test::plan_of(model, {.tp = 2, .pp = 4, .dp = 2}, 4);
  plan.stage_layers = {0, 3, 4, 1};
  for (const LaunchStack stack : {LaunchStack::kMegatronLm, LaunchStack::kNemo}) {
    const auto files = export_plan(stack, file_of(model, plan), 4);
    REQUIRE(files.ok());
    CHECK(import_plan(stack, *files, model).value().plan == plan);
  }
  CHECK_FALSE(export_plan(LaunchStack::kMegatronDeepSpeed, file_of(model, plan), 4).ok());
}

}  // namespace tpsim
