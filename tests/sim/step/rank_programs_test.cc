// The events of `tpsim explain --program` agree with the priced layers.
#include "sim/step/rank_programs.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

const PartProgram& part_of(const std::vector<PartProgram>& programs, ProgramPart part) {
  const auto found = std::find_if(programs.begin(), programs.end(),
                                  [&](const PartProgram& one) { return one.part == part; });
  REQUIRE(found != programs.end());
  return *found;
}

// Returns the events of a phase; empty if the part has no such phase.
std::vector<IssuedEvent> events_of(const PartProgram& part, Phase phase) {
  const auto found = std::find_if(part.phases.begin(), part.phases.end(),
                                  [&](const PhaseProgram& one) { return one.phase == phase; });
  return found == part.phases.end() ? std::vector<IssuedEvent>() : found->events;
}

std::vector<OpRecord> ops_of(const PartProgram& part, Phase phase) {
  std::vector<OpRecord> ops;
  for (const IssuedEvent& event : events_of(part, phase)) {
    if (const auto* op = std::get_if<LoweredOp>(&event.what)) ops.push_back(*op);
  }
  return ops;
}

Seconds time_of(const PartProgram& part, std::initializer_list<Phase> phases) {
  Seconds time;
  for (const Phase phase : phases) {
    for (const IssuedEvent& event : events_of(part, phase)) {
      if (event.stream != Stream::kHost) time += event.time;
    }
  }
  return time;
}

Seconds device_time(const PhaseCost& phase) {
  return std::accumulate(phase.work.begin(), phase.work.end(), Seconds());
}

LayerKind layer_of(ProgramPart part) {
  if (part == ProgramPart::kEmbedding) return LayerKind::kEmbedding;
  return part == ProgramPart::kHead ? LayerKind::kHead : LayerKind::kBlock;
}

Plan with_precision(Plan plan, Precision precision) {
  plan.precision = precision;
  return plan;
}

// Plans without overlap inside layers.
std::vector<Plan> plain_plans(const ModelSpec& model) {
  const Plan plain = test::plan_of(model, {2, 2, 2}, 4);
  std::vector<Plan> plans;
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull, Recompute::kSelective}) {
    for (const AttentionKind attention : {AttentionKind::kFlash, AttentionKind::kUnfused}) {
      plans.push_back(plain);
      plans.back().recompute = recompute;
      plans.back().attention = attention;
    }
  }
  plans.push_back(plain);
  plans.back().sequence_parallel = true;
  plans.push_back(plain);
  plans.back().recompute = Recompute::kOps;
  plans.back().attention = AttentionKind::kFlash;
  plans.push_back(with_precision(plain, Precision::kFp8));
  plans.push_back(with_precision(plain, Precision::kFp8Block));
  return plans;
}

Scenario scenario_of(const ModelSpec& model) {
  Scenario scenario = test::small_scenario(model);
  scenario.profile.device.fp8_peak = FlopsPerSecond(200e12);
  return scenario;
}

}  // namespace

TEST_CASE("the events of a part's program have the price of the layer") {
  const ModelSpec model = GENERATE(test::small_llama(), test::small_bloom(), test::small_gpt());
  const Scenario scenario = scenario_of(model);
  for (const Plan& plan : plain_plans(model)) {
    LayerPricer pricer(scenario);
    INFO(model.name << ": " << short_name(plan));
    for (const PartProgram& part : rank_programs(pricer, plan)) {
      if (part.part == ProgramPart::kWordEmbeddings || part.part == ProgramPart::kTransfer)
        continue;
      const LayerCost& cost = pricer.layer(layer_of(part.part), plan, part.block);
      const auto priced = [&](std::initializer_list<Phase> phases) {
        return time_of(part, phases).value();
      };
      INFO(name_of(part.part));
      CHECK(priced({Phase::kForward}) == Approx(device_time(cost[TaskKind::kForward]).value()));
      CHECK(priced({Phase::kRecompute, Phase::kBackward}) ==
            Approx(device_time(cost[TaskKind::kBackward]).value()));
      CHECK(priced({Phase::kAccumulate}) == Approx(device_time(cost.accumulate).value()));
    }
  }
}

TEST_CASE("the blocks of a program add up to the model, by kind and by recompute") {
  const ModelSpec model = GENERATE(test::small_llama(), test::small_hybrid());
  Plan plan = test::plan_of(model, {1, 2, 2}, 4);
  plan.recompute = Recompute::kBlocks;
  plan.recompute_blocks = 1;
  std::map<std::int64_t, std::int64_t> by_kind;
  std::int64_t recomputed = 0;
  LayerPricer pricer(scenario_of(model));
  for (const PartProgram& part : rank_programs(pricer, plan)) {
    if (part.part != ProgramPart::kBlock) continue;
    by_kind[part.block] += part.count;
    if (part.is_recomputed) recomputed += part.count;
  }
  CHECK(recomputed == 2);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) --by_kind[block_kind(model, layer)];
  for (const auto& [kind, left] : by_kind) CHECK(left == 0);
}

TEST_CASE("unfreed allocations of a program equal the layer's remaining memory") {
  const ModelSpec model = GENERATE(test::small_llama(), test::small_mixture());
  Plan plan = test::plan_of(model, {2, 1, 2}, 4);
  plan.sequence_parallel = true;
  Scenario scenario = scenario_of(model);
  scenario.stack.memory.allocation_granularity = Bytes(1);
  LayerPricer pricer(scenario);
  for (const PartProgram& part : rank_programs(pricer, plan)) {
    if (part.part == ProgramPart::kWordEmbeddings || part.part == ProgramPart::kTransfer) continue;
    const LayerMemory& memory = pricer.layer_memory(layer_of(part.part), plan, part.block);
    BytesByCategory left{};
    for (const IssuedEvent& event : events_of(part, Phase::kForward)) {
      const auto* one = std::get_if<IssuedMemory>(&event.what);
      if (one == nullptr) continue;
      const auto bytes = static_cast<double>(one->record.bytes);
      left[static_cast<std::size_t>(one->record.category)] += one->is_free ? -bytes : bytes;
    }
    INFO(name_of(part.part));
    CHECK(left == memory[TaskKind::kForward].left);
  }
}

TEST_CASE("a program has the recipe's casts, and the ops of selective recompute before backward") {
  const ModelSpec model = test::small_llama();
  Plan plan = with_precision(test::plan_of(model, {2, 1, 2}, 4), Precision::kFp8Current);
  plan.recompute = Recompute::kSelective;
  plan.attention = AttentionKind::kFlash;
  LayerPricer pricer(scenario_of(model));
  const std::vector<PartProgram> programs = rank_programs(pricer, plan);
  const PartProgram& block = part_of(programs, ProgramPart::kBlock);
  const std::vector<OpRecord> forward = ops_of(block, Phase::kForward);
  CHECK(std::any_of(forward.begin(), forward.end(),
                    [](const OpRecord& op) { return op.key.dtype == DType::kFloat8; }));
  const std::vector<OpRecord> again = ops_of(block, Phase::kRecompute);
  REQUIRE(again.size() == 1);
  CHECK(again.front().key.kind == OpKind::kFlashForward);
}

TEST_CASE("a pipeline's program sends activations, and every part ends with its optimizer step") {
  const ModelSpec model = test::small_llama();
  const Plan plan = test::plan_of(model, {2, 4, 2}, 4);
  LayerPricer pricer(scenario_of(model));
  const std::vector<PartProgram> programs = rank_programs(pricer, plan);
  const PartProgram& transfer = part_of(programs, ProgramPart::kTransfer);
  CHECK(transfer.count == 3);
  CHECK_FALSE(events_of(transfer, Phase::kSend).empty());
  CHECK_FALSE(events_of(transfer, Phase::kReceive).empty());
  for (const ProgramPart part :
       {ProgramPart::kWordEmbeddings, ProgramPart::kBlock, ProgramPart::kHead}) {
    const std::vector<OpRecord> update = ops_of(part_of(programs, part), Phase::kUpdate);
    CHECK(std::any_of(update.begin(), update.end(),
                      [](const OpRecord& op) { return op.key.kind == OpKind::kAdamW; }));
  }
}

}  // namespace tpsim
