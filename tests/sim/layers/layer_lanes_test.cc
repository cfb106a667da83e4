// When the kernels and calls of a layer run, compared with its price.
#include "sim/layers/layer_lanes.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "core/scenario/catalogue.h"
#include "sim/layers/layer_pricer.h"
#include "sim/schedule/stage_lanes.h"
#include "sim/step/simulate.h"
#include "tests/sim/step/step_cases.h"

namespace tpsim {
namespace {

constexpr double kRounding = 1e-12;  // seconds

// Checks that spans of a stream follow one another, and that the compute stream's spans, and the
// calls for which it waits, fill the phase.
void check_phase(const LayerLanes& lanes, Phase which, Seconds priced) {
  const PhaseLanes& phase = lanes.phase(which);
  CHECK(phase.end.value() == Approx(priced.value()).margin(kRounding));
  std::map<Stream, std::vector<LaneSpan>> streams;
  Seconds filled, exposed;
  for (const LaneSpan& span : phase.spans) {
    CHECK(span.begin <= span.end);
    CHECK(span.end.value() <= phase.end.value() + kRounding);
    streams[span.stream].push_back(span);
    if (span.kind == LoweredEvent::Kind::kStart) {
      exposed += span.exposed;
      if (span.issued >= Seconds()) CHECK(span.issued <= span.begin);
    } else {
      filled += span.end - span.begin;
    }
  }
  for (auto& [stream, spans] : streams) {
    std::stable_sort(spans.begin(), spans.end(),
                     [](const LaneSpan& a, const LaneSpan& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < spans.size(); ++i) {
      CHECK(spans[i].begin.value() >= spans[i - 1].end.value() - kRounding);
    }
  }
  CHECK(filled.value() <= phase.end.value() + kRounding);
  CHECK((filled + exposed).value() >= phase.end.value() - kRounding);
}

void check_layers(const Scenario& scenario, const Plan& plan) {
  LayerPricer pricer(scenario);
  for (const LayerKind kind : {LayerKind::kEmbedding, LayerKind::kBlock, LayerKind::kHead}) {
    const LayerCost& cost = pricer.layer(kind, plan);
    const LayerLanes lanes = pricer.lanes(kind, plan);
    check_phase(lanes, Phase::kForward, cost[TaskKind::kForward].time.device);
    check_phase(lanes, Phase::kWeightGradient, cost[TaskKind::kWeightGradient].time.device);
    const Seconds backward = lanes.phase(Phase::kRecompute).end + lanes.phase(Phase::kBackward).end;
    CHECK(backward.value() ==
          Approx(cost[TaskKind::kBackward].time.device.value()).margin(kRounding));
  }
}

}  // namespace

TEST_CASE("the lanes of a layer fill the time that it is priced at") {
  for (const test::StepCase& c : test::step_cases()) {
    Scenario scenario = test::scenario_of(c);
    scenario.stack.host = {};  // time of the host has no lane
    INFO(c.model.name << " " << c.name);
    check_layers(scenario, c.plan);
  }
}

TEST_CASE("collectives that overlap have lanes of their own") {
  const Catalogue data(std::string(TPSIM_SOURCE_DIR) + "/data");
  Scenario scenario{.model = *data.load_model("llama-3-8b"),
                    .cluster = *data.load_cluster("dgx-h100"),
                    .profile = *data.load_profile("h100-sxm"),
                    .stack = *data.load_stack("pytorch-fsdp")};
  scenario.stack.host = {};
  Plan plan;
  plan.degrees.dp = 16;
  plan.zero = 3;
  plan.attention = AttentionKind::kFlash;
  plan.recompute = Recompute::kNone;
  plan.global_batch = 64;
  plan.stage_layers = {scenario.model.layers};
  check_layers(scenario, plan);
  LayerPricer pricer(scenario);
  const LayerLanes lanes = pricer.lanes(LayerKind::kBlock, plan);
  const std::vector<LaneSpan>& spans = lanes.phase(Phase::kForward).spans;
  const auto call = std::find_if(spans.begin(), spans.end(), [](const LaneSpan& span) {
    return span.stream == Stream::kData && span.kind == LoweredEvent::Kind::kStart;
  });
  REQUIRE(call != spans.end());
  CHECK(call->end > call->begin);
  CHECK(call->exposed < call->end - call->begin);
}

TEST_CASE("kernels of a stage's first micro-batch run within its tasks") {
  for (const test::StepCase& c : test::step_cases()) {
    const Scenario scenario = test::scenario_of(c);
    INFO(c.model.name << " " << c.name);
    LayerPricer pricer(scenario);
    const Timeline timeline = simulate_timeline(scenario, c.plan).value();
    const std::vector<StreamSpan> spans = stream_spans(pricer, c.plan, timeline);
    for (const StreamSpan& span : spans) {
      const bool is_in_a_task =
          std::any_of(timeline.spans.begin(), timeline.spans.end(), [&](const TimelineSpan& task) {
            return is_task(task.kind) && task.micro_batch == 0 && task.stage == span.stage &&
                   task.chunk == span.chunk && task.begin <= span.begin &&
                   span.end <= task.end + 1000;
          });
      CHECK(is_in_a_task);
    }
  }
}

}  // namespace tpsim
