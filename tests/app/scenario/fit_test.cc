// Suggestions for plans that do not fit in memory.
#include "app/scenario/fit.h"

#include <catch2/catch.hpp>
#include <string>

#include "app/answers/plan_answers.h"
#include "app/scenario/available_part.h"
#include "app/scenario/plan_request.h"
#include "core/scenario/catalogue.h"
#include "plans/search/search.h"
#include "sim/step/simulate.h"

namespace tpsim {
namespace {

struct Searched {
  app::NamedScenario named;
  SearchSpace space;
  SearchResult found;
};

// Searches layouts of LLaMA 3 8B on 64 A10G without reduce-scatter after every micro-batch, or with
// these parts.
Searched searched(const PartLists& parts) {
  app::ScenarioRequest request;
  request.model = "llama-3-8b";
  request.cluster = "a10g-8";
  request.stack = "pytorch-fsdp";
  request.parts = parts;
  app::SearchRequest asked;
  asked.gpus = 64;
  asked.oom_risk = 0.5;
  asked.settings.values[Setting::kGlobalBatch] = {512};
  app::NamedScenario named = app::load_scenario(request, asked).value();
  SearchSpace space = app::search_space(asked, named.scenario, std::nullopt).value();
  SearchResult found = search(named.scenario, space, 1, {}).value();
  return {std::move(named), std::move(space), std::move(found)};
}

TEST_CASE("software that saves memory is suggested, and plans fit with it") {
  const Searched misses = searched({});
  REQUIRE(misses.found.plans.empty());
  const Error error = app::nothing_fits(misses.named, misses.space, misses.found);
  CHECK_THAT(error.hint, Catch::Contains("--gradient-sync every_micro_batch: tp1 pp1 dp64"));
  const PartRow& row = row_of(StackPart::kGradientSync);
  const std::int64_t often = parse_value(row, "every_micro_batch").value();
  CHECK_FALSE(searched({{StackPart::kGradientSync, {often}}}).found.plans.empty());
}

// Returns the error of a search without a legal plan.
Error refused(app::ScenarioRequest request, const app::SearchRequest& asked) {
  const app::NamedScenario named = app::load_scenario(std::move(request), asked).value();
  const SearchSpace space = app::search_space(asked, named.scenario, std::nullopt).value();
  const SearchResult found = search(named.scenario, space, 1, {}).value();
  REQUIRE(found.plans.empty());
  return app::nothing_fits(named, space, found);
}

TEST_CASE("a setting that the stack lacks is refused for that reason, whatever else it lacks") {
  const Catalogue catalogue = Catalogue::open().value();
  int refusals = 0;
  for (const char* stack : {"pytorch-fsdp", "torchtitan", "deepspeed-zero3", "nemo"}) {
    const StackSpec spec = catalogue.load_stack(stack).value();
    for (const SettingValue value :
         {SettingValue{Setting::kOffload, static_cast<std::int64_t>(Offload::kOptimizer)},
          SettingValue{Setting::kRecompute, static_cast<std::int64_t>(Recompute::kSelective)},
          SettingValue{Setting::kAttention, static_cast<std::int64_t>(AttentionKind::kUnfused)}}) {
      if (spec.choices.has(value)) continue;
      app::SearchRequest asked;
      asked.gpus = 8;
      asked.settings.values[value.setting] = {value.value};
      const Error error =
          refused({.model = "llama-3-8b", .cluster = "dgx-h100", .stack = stack}, asked);
      INFO(stack << ' ' << to_string(value) << ": " << error.message);
      CHECK(error.message.find("supports " + std::string(option_of(value.setting))) !=
            std::string::npos);
      ++refusals;
    }
  }
  CHECK(refusals > 3);
}

TEST_CASE("a pipeline schedule is refused for the lack of stages, not of layouts") {
  app::SearchRequest asked;
  asked.gpus = 8;
  asked.settings.values[Setting::kSchedule] = {static_cast<std::int64_t>(ScheduleKind::kGpipe)};
  const Error error =
      refused({.model = "llama-3-8b", .cluster = "dgx-h100", .stack = "pytorch-fsdp"}, asked);
  INFO(error.message);
  CHECK(error.message.find("needs more than one stage") != std::string::npos);
}

TEST_CASE("a batch that another batch replaces is the reason, and hints are whole") {
  struct Case {
    const char* model;
    const char* stack;
    std::int64_t gpus, batch;
  };
  for (const Case& one : {Case{"llama-3-8b", "torchtitan", 56, 240},
                          Case{"llama-3-8b", "pytorch-fsdp", 1000, 10007}}) {
    app::SearchRequest asked;
    asked.gpus = one.gpus;
    asked.settings.values[Setting::kGlobalBatch] = {one.batch};
    const Error error =
        refused({.model = one.model, .cluster = "dgx-h100", .stack = one.stack}, asked);
    INFO(error.message << " (" << error.hint << ')');
    CHECK(error.message.find("global batch does not divide by dp") != std::string::npos);
    CHECK_FALSE(error.hint.starts_with(","));
    const std::size_t at = error.hint.find("write --global-batch ");
    REQUIRE(at != std::string::npos);
    asked.settings.values[Setting::kGlobalBatch] = {
        std::stoll(error.hint.substr(at + std::string("write --global-batch ").size()))};
    const app::NamedScenario named =
        app::load_scenario({.model = one.model, .cluster = "dgx-h100", .stack = one.stack}, asked)
            .value();
    const SearchSpace space = app::search_space(asked, named.scenario, std::nullopt).value();
    CHECK_FALSE(search(named.scenario, space, 1, {}).value().plans.empty());
  }
}

TEST_CASE("a weak scaling curve has whole batches") {
  app::ScalingRequest request{.scenario = {.model = "llama-3-8b", .cluster = "dgx-h100"},
                              .gpus = {16, 24},
                              .is_weak = true};
  request.search.settings.values[Setting::kGlobalBatch] = {129};
  const auto refused = app::scaling_answer(request);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().hint == "write 130");
  request.search.settings.values[Setting::kGlobalBatch] = {130};
  const app::ScalingAnswer answer = app::scaling_answer(request).value();
  REQUIRE(answer.sizes.size() == 2);
  CHECK(answer.sizes[1].best->plan.global_batch == 195);
}

// Returns the answer of `plan` for 8 L40S with 64 sequences of 4,096 tokens.
app::PlanRequest request_of(const std::string& model, const std::string& stack = "") {
  app::PlanRequest request;
  request.scenario.model = model;
  request.scenario.cluster = "l40s-8";
  request.scenario.stack = stack;
  request.scenario.seq = 4096;
  request.search.gpus = 8;
  request.search.settings.values[Setting::kGlobalBatch] = {64};
  return request;
}

app::PlanAnswer planned(const std::string& model, const std::string& stack = "") {
  return app::plan_answer(request_of(model, stack)).value();
}

TEST_CASE("a search in which no plan fits tries software that saves memory, then other stacks") {
  for (const char* model : {"qwen3-8b", "gemma-3-27b", "qwen3-32b"}) {
    CAPTURE(model);
    const app::PlanAnswer answer = planned(model);
    REQUIRE_FALSE(answer.found.plans.empty());
    CHECK_THAT(answer.named.remedy, Catch::StartsWith("no plan fits with the defaults of "));
    const Prediction again =
        simulate(answer.named.scenario, answer.found.plans.front().plan).value();
    CHECK(again.step == answer.found.plans.front().predicted.step);
    CHECK(fits_in_memory(again, answer.space.oom_risk));
  }
  CHECK(planned("qwen3-0.6b").named.remedy.empty());
}

TEST_CASE("searches that try remedies have one progress, which never decreases") {
  const auto [model, remedy] = GENERATE(std::pair{"qwen3-8b", "--loss-head"},  // parts
                                        std::pair{"phi-4", "--stack"});
  app::PlanRequest request = request_of(model);
  double last = 0, first = 1;
  request.search.progress = [&](double share) {
    CHECK(share >= last);
    CHECK(share <= 1);
    first = std::min(first, share);
    last = share;
  };
  const app::PlanAnswer answer = app::plan_answer(request).value();
  CHECK_THAT(answer.named.remedy, Catch::Contains(remedy));
  CHECK(first < 0.2);
  CHECK(last == 1);
}

TEST_CASE("a stated stack is kept if no plan fits, and the message suggests another") {
  const app::PlanAnswer answer = planned("qwen3-32b", "pytorch-fsdp");
  CHECK(answer.named.stack == "pytorch-fsdp");
  REQUIRE(answer.found.plans.empty());
  CHECK_THAT(app::nothing_fits(answer.named, answer.space, answer.found).hint,
             Catch::StartsWith("with --stack "));
}

TEST_CASE("parts that a search held fixed are those that neither the request nor a remedy set") {
  const app::PlanAnswer answer = planned("qwen3-8b");
  const PartValues held = app::held_parts(answer.named);
  CHECK(held.contains(StackPart::kCompile));
  CHECK_FALSE(held.contains(StackPart::kGradientSync));
  CHECK_FALSE(held.contains(StackPart::kDispatcher));  // the model has no experts
}

TEST_CASE("a search takes the parts of the software that make its plans faster") {
  app::PlanRequest request;
  request.scenario = {.model = "qwen3-30b-a3b", .cluster = "dgx-h100", .stack = "nemo"};
  request.search.gpus = 16;
  request.search.settings.values[Setting::kGlobalBatch] = {512};
  request.search.settings.values[Setting::kMicroBatch] = {1};
  request.top = 1;
  const auto answer_with = [&](const PartValues& parts) {
    app::PlanRequest asked = request;
    for (const auto& [part, value] : parts) asked.scenario.parts[part] = {value};
    return app::plan_answer(asked).value();
  };
  const auto step_of = [](const app::PlanAnswer& answer) {
    return answer.found.plans.front().predicted.step;
  };
  const app::PlanAnswer free = answer_with({});
  REQUIRE(free.named.tried.size() == 1);
  const PartValues chosen = free.named.tried.front().parts;
  REQUIRE_FALSE(chosen.empty());
  const StackSpec stack = Catalogue::open().value().load_stack("nemo").value();
  PartValues of_stack;
  for (const auto& [part, value] : chosen) of_stack[part] = row_of(part).get(stack);
  const app::PlanAnswer held = answer_with(of_stack), stated = answer_with(chosen);
  CHECK(step_of(held) > 1.01 * step_of(free));
  CHECK(step_of(stated) == step_of(free));
  CHECK(stated.found.plans.front().plan == free.found.plans.front().plan);
}

TEST_CASE("the stack is assumed for all GPUs of the cluster if their number is not stated") {
  app::ScenarioRequest request;
  request.model = "llama-3-8b";
  request.cluster = "a10g-8";
  CHECK(app::load_scenario(request).value().stack == "pytorch-fsdp");
  request.gpus = 1;
  CHECK(app::load_scenario(request).value().stack == "pytorch");
}

}  // namespace
}  // namespace tpsim
