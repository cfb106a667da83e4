// Laws of gathers of sharded weights.
#include <catch2/catch.hpp>

#include "sim/layers/layer_pricer.h"
#include "tests/sim/layers/part_laws.h"

namespace tpsim {
namespace {

// Dense blocks and blocks with experts, as in DeepSeek-V3.
ModelSpec mixed_model() {
  ModelSpec model = test::small_mixture();
  const BlockShape dense{.attention = model.attention, .ffn_hidden = 1024};
  const BlockShape routes{
      .attention = model.attention, .ffn_hidden = model.ffn_hidden, .experts = model.experts};
  set_blocks(model, {dense, routes, routes, routes, routes, routes, routes, routes});
  return model;
}

std::vector<LoweredCollective> gathers_of(LayerPricer& pricer, const Plan& plan, LayerKind kind,
                                          std::int64_t block) {
  std::vector<LoweredCollective> gathers;
  for (const LoweredCollective& record : pricer.layer_program(kind, plan, block).collectives) {
    if (record.label.part == ModelPart::kParameterGather) gathers.push_back(record);
  }
  return gathers;
}

}  // namespace

TEST_CASE("looped experts gather their own weights matrix by matrix, and no other weights") {
  Scenario scenario = test::parts_scenario(mixed_model());
  scenario.stack.host.per_gather = Seconds(1e-4);
  Scenario looped = scenario;
  looped.stack.parts.expert_kernel = ExpertKernel::kLooped;
  Plan plan = test::plan_of(scenario.model, {.tp = 1, .pp = 1, .dp = 4}, 8);
  plan.zero = 3;
  LayerPricer grouped_pricer(scenario), looped_pricer(looped);
  const auto matrices = static_cast<double>(3 * scenario.model.experts.count);
  for (const LayerKind kind :
       {LayerKind::kWordEmbeddings, LayerKind::kEmbedding, LayerKind::kBlock, LayerKind::kHead}) {
    for (const std::int64_t block : {0, 1}) {
      const auto usual = gathers_of(grouped_pricer, plan, kind, block);
      const auto split = gathers_of(looped_pricer, plan, kind, block);
      REQUIRE(usual.size() == split.size());
      const bool routes =
          kind == LayerKind::kBlock && has_experts(with_block_kind(scenario.model, block));
      for (std::size_t i = 0; i < usual.size(); ++i) {
        INFO(static_cast<int>(kind) << ' ' << block << ' ' << i);
        CHECK(split[i].calls == (routes && i % 2 == 1 ? matrices : 1));
        CHECK(split[i].calls * static_cast<double>(split[i].bytes) ==
              Approx(static_cast<double>(usual[i].bytes)));
        if (routes && i % 2 == 1) CHECK(usual[i].bytes > usual[i - 1].bytes);
      }
    }
  }
}

}  // namespace tpsim
