// Suggestions for plans that do not fit in memory.
#include "app/scenario/fit.h"

#include <catch2/catch.hpp>

#include "app/scenario/plan_request.h"
#include "plans/search/search.h"

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
  asked.settings.values[Setting::kGlobalBatch] = {512};
  app::NamedScenario named = app::load_scenario(request, asked).value();
  SearchSpace space = app::search_space(asked, named.scenario, std::nullopt).value();
  SearchResult found = search(named.scenario, space, 1, {}).value();
  return {std::move(named), std::move(space), std::move(found)};
}

TEST_CASE("software that saves memory is suggested, and plans fit with it") {
  const Searched misses = searched({});
  REQUIRE(misses.found.plans.empty());
  const Error error = app::nothing_fits(misses.named.scenario, misses.space, misses.found);
  CHECK(error.hint.starts_with("with --gradient-sync every_micro_batch tp1 pp1 dp64"));
  const PartRow& row = row_of(StackPart::kGradientSync);
  const std::int64_t often = parse_value(row, "every_micro_batch").value();
  CHECK_FALSE(searched({{StackPart::kGradientSync, {often}}}).found.plans.empty());
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
