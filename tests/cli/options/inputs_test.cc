// The plan of simulate and the space of plan, from options alone.
#include "cli/options/inputs.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "app/scenario/open_inputs.h"
#include "core/base/files.h"
#include "plans/search/usual_batch.h"
#include "sim/step/simulate.h"
#include "tests/cli/typed_answers.h"
#include "tests/temporary_folder.h"

namespace tpsim::cli {
namespace {

using Layers = std::vector<std::int64_t>;

ModelSpec eight_layers() {
  ModelSpec model;
  model.name = "eight";
  model.layers = 8;
  model.hidden = 64;
  model.ffn_hidden = 256;
  model.vocab = 100;
  model.seq = 32;
  model.attention = {8, 8, 8, PositionKind::kAlibi, 10000.0};
  return model;
}

Arguments arguments_of(const std::vector<std::pair<Opt, std::string>>& given) {
  Arguments arguments;
  for (const auto& [opt, text] : given) arguments.set(opt, text);
  return arguments;
}

Result<Plan> plan_of(const std::vector<std::pair<Opt, std::string>>& given,
                     const std::optional<PlanFile>& file = std::nullopt) {
  return single_plan(arguments_of(given), eight_layers(), file, {});
}

std::string error_of(const std::vector<std::pair<Opt, std::string>>& given) {
  const Result<Plan> plan = plan_of(given);
  return plan.ok() ? "" : to_string(plan.error());
}

}  // namespace

TEST_CASE("stages count embedding and head if that divides evenly, else blocks only") {
  CHECK(default_stage_layers(70, 12) == Layers{5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5});
  CHECK(default_stage_layers(8, 4) == Layers{2, 2, 2, 2});
  CHECK(default_stage_layers(8, 1) == Layers{8});
  const Layers uneven = default_stage_layers(8, 3);
  CHECK(uneven == even_stage_layers(8, 3, true));
}

TEST_CASE("a plan of nothing but defaults runs on one GPU with ZeRO 1 and recomputes nothing") {
  const Result<Plan> plan = plan_of({});
  REQUIRE(plan.ok());
  CHECK(gpu_count(*plan) == 1);
  CHECK(plan->zero == 1);
  CHECK(plan->recompute == Recompute::kNone);
  CHECK(plan->global_batch * eight_layers().seq == 4 << 20);
  CHECK(plan->stage_layers == Layers{8});
}

TEST_CASE("virtual stages imply the interleaved schedule, one virtual stage does not") {
  const Result<Plan> interleaved =
      plan_of({{opt_of(Setting::kPp), "2"}, {opt_of(Setting::kVirtualStages), "2"}});
  REQUIRE(interleaved.ok());
  CHECK(interleaved->schedule == ScheduleKind::kInterleaved);
  CHECK(interleaved->stage_layers.size() == 4);
  CHECK_FALSE(plan_of({{opt_of(Setting::kPp), "2"},
                       {opt_of(Setting::kVirtualStages), "2"},
                       {opt_of(Setting::kSchedule), "1f1b"}})
                  .ok());
}

TEST_CASE("options change a plan file, and its stages only if they no longer fit") {
  PlanFile file;
  file.model = eight_layers();
  file.plan = *plan_of({{opt_of(Setting::kPp), "2"},
                        {opt_of(Setting::kStageLayers), "3,5"},
                        {opt_of(Setting::kGlobalBatch), "16"}});
  CHECK(plan_of({{opt_of(Setting::kMicroBatch), "4"}}, file)->stage_layers == Layers{3, 5});
  CHECK(plan_of({{opt_of(Setting::kMicroBatch), "4"}}, file)->global_batch == 16);
  CHECK(plan_of({{opt_of(Setting::kPp), "4"}}, file)->stage_layers == Layers{2, 2, 2, 2});
  CHECK(plan_of({{Opt("--no-count-embedding"), ""}}, file)->stage_layers == Layers{4, 4});
}

TEST_CASE("stage layers that do not add up to the model are replaced, others stay") {
  PlanFile file;  // a plan of a six-block model, given with a model of eight blocks
  file.plan = *plan_of({{opt_of(Setting::kPp), "2"}, {opt_of(Setting::kGlobalBatch), "16"}});
  file.plan.stage_layers = {2, 4};
  CHECK(plan_of({}, file)->stage_layers == Layers{4, 4});
  file.plan.stage_layers = {3, 5};
  CHECK(plan_of({}, file)->stage_layers == Layers{3, 5});
}

TEST_CASE("a command's defaults apply if neither option nor plan file sets a value") {
  const PlanDefaults defaults{.attention = AttentionKind::kFlash, .usual_batch = false};
  const auto plan = [&](const std::vector<std::pair<Opt, std::string>>& given,
                        const std::optional<PlanFile>& file = std::nullopt) {
    return *single_plan(arguments_of(given), eight_layers(), file, defaults);
  };
  CHECK(plan({}).recompute == Recompute::kNone);
  CHECK(plan({}).attention == AttentionKind::kFlash);
  CHECK(plan({{opt_of(Setting::kDp), "2"}, {opt_of(Setting::kMicroBatch), "3"}}).global_batch == 6);
  CHECK(plan({{opt_of(Setting::kDp), "2"}, {opt_of(Setting::kGlobalBatch), "8"}}).global_batch ==
        8);
  CHECK(plan({{opt_of(Setting::kRecompute), "full"}}).recompute == Recompute::kFull);
  PlanFile file;
  file.plan = *plan_of({{opt_of(Setting::kGlobalBatch), "16"}});
  CHECK(plan({}, file).global_batch == 16);
  CHECK(plan({}, file).attention == AttentionKind::kUnfused);
  const std::int64_t tokens = 4 << 20;
  const std::int64_t batch = plan_of({{opt_of(Setting::kDp), "3"}})->global_batch;
  CHECK(batch % 3 == 0);
  CHECK(std::abs(batch * eight_layers().seq - tokens) <= 3 * eight_layers().seq / 2);
  ModelSpec known = eight_layers();
  known.usual = {"somewhere", 96};
  CHECK(divisible_batch(1024, 1008) == 1008);
  CHECK(divisible_batch(1024, 896) == 1120);
  CHECK(divisible_batch(768, 1024) == 768);
  CHECK(divisible_batch(1, 1000) == 1);
  CHECK(searched_global_batch(known, 7) == 96);
}

TEST_CASE("the default ZeRO stage is the software's, below 3 with pipeline stages") {
  const Catalogue catalogue = Catalogue::open().value();
  Scenario scenario{eight_layers(),
                    catalogue.load_cluster("dgx-a100").value(),
                    catalogue.load_profile("a100-sxm4-80gb").value(),
                    {}};
  const auto zero_of = [&](const std::string& stack, const char* pp) {
    scenario.stack = catalogue.load_stack(stack).value();
    const auto given = arguments_of({{opt_of(Setting::kPp), pp}});
    return single_plan(given, scenario.model, std::nullopt, plan_defaults(scenario))->zero;
  };
  CHECK(zero_of("pytorch", "1") == 0);
  CHECK(zero_of("torchtitan", "1") == 3);
  CHECK(zero_of("torchtitan", "2") == 2);
  CHECK(zero_of("deepspeed-zero3", "1") == 3);
  CHECK(zero_of("deepspeed-zero3", "2") == 1);
  CHECK(zero_of("megatron-core", "1") == 1);
}

TEST_CASE("impossible stage layers are refused with the reason") {
  CHECK(error_of({{opt_of(Setting::kPp), "11"}}).find("too many for the 8 layers") !=
        std::string::npos);
  CHECK(error_of({{opt_of(Setting::kStageLayers), "7"}}).find("add up to 7") != std::string::npos);
  CHECK(error_of({{Opt("--count-embedding"), ""}, {Opt("--no-count-embedding"), ""}}) ==
        "--count-embedding: contradicts --no-count-embedding (give only one of them)");
}

TEST_CASE("settings that are not given stay free in the search") {
  Scenario scenario;
  scenario.model = eight_layers();
  scenario.cluster.name = "small";
  const auto space = search_space(
      arguments_of(
          {{Opt("--gpus"), "8"}, {opt_of(Setting::kTp), "4,2"}, {Opt("--objective"), "memory"}}),
      scenario, std::nullopt);
  REQUIRE(space.ok());
  CHECK(space->gpus == 8);
  CHECK(space->global_batch == searched_global_batch(scenario.model, 8));
  CHECK(space->asked[Setting::kTp] == Layers{2, 4});
  CHECK(space->objective == Objective::kMemory);
  CHECK(space->asked[Setting::kPp].empty());
  CHECK(space->asked[Setting::kRecompute].empty());
  CHECK(space->asked[Setting::kSequenceParallel].empty());
  CHECK(space->memory_limit.value() == 0);
  const auto nothing = search_space(Arguments(), scenario, std::nullopt);
  REQUIRE_FALSE(nothing.ok());
  CHECK(nothing.error().where == "--gpus");
}

namespace {

// The scenario and the plan that the options state, predicted.
std::pair<NamedScenario, PlannedRun> planned(const Arguments& arguments) {
  std::pair<NamedScenario, PlannedRun> both;
  auto& [named, run] = both;
  named = load_scenario(arguments, std::nullopt).value();
  run.plan =
      single_plan(arguments, named.scenario.model, std::nullopt, plan_defaults(named.scenario))
          .value();
  run.predicted = simulate(named.scenario, run.plan).value();
  return both;
}

}  // namespace

TEST_CASE("unstated inputs widen the interval, and stating them narrows it") {
  const auto predicted = [](std::vector<std::pair<Opt, std::string>> given) {
    given.insert(given.end(), {{Opt("--model"), "llama-2-7b"},
                               {opt_of(Setting::kTp), "2"},
                               {opt_of(Setting::kDp), "16"},
                               {opt_of(Setting::kGlobalBatch), "64"}});
    auto [named, run] = planned(arguments_of(given));
    REQUIRE(widen_intervals(named, std::span(&run, 1)).ok());
    return std::pair(named.assumed, run.predicted);
  };
  const auto width = [](const Prediction& p) { return (p.step_high - p.step_low) / p.step; };
  const std::pair cluster{Opt("--cluster"), std::string("dgx-a100")};
  const auto [open, wide] = predicted({cluster});
  const auto [none, narrow] =
      predicted({cluster, {Opt("--stack"), std::string(open.open.front().taken)}});
  REQUIRE(open.open.size() == 1);  // the network is that of the named cluster
  CHECK(open.open.front().input == OpenInput::kSoftware);
  CHECK(none.open.empty());
  CHECK(wide.step == narrow.step);
  CHECK(wide.step_low <= narrow.step_low);
  CHECK(wide.step_high > narrow.step_high);
  CHECK(wide.step_high / wide.step - 1 == Approx(open.half_width_all_open));
  CHECK(open.open.front().half_width_if_stated == Approx(narrow.step_high / narrow.step - 1));
  CHECK(width(wide) > width(narrow));
}

TEST_CASE("an attention kernel and documents that are not stated are open inputs") {
  const auto open_of = [](const char* cluster, const char* stack, const char* kernel) {
    std::vector<std::pair<Opt, std::string>> given = {{Opt("--model"), "llama-2-7b"},
                                                      {Opt("--cluster"), cluster},
                                                      {Opt("--stack"), stack},
                                                      {opt_of(Setting::kDp), "8"},
                                                      {opt_of(Setting::kGlobalBatch), "64"},
                                                      {Opt("--seq"), "32768"},
                                                      {opt_of(Setting::kZero), "3"},
                                                      {opt_of(Setting::kRecompute), "full"}};
    if (*kernel != 0) given.emplace_back(opt_of(StackPart::kAttentionKernel), kernel);
    auto [named, run] = planned(arguments_of(given));
    const double own_low = run.predicted.step_low / run.predicted.step;
    REQUIRE(widen_intervals(named, std::span(&run, 1)).ok());
    std::string open;
    for (const OpenChoice& one : named.assumed.open) {
      open += fmt::format("{} {},", name_of(one.input), one.taken);
    }
    CHECK((run.predicted.step_low / run.predicted.step < own_low) == !open.empty());
    return open;
  };
  const std::string documents = "documents one per sequence,";
  CHECK_THAT(open_of("dgx-h100", "torchtitan", ""), Catch::Contains("attention_kernel flex,"));
  CHECK_THAT(open_of("dgx-h100", "torchtitan", ""), Catch::Contains(documents));
  CHECK(open_of("dgx-h100", "torchtitan", "flex") == documents);
  CHECK(open_of("dgx-h100", "torchtitan", "flash3").empty());
  CHECK(open_of("dgx-h100", "pytorch-fsdp", "") == "attention_kernel flash2,");
  CHECK(open_of("dgx-a100", "pytorch-fsdp", "").empty());  // its kernels are equally fast there
  CHECK(open_of("dgx-h100", "megatron-core", "").empty());
}

TEST_CASE("models that the cluster's usual stack cannot run are planned with another stack") {
  struct Case {
    const char *model, *cluster, *stack;
  };
  for (const Case& one :
       {Case{"bloom-7b1", "dgx-a100", "megatron-deepspeed"}, Case{"gemma-2-9b", "dgx-a100", "nemo"},
        Case{"gemma-2-9b", "mi300x-8", "pytorch-fsdp"},
        Case{"llama-3-8b", "dgx-a100", "megatron-lm"}}) {
    const Result<NamedScenario> named =
        app::load_scenario(app::ScenarioRequest{.model = one.model, .cluster = one.cluster});
    REQUIRE(named.ok());
    CHECK(named->stack == one.stack);
    CHECK(named->stack_is_default);
    CHECK(named->stack_reason.empty() == (named->stack == named->scenario.cluster.stack));
    // A stack that the user states is kept.
    const Result<NamedScenario> stated = app::load_scenario(app::ScenarioRequest{
        .model = one.model, .cluster = one.cluster, .stack = named->scenario.cluster.stack});
    CHECK(stated.ok() == named->stack_reason.empty());
    const Result<NamedScenario> forced =
        app::load_scenario(app::ScenarioRequest{.model = one.model,
                                                .cluster = one.cluster,
                                                .stack = named->scenario.cluster.stack,
                                                .ignore_stack_limits = true});
    CHECK(forced.ok());
  }
}

TEST_CASE("plans of several GPUs assume a stack that can shard") {
  app::ScenarioRequest request{.model = "llama-3.2-1b", .cluster = "a10g-8", .gpus = 1};
  const Result<NamedScenario> alone = app::load_scenario(request);
  REQUIRE(alone.ok());
  CHECK(alone->stack == "pytorch");
  request.gpus = 8;
  const Result<NamedScenario> sharded = app::load_scenario(request);
  REQUIRE(sharded.ok());
  CHECK(sharded->stack == "pytorch-fsdp");
  // A search and the plan that it finds assume the same stack.
  request.gpus = 0;
  CHECK(app::load_scenario(request, app::SearchRequest{.gpus = 8})->stack == "pytorch-fsdp");
  app::StatedSettings settings;
  settings.values[Setting::kDp] = {8};
  CHECK(app::load_scenario(request, settings)->stack == "pytorch-fsdp");
  request.gpus = 8;
  request.stack = "pytorch";
  CHECK(app::load_scenario(request)->stack == "pytorch");
}

TEST_CASE("a load of experts is a word, a number, or a file of counts that the model keeps") {
  const test::TemporaryFolder folder;
  const std::string path = (folder / "counts.txt").string();
  REQUIRE(write_file_atomically(path, "9 1 1 1 1 1 1 1\n2 2 2 2 2 2 2 2\n").ok());
  const auto loaded = [](const std::string& load) {
    return load_scenario(arguments_of({{Opt("--model"), "mixtral-8x7b"},
                                       {Opt("--cluster"), "dgx-h100"},
                                       {opt_of(StackPart::kExpertLoad), load}}),
                         std::nullopt);
  };
  const auto counted = loaded(path);
  REQUIRE(counted.ok());
  CHECK(counted->scenario.stack.parts.expert_load == kCountedLoad);
  CHECK(counted->scenario.model.experts.counts.size() == 16);
  CHECK(loaded("balanced")->scenario.model.experts.counts.empty());
  CHECK(loaded("1.25")->scenario.stack.parts.expert_load == 1250);
  const auto none = loaded("no-such-file");
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().where == "--expert-load");
  CHECK_THAT(none.error().hint, Catch::Contains("file with the token count"));
  REQUIRE(write_file_atomically(path, "9 1 1\n").ok());
  const auto short_line = loaded(path);
  REQUIRE_FALSE(short_line.ok());
  CHECK(short_line.error().where == path + ":1");
}

TEST_CASE("the search chooses the values of parts with the shortest step") {
  const auto searched = [](const std::string& dispatchers) {
    Arguments arguments = arguments_of({{Opt("--model"), "mixtral-8x7b"},
                                        {Opt("--cluster"), "dgx-h100"},
                                        {Opt("--stack"), "megatron-core"},
                                        {Opt("--gpus"), "32"},
                                        {opt_of(Setting::kGlobalBatch), "64"},
                                        {opt_of(Setting::kPp), "2"},
                                        {opt_of(StackPart::kDispatcher), dispatchers}});
    arguments.command = Command::kPlan;
    NamedScenario named = load_scenario(arguments, std::nullopt).value();
    const SearchSpace space = search_space(arguments, named.scenario, std::nullopt).value();
    const SearchResult found = search(named.scenario, space, 1, {}, 2).value();
    adopt_parts(found.tried, named);
    return std::pair(named, found.plans.front().predicted.step);
  };
  const auto [both, step] = searched("alltoall,deepep");
  REQUIRE(both.tried.size() == 2);
  CHECK(both.tried.front().step == step);
  CHECK(*both.tried.front().step <= *both.tried.back().step);
  CHECK(both.parts == both.tried.front().parts);
  for (const TriedParts& one : both.tried) {
    const auto value = one.parts.at(StackPart::kDispatcher);
    const auto [alone, own] = searched(text_of(row_of(StackPart::kDispatcher), value));
    CHECK(alone.tried.empty());
    CHECK(own == *one.step);
  }
}

TEST_CASE("several values of a part are for searches, and a single plan accepts one") {
  Arguments arguments = arguments_of({{Opt("--model"), "mixtral-8x7b"},
                                      {Opt("--cluster"), "dgx-h100"},
                                      {opt_of(StackPart::kDispatcher), "alltoall,deepep"}});
  arguments.command = Command::kSimulate;
  const auto named = load_scenario(arguments, std::nullopt);
  REQUIRE_FALSE(named.ok());
  CHECK(named.error().where == "--dispatcher");
}

TEST_CASE("a search tries several sets of modules, separated by slashes") {
  Arguments arguments = arguments_of({{Opt("--model"), "mixtral-8x7b"},
                                      {Opt("--cluster"), "dgx-h100"},
                                      {opt_of(StackPart::kRecomputeModules), "mlp/core_attn,mlp"}});
  arguments.command = Command::kPlan;
  const PartRow& row = row_of(StackPart::kRecomputeModules);
  const NamedScenario named = load_scenario(arguments, std::nullopt).value();
  CHECK(named.scenario.stack.choices.parts.at(row.part) ==
        std::vector{parse_value(row, "mlp").value(), parse_value(row, "core_attn,mlp").value()});
  arguments.command = Command::kSimulate;
  CHECK_FALSE(load_scenario(arguments, std::nullopt).ok());
}

}  // namespace tpsim::cli
