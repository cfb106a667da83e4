// Laws of dividing a model into stages, and the rules of legal plans.
#include "core/plan/plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "core/plan/plan_settings.h"

namespace tpsim {
namespace {

TEST_CASE("an even cut gives every block to one chunk, shares that differ by one at most") {
  for (std::int64_t layers = 1; layers <= 130; ++layers) {
    for (std::int64_t chunks = 1; chunks <= 40; ++chunks) {
      for (const bool count_embedding : {false, true}) {
        INFO(layers << " layers, " << chunks << " chunks, embedding " << count_embedding);
        std::vector<std::int64_t> cut = even_stage_layers(layers, chunks, count_embedding);
        if (cut.empty()) {
          CHECK(count_embedding);  // otherwise no stage can be negative
          continue;
        }
        CHECK(static_cast<std::int64_t>(cut.size()) == chunks);
        CHECK(std::accumulate(cut.begin(), cut.end(), std::int64_t{0}) == layers);
        CHECK(*std::min_element(cut.begin(), cut.end()) >= 0);
        if (count_embedding) {
          ++cut.front();
          ++cut.back();
        }
        const auto [least, most] = std::minmax_element(cut.begin(), cut.end());
        CHECK(*most - *least <= 1);
      }
    }
  }
}

TEST_CASE("BLOOM's 70 blocks and two ends make twelve sixes") {
  const std::vector<std::int64_t> cut = even_stage_layers(70, 12, true);
  CHECK(cut == std::vector<std::int64_t>{5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5});
}

TEST_CASE("the remaining blocks go to the middle stages") {
  CHECK(even_stage_layers(10, 4, false) == std::vector<std::int64_t>{2, 3, 3, 2});
  CHECK(even_stage_layers(9, 4, false) == std::vector<std::int64_t>{2, 3, 2, 2});
}

ModelSpec small_model() {
  ModelSpec model;
  model.layers = 8;
  model.hidden = 64;
  model.ffn_hidden = 256;
  model.vocab = 1000;
  model.seq = 128;
  model.attention = {8, 8, 8, PositionKind::kAlibi, 10000.0};
  return model;
}

Plan legal_plan() {
  Plan plan;
  plan.degrees = {.tp = 2, .pp = 2, .dp = 2};
  plan.global_batch = 16;
  plan.stage_layers = {4, 4};
  return plan;
}

template <class Change>
void check_illegal(Change change, const std::string& words) {
  Plan plan = legal_plan();
  change(plan);
  INFO(words);
  const Status status = validate(plan, small_model());
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().message, Catch::Contains(words));
}

TEST_CASE("an illegal plan names the rule that it breaks") {
  REQUIRE(validate(legal_plan(), small_model()).ok());
  Plan shared = legal_plan();
  shared.degrees.cp = 4;
  REQUIRE(validate(shared, small_model()).ok());
  CHECK(gpu_count(shared) == 32);
  CHECK(data_ranks(shared) == 8);
  CHECK(micro_batches(shared) == micro_batches(legal_plan()));
  CHECK(short_name(shared).starts_with("tp2 pp2 dp2 cp4 zero1"));
  check_illegal([](Plan& p) { p.degrees.tp = 3; }, "8 attention heads");
  check_illegal([](Plan& p) { p.degrees.tp = 0; }, "tp is 0");
  check_illegal([](Plan& p) { p.degrees.dp = -1; }, "dp is -1");
  check_illegal([](Plan& p) { p.degrees.cp = 3; },
                "sequence length 128 is not divisible by 2 x cp = 6");
  check_illegal([](Plan& p) { p.zero = 4; }, "ZeRO");
  check_illegal([](Plan& p) { p.global_batch = 15; }, "global batch 15");
  check_illegal([](Plan& p) { p.stage_layers = {8}; }, "stage_layers has 1");
  check_illegal([](Plan& p) { p.stage_layers = {4, 5}; }, "add up to 9");
  check_illegal([](Plan& p) { p.stage_layers = {-1, 9}; }, "negative");
  check_illegal([](Plan& p) { p.schedule = ScheduleKind::kInterleaved; }, "interleaved");
  check_illegal(
      [](Plan& p) {
        p.schedule = ScheduleKind::kZbH1;
        p.zero = 2;
      },
      "schedule zb-h1 is not possible with ZeRO 2");
  check_illegal(
      [](Plan& p) {
        p.degrees.tp = 1;
        p.sequence_parallel = true;
      },
      "sequence parallelism needs tp > 1");
  check_illegal(
      [](Plan& p) {
        p.degrees.cp = 32;
        p.sequence_parallel = true;
        p.degrees.tp = 8;
      },
      "sequence length 4 of a context-parallel rank is not divisible by tp = 8");
  check_illegal(
      [](Plan& p) {
        p.schedule = ScheduleKind::kInterleaved;
        p.virtual_stages = 2;
        p.stage_layers = {2, 2, 2, 2};
        p.global_batch = 6;
      },
      "needs a multiple of pp");
}

TEST_CASE("plans whose numbers overflow 64 bits are refused") {
  check_illegal(
      [](Plan& p) {
        p.degrees = {1 << 20, 1 << 20, 1 << 20, 16};
      },
      "is above the limit of");
  check_illegal([](Plan& p) { p.degrees = {1, 1, 1, 1, 1 << 21}; }, "ep is");
  Plan plan = legal_plan();
  plan.micro_batch = plan.global_batch = 1 << 20;
  plan.degrees = {};
  plan.stage_layers = {8};
  ModelSpec model = small_model();
  model.seq = 1 << 24;
  CHECK_FALSE(has_countable_tensors(plan, model));
  const Status status = validate(plan, model);
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().message, Catch::Contains("too large for 64-bit sizes"));
}

ModelSpec small_mixture() {
  ModelSpec model = small_model();
  model.linear_bias = false;
  model.experts = {6, 2, 1.25};
  return model;
}

TEST_CASE("ep must divide replicas and experts, and tp with experts needs sequence parallelism") {
  const ModelSpec model = small_mixture();
  Plan plan = legal_plan();
  plan.sequence_parallel = true;
  plan.degrees.dp = 4;
  plan.degrees.ep = 2;
  REQUIRE(validate(plan, model).ok());
  CHECK(expert_data_ranks(plan) == 2);
  CHECK(gpu_count(plan) == 16);
  CHECK(short_name(plan).starts_with("tp2 pp2 dp4 ep2 zero1"));
  const auto refusal = [&](auto change) {
    Plan broken = plan;
    change(broken);
    const Status status = validate(broken, model);
    REQUIRE_FALSE(status.ok());
    return status.error();
  };
  const Error three = refusal([](Plan& p) { p.degrees.ep = 3; });
  CHECK_THAT(three.message, Catch::Contains("tp x cp x dp / etp = 4 is not divisible by ep = 3"));
  CHECK_THAT(three.hint, Catch::Contains("nearest ep that divides ranks and experts is 2"));
  CHECK_THAT(refusal([](Plan& p) { p.degrees.ep = 4; }).message,
             Catch::Contains("experts = 6 is not divisible by ep = 4"));
  CHECK_THAT(refusal([](Plan& p) { p.sequence_parallel = false; }).message,
             Catch::Contains("need sequence parallelism"));
  CHECK_THAT(refusal([](Plan& p) { p.degrees.etp = 3; }).message,
             Catch::Contains("width 256 is not divisible by etp = 3"));
  CHECK_THAT(refusal([](Plan& p) { p.degrees.etp = -1; }).message, Catch::Contains("etp is -1"));
  CHECK_THAT(refusal([](Plan& p) { p.degrees.etp = 16; }).message,
             Catch::Contains("tp x cp x dp = 8 is not divisible by etp = 16"));
  Plan whole = plan;
  whole.degrees.etp = 1;
  whole.degrees.ep = 2;
  REQUIRE(validate(whole, model).ok());
  CHECK(expert_data_ranks(whole) == 4);
  Plan odd = whole;  // the third rank of an expert group is in another replica
  odd.degrees = {.tp = 2, .pp = 2, .dp = 6, .ep = 3, .etp = 1};
  odd.global_batch = 12;
  REQUIRE(validate(odd, model).ok());
  odd.rank_order = RankOrder::kTpPpDp;
  const Status apart = validate(odd, model);
  REQUIRE_FALSE(apart.ok());
  CHECK_THAT(apart.error().message,
             Catch::Contains("etp x ep = 1 x 3 neither divides tp x cp = 2"));
  const Status dense = validate(plan, small_model());
  REQUIRE_FALSE(dense.ok());
  CHECK_THAT(dense.error().message, Catch::Contains("no experts"));
}

TEST_CASE("the batch that divides is named by the nearest multiple, above or below") {
  const ModelSpec model = small_model();
  const auto hint_of = [&](std::int64_t dp, std::int64_t batch) {
    Plan plan;
    plan.degrees.dp = dp;
    plan.global_batch = batch;
    plan.stage_layers = {model.layers};
    const Status legal = validate(plan, model);
    REQUIRE_FALSE(legal.ok());
    return legal.error().hint;
  };
  CHECK(hint_of(5, 8) == "the nearest valid global batch is 10");
  CHECK(hint_of(5, 24) == "the nearest valid global batch is 25");
  CHECK(hint_of(5, 7) == "the nearest valid global batch is 5");
  CHECK(hint_of(5, 1) == "the nearest valid global batch is 5");
  CHECK(hint_of(4, 6) == "the nearest valid global batch is 4");
}

TEST_CASE("only chosen experts count as FLOPs, all of them as weights") {
  ModelSpec one = small_mixture(), dense = small_model();
  dense.linear_bias = false;
  one.experts = {6, 1, 1.0};
  const std::int64_t router = 6 * one.hidden, expert = 2 * one.hidden * one.ffn_hidden;
  CHECK(block_parameter_count(one) == block_parameter_count(dense) + 5 * expert + router);
  CHECK(active_parameter_count(one) == parameter_count(dense) + one.layers * router);
  CHECK(active_parameter_count(dense) == parameter_count(dense));
  ModelSpec two = one;
  two.experts.per_token = 2;
  const double more = block_forward_flops(two).total() - block_forward_flops(one).total();
  CHECK(more == Approx(2.0 * static_cast<double>(one.seq * expert)));
}

TEST_CASE("an expert's capacity is its even share, times the factor, rounded up") {
  CHECK(expert_capacity({8, 2, 1.0}, 16) == 4);
  CHECK(expert_capacity({8, 2, 1.25}, 17) == 6);
  CHECK(expert_capacity({8, 2, 4.0}, 16) == 16);
  CHECK(expert_capacity({8, 2, 100.0}, 16) == 16);
  CHECK(expert_capacity({64, 1, 0.5}, 4) == 1);
}

TEST_CASE("a model with impossible experts is refused") {
  const auto refused = [](auto change) {
    ModelSpec model = small_mixture();
    change(model);
    const Status status = validate(model);
    REQUIRE_FALSE(status.ok());
    return status.error().message;
  };
  CHECK_THAT(refused([](ModelSpec& m) { m.experts.per_token = 7; }),
             Catch::Contains("per_token is 7, but the model has 6"));
  CHECK_THAT(refused([](ModelSpec& m) { m.experts.capacity_factor = 0; }),
             Catch::Contains("capacity_factor is 0"));
  CHECK_THAT(refused([](ModelSpec& m) { m.linear_bias = true; }), Catch::Contains("linear_bias"));
}

}  // namespace
TEST_CASE("the hint names a degree that keeps the requested ep, before another ep") {
  ModelSpec model = small_mixture();
  model.experts.count = 8;
  Plan plan = legal_plan();
  plan.degrees = {.tp = 4, .pp = 2, .dp = 2, .ep = 4};
  plan.sequence_parallel = true;
  const Status cut = validate(plan, model);
  REQUIRE_FALSE(cut.ok());
  CHECK_THAT(cut.error().hint, Catch::Contains("etp 1 allows ep 4"));
  plan.degrees.etp = 1;
  CHECK(validate(plan, model).ok());
  plan.degrees = {.tp = 4, .pp = 2, .dp = 2, .ep = 16};  // more than the number of experts
  CHECK_THAT(validate(plan, model).error().hint, !Catch::Contains("etp"));
}

TEST_CASE("tp may exceed the key/value heads if it is their multiple") {
  ModelSpec model = small_model();
  model.fused_qkv = false;
  model.attention.heads = 8;
  model.attention.kv_heads = 2;
  for (const std::int64_t tp : {1, 2, 4, 8}) CHECK(divides_by_tp(model, tp));
  model.attention.qk_norm = QkNorm::kWidth;  // over all key heads
  CHECK_FALSE(divides_by_tp(model, 4));
  model.attention.qk_norm = QkNorm::kHead;
  CHECK(divides_by_tp(model, 4));
  model.attention.heads = 12;
  model.attention.kv_heads = 3;
  CHECK_FALSE(divides_by_tp(model, 4));
}

}  // namespace tpsim
