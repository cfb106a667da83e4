// Layers of different widths, or without a branch, in launch files of Megatron-LM.
#include <catch2/catch.hpp>

#include "core/json/json_document.h"
#include "frameworks/launch/launch_files.h"
#include "tests/frameworks/launch/launch_plans.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

// A model as of a neural architecture search: one layer is narrow, one has no attention, and one
// has no feed-forward part.
ModelSpec searched_model() {
  ModelSpec model = test::small_llama();
  model.attention.rotary.stretch.kind = RotaryScaling::kLlama3;
  model.attention.rotary.stretch.factor = 8;
  const BlockShape usual{.attention = model.attention, .ffn_hidden = 1408};
  const BlockShape narrow{.attention = model.attention, .ffn_hidden = 512};
  const BlockShape feeds{.mixer = MixerKind::kNone, .ffn_hidden = 256};
  const BlockShape attends{.attention = model.attention};
  set_blocks(model, {usual, narrow, usual, feeds, usual, attends, usual, usual});
  return model;
}

constexpr const char* kOption = "--heterogeneous-layers-config-encoded-json ";

std::string json_in(const std::string& script) {
  const std::size_t begin = script.find(kOption) + std::string(kOption).size() + 1;
  return script.substr(begin, script.find("'\n", begin) - begin);
}

}  // namespace

TEST_CASE("layers of different widths are described to Megatron-LM in JSON and come back") {
  const ModelSpec model = searched_model();
  Plan plan = test::plan_of(model, {.tp = 2, .pp = 2, .dp = 2}, 4);
  plan.zero = 1;
  auto files = export_plan(LaunchStack::kMegatronLm, test::file_of(model, plan), 8);
  if (!files.ok()) FAIL(to_string(files.error()));
  CHECK(import_plan(LaunchStack::kMegatronLm, *files, model).value().plan == plan);

  const auto json = parse_json(json_in(files->front().text), "layers");
  if (!json.ok()) FAIL(to_string(json.error()));
  const auto& blocks = *json->find("block_configs")->as<JsonValue::Array>();
  REQUIRE(blocks.size() == 8);
  const auto field = [&](std::size_t layer, const char* branch, const char* key) {
    return to_line(*blocks[layer].find(branch)->find(key));
  };
  CHECK(field(0, "attention", "n_heads_in_group") == "2");
  CHECK(field(1, "ffn", "ffn_hidden_size") == "512");
  CHECK(field(3, "attention", "no_op") == "true");
  CHECK(field(5, "ffn", "no_op") == "true");
  CHECK(field(5, "ffn", "ffn_hidden_size") == "null");

  std::string& script = files->front().text;
  script = test::without(script, "\"ffn_hidden_size\":512", "\"ffn_hidden_size\":640");
  CHECK_FALSE(import_plan(LaunchStack::kMegatronLm, *files, model).ok());
  const std::string whole = json_in(script);
  script = test::without(script, "  " + std::string(kOption) + "'" + whole + "'\n", "");
  CHECK(import_plan(LaunchStack::kMegatronLm, *files, model).ok());  // the file has the layers
  CHECK_FALSE(import_plan(LaunchStack::kMegatronLm, *files, test::small_llama()).ok());
}

TEST_CASE("layers of different widths that Megatron-LM's JSON does not cover are refused") {
  ModelSpec model = searched_model();
  model.attention.rotary.stretch = {};
  for (BlockShape& block : model.other_blocks) block.attention.rotary.stretch = {};
  const Plan plan = test::plan_of(model, {.tp = 2, .pp = 2, .dp = 2}, 4);
  const auto files = export_plan(LaunchStack::kMegatronLm, test::file_of(model, plan), 8);
  REQUIRE_FALSE(files.ok());
  CHECK_THAT(files.error().message, Catch::Contains("layers that differ"));
}

}  // namespace tpsim
