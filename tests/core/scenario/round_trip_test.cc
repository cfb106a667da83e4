// Every file kind reads back exactly as written, with every field different from its default.
#include <catch2/catch.hpp>

#include "core/json/json_document.h"
#include "core/machine/cluster_json.h"
#include "core/machine/profile_json.h"
#include "core/model/model_json.h"
#include "core/scenario/plan_json.h"
#include "core/software/stack_json.h"
#include "tests/core/scenario/odd_specs.h"

namespace tpsim {
namespace {

using test::kThird;
using test::odd_cluster;
using test::odd_model;
using test::odd_plan;
using test::odd_profile;
using test::odd_stack;

// Compares texts: they hold every field, and a third has no short text.
template <class Spec, class Parse>
void check_round_trip(const Spec& spec, Parse parse) {
  const std::string text = to_json(spec);
  const auto read = parse(text, "f.json");
  if (!read.ok()) FAIL(to_string(read.error()));
  CHECK(to_json(*read) == text);
}

TEST_CASE("a model is unchanged by its file") {
  check_round_trip(odd_model(), parse_model);
  const ModelSpec read = *parse_model(to_json(odd_model()), "f");
  CHECK(read.attention.rope_theta == odd_model().attention.rope_theta);
  CHECK(read.norm_epsilon == odd_model().norm_epsilon);
  CHECK(read.source == odd_model().source);
  CHECK(parameter_count(read) == parameter_count(odd_model()));
}

TEST_CASE("a dense model's file has no keys of experts") {
  ModelSpec model = odd_model();
  model.experts = {};
  check_round_trip(model, parse_model);
  CHECK(to_json(model).find("experts") == std::string::npos);
}

TEST_CASE("a plan is unchanged by its file") {
  const PlanFile file{odd_model(),
                      "jean-zay-a100",
                      "a100",
                      "megatron-lm",
                      {{StackPart::kNormKernel, 1}, {StackPart::kShardGroup, 24}},
                      odd_plan(),
                      400 * kThird,
                      true,
                      true,
                      {"--of-next-year", "mirror"},
                      {},
                      {"a rack=r1", "b rack=r2"}};
  check_round_trip(file, parse_plan);
  const PlanFile read = *parse_plan(to_json(file), "f");
  CHECK(read.plan == odd_plan());
  CHECK(read.cluster == "jean-zay-a100");
  CHECK(read.profile == "a100");
  CHECK(read.stack == "megatron-lm");
  CHECK(read.parts == file.parts);
  CHECK(read.node_gbps == file.node_gbps);
  CHECK(read.nodes == file.nodes);
  CHECK(read.stack_assumed);
  CHECK(read.network_assumed);
  CHECK(read.settings_assumed == file.settings_assumed);
  CHECK(to_json(read.model) == to_json(odd_model()));
}

TEST_CASE("the names in a plan file equal those in tables") {
  const JsonValue plan = plan_to_json(odd_plan());
  CHECK(*plan.find("attention")->as<std::string>() == name_of(AttentionKind::kUnfused));
  CHECK(*plan.find("recompute")->as<std::string>() == name_of(Recompute::kBlocks));
  CHECK(*plan.find("recompute_blocks")->as<std::int64_t>() == 2);
  CHECK(*plan.find("offload")->as<std::string>() == name_of(Offload::kOptimizer));
  CHECK(*plan.find("schedule")->as<std::string>() == name_of(ScheduleKind::kInterleaved));
  CHECK(*plan.find("rank_order")->as<std::string>() == name_of(RankOrder::kTpPpDp));
  CHECK(*plan.find("tp")->as<std::int64_t>() == 2);
}

TEST_CASE("a plan file whose plan breaks a rule is refused") {
  PlanFile file{odd_model(), "c", "p", "s", {}, odd_plan()};
  file.plan.stage_layers = {1, 2, 0, 4};
  const auto read = parse_plan(to_json(file), "plan.json");
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().where == "plan.json");
  CHECK_THAT(read.error().message, Catch::Contains("add up to 7"));
}

TEST_CASE("a cluster is unchanged by its file") {
  check_round_trip(odd_cluster(), parse_cluster);
  const ClusterSpec read = *parse_cluster(to_json(odd_cluster()), "f");
  CHECK(read.intra_node.bandwidth == odd_cluster().intra_node.bandwidth);
  CHECK(read.inter_node.efficiency == 0.5);
  CHECK(read.nics_per_node == 3);
}

TEST_CASE("files with the former names of keys are still read") {
  const auto with_former = [](std::string text, const std::string& key, const std::string& former) {
    const std::string now = "\"" + key + "\"";
    REQUIRE(text.find(now) != std::string::npos);
    return text.replace(text.find(now), now.size(), "\"" + former + "\"");
  };
  const std::string stack = to_json(odd_stack());
  for (const auto& [key, former] : {std::pair{"aliases", "known_as"},
                                    {"default_zero", "zero"},
                                    {"requantizes_in_backward", "rounds_anew"},
                                    {"quantizes_inside_gemm", "rounds_in_products"},
                                    {"other_runs", "other_gpus_slower"},
                                    {"uncalibrated_overhead", "unmodelled"}}) {
    INFO(former);
    CHECK(to_json(parse_stack(with_former(stack, key, former), "old.json").value()) == stack);
  }
  const std::string cluster = to_json(odd_cluster());
  for (const auto& [key, former] : {std::pair{"aliases", "known_as"},
                                    {"nic_collision_efficiency", "several_ranks_share"},
                                    {"p2p_efficiency", "transfer_share"}}) {
    INFO(former);
    CHECK(to_json(parse_cluster(with_former(cluster, key, former), "old.json").value()) == cluster);
  }
}

TEST_CASE("the old key rank_orders of stack files is still read") {
  StackSpec stack = odd_stack();
  stack.choices.only = {};
  stack.choices.only[Setting::kRankOrder] = {static_cast<std::int64_t>(RankOrder::kTpPpDp)};
  std::string text = to_json(stack);
  const std::string now = "\"rank_order\"";
  REQUIRE(text.find(now) != std::string::npos);
  text.replace(text.find(now), now.size(), "\"rank_orders\"");
  const Result<StackSpec> read = parse_stack(text, "stack.json");
  REQUIRE(read.ok());
  CHECK(read->choices.only == stack.choices.only);
  CHECK(read->choices.parts == stack.choices.parts);
}

TEST_CASE("a stack is unchanged by its file") {
  check_round_trip(odd_stack(), parse_stack);
  const StackSpec read = *parse_stack(to_json(odd_stack()), "f");
  CHECK(read.host.per_block_backward == Seconds(kThird));
  CHECK(read.training.overlap_parameter_gather);
  CHECK(read.memory.fragmentation == kThird);
}

TEST_CASE("a profile is unchanged by its file") {
  check_round_trip(odd_profile(), parse_profile);
  const Profile profile = odd_profile();
  const Profile read = *parse_profile(to_json(profile), "f");
  REQUIRE(read.ops.size() == profile.ops.size());
  for (std::size_t i = 0; i < read.ops.size(); ++i) {
    CHECK(read.ops[i].key == profile.ops[i].key);
    CHECK(read.ops[i].median == profile.ops[i].median);
    CHECK(read.ops[i].spread == profile.ops[i].spread);
    CHECK(read.ops[i].count == profile.ops[i].count);
  }
  CHECK(read.link.kind == "wire");
  CHECK(read.link.bandwidth == odd_profile().link.bandwidth);
  CHECK(read.link.latency == odd_profile().link.latency);
  CHECK(read.link.efficiency == kThird);
  REQUIRE(read.collectives.size() == 3);
  CHECK(read.collectives[2].kind == CollectiveKind::kBroadcast);
  CHECK(read.collectives[2].bytes == Bytes(1e9));
}

TEST_CASE("samples of 8-bit floats need the 8-bit peak of their device") {
  std::string text = to_json(odd_profile());
  const std::size_t at = text.find("\"fp8_peak\"");
  text.erase(at, text.find('\n', at) - at);
  const auto read = parse_profile(text, "p.json");
  REQUIRE_FALSE(read.ok());
  CHECK_THAT(read.error().message, Catch::Contains("fp8_peak"));
}

TEST_CASE("a table of a profile is checked cell by cell") {
  const auto refused = [](std::string row) {
    std::string text = to_json(odd_profile());
    const std::size_t at = text.find("[1, 2, 3, 3, 8,");
    REQUIRE(at != std::string::npos);
    text.replace(at, text.find(']', at) + 1 - at, row);
    const auto read = parse_profile(text, "p.json");
    REQUIRE_FALSE(read.ok());
    CHECK_THAT(read.error().where, Catch::StartsWith("p.json:"));
    return read.error().message;
  };
  CHECK_THAT(refused("[1, 2, 3, 3, 8, -1e-3]"), Catch::Contains("-0.001"));
  CHECK_THAT(refused("[1, 2, 3, 3, 8, 0]"), Catch::Contains("must be between"));
  CHECK_THAT(refused("[1, 2, 3, 3.5, 8, 1e-3]"), Catch::Contains("whole number"));
  CHECK_THAT(refused("[1, 2, 0, 3, 8, 1e-3]"), Catch::Contains("must be between"));
  CHECK_THAT(refused("[1, 2, 3, 8, 1e-3]"), Catch::Contains("6 or 8 numbers"));
  CHECK_THAT(refused("[1, 2, 3, 3, 8, \"1 ms\"]"), Catch::Contains("must be a number"));
  CHECK_THAT(refused("7"), Catch::Contains("must be a row"));
}

TEST_CASE("a quantity in a file needs its unit") {
  const auto refused = [](std::string_view written) {
    std::string text = to_json(odd_cluster());
    const std::string unit = "\"12.5 GB/s\"";
    const std::size_t at = text.find(unit);
    REQUIRE(at != std::string::npos);
    text.replace(at, unit.size(), written);
    const auto read = parse_cluster(text, "c.json");
    REQUIRE_FALSE(read.ok());
    return to_string(read.error());
  };
  CHECK_THAT(refused("\"12.5\""), Catch::Contains("inter_node.bandwidth") &&
                                      Catch::Contains("the unit is missing") &&
                                      Catch::Contains("GB/s"));
  CHECK_THAT(refused("12.5"), Catch::Contains("a text with a unit"));
  CHECK_THAT(refused("\"-1 GB/s\""), Catch::Contains(">= 0"));
  CHECK_THAT(refused("\"inf GB/s\""), Catch::Contains("finite"));
  CHECK_THAT(refused("\"1e300 TB/s\""), Catch::Contains("too large"));
  CHECK_THAT(refused("\"0 GB/s\""), Catch::Contains("above zero"));
}

}  // namespace
}  // namespace tpsim
