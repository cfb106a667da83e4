#include "core/captured/captured_step.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <numeric>
#include <utility>

#include "core/captured/scaled_step.h"
#include "core/scenario/catalogue.h"
#include "sim/captured/captured_prediction.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;
using Kind = CapturedEvent::Kind;

CapturedMachine machine_of(const char* cluster) {
  const Catalogue catalogue = Catalogue::open().value();
  CapturedMachine machine;
  machine.cluster = catalogue.load_cluster(cluster).value();
  machine.profile = catalogue.load_profile(machine.cluster.profile).value();
  machine.stack = catalogue.load_stack("pytorch").value();
  return machine;
}

std::vector<CapturedStep> golden_steps() {
  std::vector<CapturedStep> steps;
  for (const auto& entry : fs::directory_iterator(fs::path(TPSIM_SOURCE_DIR) / "tests/captures")) {
    if (entry.path().extension() != ".json") continue;
    steps.push_back(read_captured_step(entry.path()).value());
  }
  REQUIRE(steps.size() == 5);
  return steps;
}

Seconds sum(const std::vector<CapturedTime>& rows) {
  return std::accumulate(rows.begin(), rows.end(), Seconds(),
                         [](Seconds all, const CapturedTime& row) { return all + row.time; });
}

// Two elementwise ops of 1 GiB on the compute stream; an all-reduce of 8 ranks begins after the
// first one, and the second waits for it if `waits`.
CapturedStep two_streams(bool waits) {
  CapturedStep step;
  step.world = 8;
  step.modules = {""};
  step.groups = {{0, 1, 2, 3, 4, 5, 6, 7}};
  const CapturedTensor tensor{{std::int64_t{1} << 29}, {}, "bfloat16", 2};
  step.kernels = {{"aten.mul.Tensor", {tensor}, {tensor}, {}}};
  step.collectives = {{CollectiveKind::kAllReduce, 0, std::int64_t{1} << 26}};
  step.events = {{Kind::kKernel, 0, 0},
                 {Kind::kMark, 1, 0},
                 {Kind::kWait, 1, 1000},
                 {Kind::kCollective, 0, 1000},
                 {Kind::kMark, 2, 1000}};
  if (waits) step.events.push_back({Kind::kWait, 2, 0});
  step.events.push_back({Kind::kKernel, 0, 0});
  return step;
}

}  // namespace

TEST_CASE("a captured step is the sum of its parts, by kind, phase and module") {
  const CapturedMachine machine = machine_of("dgx-h100");
  for (const CapturedStep& step : golden_steps()) {
    const CapturedPrediction p = predict_captured(step, machine).value();
    CHECK(p.step > Seconds());
    CHECK((p.busy + p.exposed + p.host_wait) / p.step == Approx(1));
    CHECK(sum(p.ops) / sum(p.modules) == Approx(1));
    CHECK(sum(p.ops) / (p.by_phase[0] + p.by_phase[1] + p.by_phase[2]) == Approx(1));
    CHECK(p.step_low < p.step);
    CHECK(p.step < p.step_high);
    CHECK(p.rough.empty());
  }
}

TEST_CASE("the captured peak is the highest sum of storages that are alive") {
  CapturedMachine machine = machine_of("dgx-h100");
  machine.stack.memory = {};
  machine.stack.memory.allocation_granularity = Bytes(1);
  for (const CapturedStep& step : golden_steps()) {
    double now = 0, peak = 0;
    for (const std::uint32_t one : step.live_at_start) {
      now += static_cast<double>(step.storages[one].bytes);
    }
    for (const CapturedEvent& event : step.events) {
      if (event.kind != Kind::kAllocate && event.kind != Kind::kFree) continue;
      const auto bytes = static_cast<double>(step.storages[event.index].bytes);
      now += event.kind == Kind::kAllocate ? bytes : -bytes;
      CHECK(now >= 0);
      peak = std::max(peak, now);
    }
    CHECK(predict_captured(step, machine)->peak.value() == peak);
  }
}

TEST_CASE("a better machine never lengthens a captured step") {
  const CapturedMachine machine = machine_of("dgx-h100");
  for (const CapturedStep& step : golden_steps()) {
    const Seconds before = predict_captured(step, machine)->step;
    CapturedMachine links = machine;
    links.cluster.intra_node.bandwidth *= 2;
    CHECK(predict_captured(step, links)->step <= before);
    CapturedMachine host = machine;
    host.stack.host.per_block_op = Seconds();
    CHECK(predict_captured(step, host)->step <= before);
  }
}

TEST_CASE("a collective hides behind ops unless an op waits for it") {
  CapturedMachine machine = machine_of("dgx-h100");
  machine.stack.host = {};
  const CapturedPrediction hidden = predict_captured(two_streams(false), machine).value();
  const CapturedPrediction waits = predict_captured(two_streams(true), machine).value();
  REQUIRE(hidden.collectives.size() == 1);
  const Seconds wire = hidden.collectives.front().time;
  CHECK(hidden.exposed == Seconds());
  CHECK(hidden.step / hidden.busy == Approx(1));
  CHECK(waits.exposed / wire == Approx(1));
  CHECK(waits.step / (hidden.busy + wire) == Approx(1));
}

TEST_CASE("captured steps of other ranks have the groups, shards and bytes of those ranks") {
  const fs::path folder = fs::path(TPSIM_SOURCE_DIR) / "tests/captures";
  const CapturedMachine machine = machine_of("dgx-h100");
  for (const char* name : {"llama_fsdp.json", "gpt2_ddp.json"}) {
    const CapturedStep step = read_captured_step(folder / name).value();
    const CapturedStep wider = with_ranks(step, 32).value();
    CHECK(wider.world == 32);
    CHECK(wider.groups.front().size() == 32);
    const CapturedPrediction before = predict_captured(step, machine).value();
    const CapturedPrediction after = predict_captured(wider, machine).value();
    const double share = std::string(name) == "llama_fsdp.json" ? 4 : 1;
    CHECK(before.memory.by_category[0] / after.memory.by_category[0] ==
          Approx(share).epsilon(0.001));
    CHECK(after.collectives.front().time > before.collectives.front().time);
    CHECK(predict_captured(with_ranks(wider, 8).value(), machine)->step / before.step ==
          Approx(1).epsilon(0.001));
    CHECK_THAT(with_ranks(step, 1).error().message, Catch::Contains("not a multiple of 1"));
  }
  const CapturedStep alone = read_captured_step(folder / "llama_bf16.json").value();
  CHECK_THAT(with_ranks(alone, 8).error().message, Catch::Contains("no collective"));
}

TEST_CASE("micro-batches of a captured step keep one set of gradients") {
  const CapturedMachine machine = machine_of("dgx-h100");
  for (const CapturedStep& step : golden_steps()) {
    const CapturedStep repeated = with_accumulation(step, 3).value();
    std::map<std::uint32_t, bool> live;
    for (const std::uint32_t one : repeated.live_at_start) live[one] = true;
    for (const CapturedEvent& event : repeated.events) {
      if (event.kind == Kind::kAllocate) CHECK_FALSE(std::exchange(live[event.index], true));
      if (event.kind == Kind::kFree) CHECK(std::exchange(live[event.index], false));
    }
    const CapturedPrediction once = predict_captured(step, machine).value();
    const CapturedPrediction thrice = predict_captured(repeated, machine).value();
    CHECK(thrice.by_phase[0] <= 3.001 * once.by_phase[0]);  // norms of gradients come once
    CHECK(thrice.by_phase[0] > 2.4 * once.by_phase[0]);
    CHECK(thrice.by_phase[1] >= 3 * once.by_phase[1]);
    CHECK(thrice.by_phase[2] == once.by_phase[2]);
    CHECK(thrice.peak >= once.peak);
    CHECK_FALSE(with_accumulation(repeated, 2).ok());
  }
}

TEST_CASE("spans of a captured step do not overlap on a stream, and one has the peak") {
  const CapturedMachine machine = machine_of("dgx-h100");
  for (const CapturedStep& step : golden_steps()) {
    const CapturedPrediction p = predict_captured(step, machine).value();
    std::map<std::int64_t, Seconds> ends;
    for (const CapturedSpan& span : p.spans) {
      Seconds& end = ends[step.events[span.event].stream];
      CHECK(span.begin >= end);
      end = span.end;
      CHECK(end <= p.step);
    }
  }
}

TEST_CASE("a captured step needs as many GPUs as it has ranks") {
  CapturedStep step = two_streams(true);
  step.world = 1 << 20;
  const auto refused = predict_captured(step, machine_of("dgx-h100"));
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message, Catch::Contains("1048576 ranks"));
}

TEST_CASE("wrong captured steps are errors with their line") {
  const std::string text =
      "{\"format\": \"tpsim captured step\", \"world\": 1, \"rank\": 0, \"software\": {},\n"
      "\"assumed\": {}, \"modules\": [\"\"], \"groups\": [], \"live_at_start\": [],\n"
      "\"kernels\": [{\"op\": \"aten.mm.default\", \"in\": [[[2, 2], \"float32\"]], \"out\": "
      "[]}],\n"
      "\"storages\": [[8, \"\", 0]],\n"
      "\"events\": [[\"kernel\", 0, \"forward\", 0, 0]]}";
  REQUIRE(parse_captured_step(text, "a.json").ok());
  const auto fails = [&](const std::string& from, const std::string& to, const char* where,
                         const char* what) {
    std::string wrong = text;
    wrong.replace(wrong.find(from), from.size(), to);
    const auto parsed = parse_captured_step(wrong, "a.json");
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().where == where);
    CHECK_THAT(parsed.error().message, Catch::Contains(what));
  };
  fails("captured step", "plan", "a.json", "not a captured step");
  fails("float32", "float31", "a.json:3", "unknown dtype 'float31'");
  fails("\"kernel\", 0", "\"kernel\", 1", "a.json:5", "a whole number from 0 to 0");
  fails("\"kernel\", 0, \"forward\"", "\"kernel\", 0, \"sideways\"", "a.json:5", "unknown phase");
  fails("[\"kernel\"", "[\"cernel\"", "a.json:5", "unknown event 'cernel'");
  fails("[8, \"\", 0]", "[8, \"\"]", "a.json:4", "a storage is [bytes, contents, module]");
  fails("\"groups\": [], ", "", "a.json:1", "the key 'groups' is missing");
}

}  // namespace tpsim
