// Laws of predicted memory snapshots: the peak is that of the prediction, blocks do not overlap,
// and a snapshot held against its own prediction agrees.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "app/answers/memory_answer.h"
#include "tests/sim/step/step_cases.h"

namespace tpsim::app {
namespace {

std::int64_t number_at(const JsonValue& value, std::string_view key) {
  return *value.find(key)->as<std::int64_t>();
}

const JsonValue::Array& list_at(const JsonValue& value, std::string_view key) {
  return *value.find(key)->as<JsonValue::Array>();
}

const JsonValue::Array& events_of(const JsonValue& snapshot) {
  return *list_at(snapshot, "device_traces").front().as<JsonValue::Array>();
}

// Replays the events: no two live blocks may overlap, and a free must match its allocation. Returns
// the highest number of allocated bytes.
std::int64_t check_blocks(const JsonValue& snapshot) {
  std::map<std::int64_t, std::int64_t> live;  // size by address
  std::int64_t allocated = 0, most = 0;
  for (const JsonValue& event : events_of(snapshot)) {
    const std::string& action = *event.find("action")->as<std::string>();
    const std::int64_t address = number_at(event, "addr"), size = number_at(event, "size");
    if (action == "free_completed") {
      REQUIRE(live.count(address) == 1);
      REQUIRE(live[address] == size);
      live.erase(address);
      allocated -= size;
    }
    if (action != "alloc") continue;
    const auto next = live.lower_bound(address);
    if (next != live.end()) REQUIRE(address + size <= next->first);
    if (next != live.begin()) REQUIRE(std::prev(next)->first + std::prev(next)->second <= address);
    live[address] = size;
    allocated += size;
    most = std::max(most, allocated);
  }
  const JsonValue& segment = list_at(snapshot, "segments").front();
  std::int64_t address = number_at(segment, "address");
  std::size_t active = 0;
  for (const JsonValue& block : list_at(segment, "blocks")) {
    const bool is_active = *block.find("state")->as<std::string>() == "active_allocated";
    if (is_active) CHECK(live[address] == number_at(block, "size"));
    active += is_active ? 1 : 0;
    address += number_at(block, "size");
  }
  CHECK(active == live.size());
  CHECK(address == number_at(segment, "address") + number_at(segment, "total_size"));
  return most;
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
      const JsonValue snapshot = predicted_snapshot(scenario, c.plan, peak.stage);
      const auto allocated = static_cast<double>(check_blocks(snapshot));
      double workspace = 0;
      for (const LiveMemory& one : peak.live) {
        if (one.group.label == "workspace of libraries") workspace = one.bytes;
      }
      // Each event is rounded to a byte.
      CHECK(std::abs(allocated - (peak.tensors - workspace)) <
            static_cast<double>(events_of(snapshot).size()));
    }
  }
}

}  // namespace tpsim::app
