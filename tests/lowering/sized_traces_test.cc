// For random layouts of shipped models, the trace that SizedTraces computes is the one that the
// reference model records.
#include "lowering/trace/sized_traces.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "core/model/model_json.h"
#include "core/scenario/catalogue.h"

namespace tpsim {
namespace {

void check_equal(const LayerTrace& computed, const LayerTrace& traced) {
  const Program &a = computed.program, &b = traced.program;
  REQUIRE(a.events.size() == b.events.size());
  REQUIRE(a.ops.size() == b.ops.size());
  for (std::size_t i = 0; i < a.ops.size(); ++i) {
    CAPTURE(to_string(a.ops[i].key), to_string(b.ops[i].key), a.ops[i].label.text);
    CHECK(a.ops[i].key == b.ops[i].key);
    CHECK(a.ops[i].flops == b.ops[i].flops);
    CHECK(a.ops[i].bytes == b.ops[i].bytes);
    CHECK(a.ops[i].input == b.ops[i].input);
  }
  for (std::size_t i = 0; i < a.collectives.size(); ++i) {
    CHECK(a.collectives[i].bytes == b.collectives[i].bytes);
  }
  for (std::size_t i = 0; i < a.allocations.size(); ++i) {
    CHECK(a.allocations[i].bytes == b.allocations[i].bytes);
  }
  CHECK(computed.recompute_end == traced.recompute_end);
}

TEST_CASE("the trace of any micro-batch is that of the reference model") {
  const Catalogue catalogue = *Catalogue::open();
  const std::vector<std::string> names = catalogue.list(CatalogueKind::kModels);
  std::mt19937 random(20);
  const auto one_of = [&](auto... values) {
    const std::int64_t all[] = {static_cast<std::int64_t>(values)...};
    return all[random() % sizeof...(values)];
  };
  int layouts = 0;
  while (layouts < 150) {
    const std::string& name = names[random() % names.size()];
    const ModelSpec model = *catalogue.load_model(name);
    const auto kinds = static_cast<std::uint64_t>(block_kind_count(model));
    const ModelSpec block = with_block_kind(model, static_cast<std::int64_t>(random() % kinds));
    Plan plan;
    plan.degrees = {.tp = one_of(1, 2, 4, 8),
                    .dp = one_of(1, 2, 4, 16),
                    .cp = one_of(1, 1, 2),
                    .ep = has_experts(block) ? one_of(1, 2, 8) : 1};
    plan.zero = static_cast<int>(one_of(0, 1, 2, 3));
    plan.sequence_parallel = plan.degrees.tp > 1 && one_of(0, 1) == 1;
    plan.recompute = static_cast<Recompute>(one_of(Recompute::kNone, Recompute::kFull));
    plan.stage_layers = {block.layers};
    plan.micro_batch = 1;
    const std::int64_t count = one_of(1, 2, 96);  // of micro-batches
    plan.global_batch = count * plan.degrees.dp;
    if (!validate(plan, block).ok()) continue;
    ++layouts;
    CAPTURE(name, plan.degrees.tp, plan.degrees.dp, plan.degrees.cp, plan.degrees.ep, plan.zero,
            count);
    const auto kind = static_cast<LayerKind>(
        one_of(LayerKind::kBlock, LayerKind::kBlock, LayerKind::kEmbedding, LayerKind::kHead));
    TrainingOptions options;
    options.gradient_sync = static_cast<GradientSync>(
        one_of(GradientSync::kEveryMicroBatch, GradientSync::kLastMicroBatch));
    SizedTraces sized;
    std::array<std::int64_t, 10> sizes = {1, 2, 4, 3, 16, 1, 6, 32, 2, 4};
    std::shuffle(sizes.begin() + 1, sizes.end(), random);
    if (layouts % 2 == 0) std::swap(sizes.front(), sizes.back());
    for (const std::int64_t micro_batch : sizes) {
      plan.micro_batch = micro_batch;
      plan.global_batch = count * micro_batch * plan.degrees.dp;
      CAPTURE(micro_batch);
      check_equal(sized.at(kind, block, plan, options), trace_layers(kind, block, plan, options));
    }
  }
}

}  // namespace
}  // namespace tpsim
