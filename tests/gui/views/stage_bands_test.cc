// Bands of one stage: lanes have the time of their kernels at any zoom, and memory its peak.
#include "gui/views/stage_bands.h"

#include <algorithm>
#include <map>

#include "gui/views/choice.h"
#include "sim/step/simulate.h"
#include "tests/gui/gui_fixture.h"

namespace tpsim::gui {
namespace {

struct BandCase {
  const char* model;
  std::int64_t layers;
  ParallelDegrees degrees;
  std::int64_t virtual_stages = 1;
};

Plan band_plan(const BandCase& one) {
  Plan plan;
  plan.degrees = one.degrees;
  plan.zero = 1;
  plan.micro_batch = 1;
  plan.global_batch = 64;
  plan.virtual_stages = one.virtual_stages;
  if (one.virtual_stages > 1) plan.schedule = ScheduleKind::kInterleaved;
  plan.stage_layers = default_stage_layers(one.layers, one.degrees.pp * one.virtual_stages);
  return plan;
}

// Seconds of each stream in which the stage waits, and in which compute hides it.
std::map<std::pair<Stream, bool>, double> times_of(const StageBands& bands,
                                                   const StageLanes& lanes) {
  std::map<std::pair<Stream, bool>, double> times;
  for (std::size_t i = 0; i < lanes.timeline.spans.size(); ++i) {
    const TimelineSpan& span = lanes.timeline.spans[i];
    const Stream stream = bands.streams[static_cast<std::size_t>(span.stage)];
    times[{stream, lanes.exposed[i]}] += to_seconds(span.end - span.begin).value();
  }
  return times;
}

}  // namespace

TEST_CASE("a stage's lanes have the same times from afar and near, and memory its peak") {
  for (const BandCase& one :
       {BandCase{"bloom-7b1", 30, {2, 2, 2, 1}}, BandCase{"llama-3-8b", 32, {1, 4, 2, 1}, 2},
        BandCase{"bloom-7b1", 30, {8, 1, 2, 1}}}) {
    INFO(one.model << " pp " << one.degrees.pp);
    Choice choice;
    choice.model = one.model;
    const Scenario scenario =
        load_choice(Catalogue(std::string(TPSIM_SOURCE_DIR) + "/data"), choice)->scenario;
    const Plan plan = band_plan(one);
    const auto timeline = simulate_timeline(scenario, plan);
    const auto predicted = simulate(scenario, plan);
    REQUIRE(timeline.ok());
    REQUIRE(predicted.ok());
    LayerPricer pricer(scenario);
    const PlanCosts costs = plan_costs(pricer, plan);
    const double end = to_seconds(timeline->end).value();
    for (std::int64_t stage = 0; stage < plan.degrees.pp; ++stage) {
      const StageMemory& memory = predicted->memory[static_cast<std::size_t>(stage)];
      const StageBands bands = stage_bands(pricer, plan, costs, *timeline, memory);
      const auto near = times_of(bands, lanes_in(bands, {0, end, 1e7}));
      const auto afar = times_of(bands, lanes_in(bands, {0, end, 300}));
      REQUIRE(near.size() == afar.size());
      for (const auto& [key, seconds] : near) {
        INFO(name_of(key.first) << " " << key.second);
        CHECK(afar.at(key) == Approx(seconds).epsilon(0.02).margin(1e-6 * end));
      }
      for (const double width : {7.0, 300.0, 1999.0}) {
        double most = 0;
        for (const MemoryColumn& column : memory_columns(bands, {0, end, width})) {
          double bytes = 0;
          for (const double part : column) bytes += part;
          most = std::max(most, bytes);
        }
        CHECK(most == Approx(memory.total().value()).epsilon(1e-9));
      }
    }
    CHECK(fullest_stage(predicted->memory).stage < plan.degrees.pp);
  }
}

TEST_CASE(
    "the window shows a stage's kernels on the timeline's axis, and a click chooses the stage") {
  GuiFixture gui{AppState()};  // BLOOM on 12 stages
  REQUIRE(gui.run("wait\npress K\nwait") == "");
  REQUIRE(gui.views().bands != nullptr);
  const std::int64_t fullest = gui.views().bands->stage;
  CHECK(fullest == fullest_stage(gui.views().a->predicted.memory).stage);
  REQUIRE(gui.run("wheel timeline 40 0.3 0.1\nwait\nmove \"lanes of the stage\" 0.3 0.05\nwait") ==
          "");
  CHECK(gui.state().timeline.hovered.find("the compute stream") != std::string::npos);
  REQUIRE(gui.run("move \"memory of the stage\" 0.3 0.9\nwait") == "");
  CHECK(gui.state().timeline.hovered.find("GiB") != std::string::npos);
  REQUIRE(gui.run("click \"timeline A\"\nwait") == "");
  CHECK(gui.views().bands->stage != fullest);
  REQUIRE(gui.run("press K\nwait") == "");
  CHECK(gui.views().bands == nullptr);
}

}  // namespace tpsim::gui
