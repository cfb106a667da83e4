// Laws of the checks after each lowering pass.
#include "lowering/passes/verify.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "core/base/check.h"
#include "sim/layers/layer_pricer.h"
#include "tests/sim/layers/part_laws.h"

namespace tpsim {
namespace {

using Catch::Contains;
using Kind = LoweredEvent::Kind;

struct Lowered {
  Scenario scenario;
  Plan plan;
};

// Plans of which each pass changes some layer.
std::vector<Lowered> lowered_plans() {
  std::vector<Lowered> cases;
  for (const ModelSpec& model :
       {test::small_llama(), test::small_gpt(), test::small_delta_net(), test::small_mixture()}) {
    Lowered one{test::parts_scenario(model), test::parts_plan(model)};
    one.scenario.profile.device.fp8_peak = FlopsPerSecond(200e12);
    one.plan.sequence_parallel = true;
    cases.push_back(one);
    one.plan.recompute = Recompute::kFull;
    one.scenario.stack.checkpoint_stops_early = true;
    one.scenario.stack.parts.tp_overlap = TpOverlap::kBackward;
    cases.push_back(one);
    one.plan.recompute = Recompute::kSelective;
    one.plan.precision = Precision::kFp8Current;
    one.scenario.stack.parts.tp_overlap = TpOverlap::kUserbuffers;
    one.scenario.stack.tp_overlap = 0.5;
    cases.push_back(one);
    one.plan = test::parts_plan(model);
    one.plan.zero = 3;
    one.plan.recompute = Recompute::kOps;
    one.scenario.stack.training.overlap_parameter_gather = true;
    one.scenario.stack.training.overlap_gradient_reduction = true;
    one.scenario.stack.copies_gathered_weights = true;
    one.scenario.stack.parts.master_weights = MasterWeights::kAutocast;
    cases.push_back(one);
  }
  return cases;
}

LoweredLayer block_of(const Lowered& one) {
  LayerPricer pricer(one.scenario);
  return pricer.layer_program(LayerKind::kBlock, one.plan);
}

// Returns the first event of this kind in forward.
LoweredEvent& event_of(LoweredLayer& layer, Kind kind) {
  std::vector<LoweredEvent>& events = layer.phase(Phase::kForward).events;
  const auto found = std::find_if(events.begin(), events.end(),
                                  [&](const LoweredEvent& event) { return event.kind == kind; });
  REQUIRE(found != events.end());
  return *found;
}

}  // namespace

TEST_CASE("every pass leaves a valid layer, also without any other pass") {
  std::vector<std::string_view> names;
  for (const LoweringPass& pass : lowering_passes()) names.push_back(pass.name);
  for (const StepEndPass& pass : step_end_passes()) names.push_back(pass.name);
  for (const Lowered& one : lowered_plans()) {
    LayerPricer pricer(one.scenario);
    for (const std::string_view name : names) {
      INFO(one.scenario.model.name << " " << short_name(one.plan) << " without " << name);
      PassChoice choice;
      CHECK(leave_out(name, choice));
      for (const LayerKind kind : {LayerKind::kWordEmbeddings, LayerKind::kEmbedding,
                                   LayerKind::kBlock, LayerKind::kHead}) {
        CHECK_NOTHROW(pricer.layer_program(kind, one.plan, 0, choice));
        CHECK_NOTHROW(pricer.step_end_program(kind, one.plan, 0, choice));
      }
    }
  }
  PassChoice choice;
  CHECK_FALSE(leave_out("no_such_pass", choice));
}

TEST_CASE("a pass that breaks a layer is named") {
  const LoweredLayer valid = block_of(lowered_plans().front());
  const auto failure = [&](const LoweredLayer& layer, const PassChanges& changes = {}) {
    LayerVerifier verifier;
    verifier.start(valid);
    try {
      verifier.check(layer, "some_pass", changes);
    } catch (const BugError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(failure(valid).empty());

  LoweredLayer layer = valid;
  event_of(layer, Kind::kOp).index = 10'000;
  CHECK_THAT(failure(layer), Contains("failed after some_pass: an event has record 10000 of"));

  layer = valid;
  layer.phase(Phase::kForward).events.push_back(event_of(layer, Kind::kAllocate));
  CHECK_THAT(failure(layer), Contains("allocated twice"));

  layer = valid;
  std::erase_if(layer.phase(Phase::kBackward).events,
                [](const LoweredEvent& event) { return event.kind == Kind::kFree; });
  CHECK_FALSE(failure(layer).empty());

  layer = valid;
  layer.ops[event_of(layer, Kind::kOp).index].flops += 1e9;
  CHECK_THAT(failure(layer), Contains("FLOPs changed"));
  CHECK(failure(layer, {.flops = true}).empty());

  layer = valid;
  layer.collectives[event_of(layer, Kind::kCollective).index].bytes += 1'000'000;
  CHECK_THAT(failure(layer), Contains("bytes of collectives changed"));
  CHECK(failure(layer, {.sent = true}).empty());

  layer = valid;
  hold(layer, kForwardStart, kForwardEnd, 100'000'000, "more");
  CHECK_THAT(failure(layer), Contains("bytes of tensors changed"));
  CHECK(failure(layer, {.memory = true}).empty());
}

}  // namespace tpsim
