// Laws of predicted memory snapshots: the peak is that of the prediction, blocks do not overlap,
// and a snapshot held against its own prediction agrees.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "app/answers/memory_answer.h"
#include "tests/sim/step/step_cases.h"

namespace tpsim::app {
namespace {

// Replays the events: no two live blocks may overlap, and a free must match its allocation.
void check_blocks(const MemorySnapshot& snapshot) {
  std::map<std::int64_t, std::int64_t> live;  // size by address
  for (const SnapshotEvent& event : snapshot.events) {
    if (event.action == SnapshotAction::kFree) {
      REQUIRE(live.count(event.address) == 1);
      REQUIRE(live[event.address] == event.bytes);
      live.erase(event.address);
      continue;
    }
    const auto next = live.lower_bound(event.address);
    if (next != live.end()) REQUIRE(event.address + event.bytes <= next->first);
    if (next != live.begin()) {
      const auto [address, bytes] = *std::prev(next);
      REQUIRE(address + bytes <= event.address);
    }
    live[event.address] = event.bytes;
  }
  const SnapshotSegment& segment = snapshot.segments.front();
  REQUIRE(segment.blocks.size() == live.size());
  for (const SnapshotBlock& block : segment.blocks) CHECK(live[block.address] == block.bytes);
}

}  // namespace

TEST_CASE("a predicted snapshot has the peak of the prediction") {
  for (const test::StepCase& c : test::step_cases()) {
    INFO(c.model.name << " " << c.name);
    const Scenario scenario = test::scenario_of(c);
    const auto step = step_memory(scenario, c.plan);
    REQUIRE(step.ok());
    for (const PeakMemory& peak : step->peaks) {
      INFO("stage " << peak.stage);
      const MemorySnapshot snapshot = predicted_snapshot(scenario, c.plan, peak.stage);
      check_blocks(snapshot);
      double workspace = 0;
      for (const LiveMemory& one : peak.live) {
        if (one.group.label == "workspace of libraries") workspace = one.bytes;
      }
      // Each event is rounded to a byte.
      const double allocated = peak_of(snapshot).allocated.value();
      CHECK(std::abs(allocated - (peak.tensors - workspace)) <
            static_cast<double>(snapshot.events.size()));
    }
  }
}

}  // namespace tpsim::app
