// Memory snapshots as PyTorch writes them, and what was allocated at their peak.
#include "evidence/logs/memory_snapshot.h"

#include <catch2/catch.hpp>

#include "evidence/logs/pickle.h"

namespace tpsim {
namespace {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

SnapshotSite site_in(const std::string& file, const std::string& function) {
  return {{"/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", 114, "forward"},
          {file, 10, function}};
}

// 4 GiB of weights, then two steps that allocate and free 3 GiB of activations; the second also has
// 1 GiB of logits.
MemorySnapshot two_steps() {
  MemorySnapshot snapshot;
  snapshot.sites = {site_in("/work/model.py", "build"), site_in("/work/model.py", "forward"),
                    site_in("/work/loss.py", "loss")};
  snapshot.segments = {{0, 10 * kGib, {{0, 4 * kGib, 0}}}};
  const auto add = [&](SnapshotAction action, std::int64_t at, std::int64_t size,
                       std::size_t site) {
    snapshot.events.push_back({action, at * kGib, size * kGib, 0, site, {}});
  };
  add(SnapshotAction::kAlloc, 4, 3, 1);
  add(SnapshotAction::kFree, 4, 3, 2);
  add(SnapshotAction::kSegmentAlloc, 8, 2, kNoSite);
  add(SnapshotAction::kAlloc, 4, 3, 1);
  add(SnapshotAction::kAlloc, 8, 1, 2);
  add(SnapshotAction::kFree, 8, 1, 2);
  add(SnapshotAction::kFree, 4, 3, 2);
  return snapshot;
}

void check_two_steps(const SnapshotPeak& peak) {
  CHECK(peak.allocated == Bytes(8.0 * kGib));
  CHECK(peak.reserved == Bytes(10.0 * kGib));
  CHECK(peak.kept == Bytes(4.0 * kGib));
  CHECK(peak.missing == Bytes());
  REQUIRE(peak.live.size() == 3);
  CHECK(peak.live[0].site == "model.py:10 build");
  CHECK(peak.live[0].bytes == Bytes(4.0 * kGib));
  CHECK(peak.live[1].site == "model.py:10 forward");
  CHECK(peak.live[2].site == "loss.py:10 loss");
  CHECK(peak.live[2].blocks == 1);
}

}  // namespace

TEST_CASE("the peak of a snapshot is what was allocated at once") {
  check_two_steps(peak_of(two_steps()));
}

TEST_CASE("a snapshot keeps its peak when it is written and read") {
  const auto read = read_memory_snapshot(to_pickle(two_steps()), "x.pickle");
  REQUIRE(read.ok());
  check_two_steps(peak_of(*read));
}

TEST_CASE("memory that was freed but not allocated in the recording counts before") {
  MemorySnapshot snapshot = two_steps();
  snapshot.events.erase(snapshot.events.begin());
  check_two_steps(peak_of(snapshot));
  snapshot.events.erase(snapshot.events.begin(), snapshot.events.begin() + 4);
  const SnapshotPeak peak = peak_of(snapshot);
  CHECK(peak.allocated == Bytes(8.0 * kGib));
  REQUIRE(peak.live.size() == 2);
  CHECK(peak.live.front().bytes == Bytes(4.0 * kGib));
  CHECK(peak.live.back().blocks == 1);
}

TEST_CASE("a model that exists unsharded at start-up is not the peak of the steps") {
  MemorySnapshot snapshot = two_steps();
  std::vector<SnapshotEvent> start_up = {{SnapshotAction::kAlloc, 20 * kGib, 16 * kGib, 0, 0, {}},
                                         {SnapshotAction::kFree, 20 * kGib, 16 * kGib, 0, 0, {}},
                                         {SnapshotAction::kAlloc, 0, 4 * kGib, 0, 0, {}}};
  snapshot.events.insert(snapshot.events.begin(), start_up.begin(), start_up.end());
  const SnapshotPeak peak = peak_of(snapshot);
  CHECK(peak.start_up == Bytes(16.0 * kGib));
  check_two_steps(peak);
  CHECK(peak_of(two_steps()).start_up == Bytes());
}

TEST_CASE("a request that ran out of memory is reported") {
  MemorySnapshot snapshot = two_steps();
  snapshot.events.push_back({SnapshotAction::kOutOfMemory, 0, 5 * kGib, 0, kNoSite, {}});
  CHECK(peak_of(snapshot).missing == Bytes(5.0 * kGib));
}

TEST_CASE("files that are not snapshots of a GPU are refused") {
  const auto error_of = [](const std::string& bytes) {
    const auto read = read_memory_snapshot(bytes, "x.pickle");
    return read.ok() ? "" : read.error().message;
  };
  CHECK(error_of("{}").find("opcode 0x7b") != std::string::npos);
  PickleWriter empty;
  empty.begin_list();
  empty.end();
  CHECK(error_of(empty.take()).find("is not a memory snapshot") != std::string::npos);
  MemorySnapshot snapshot = two_steps();
  snapshot.segments.clear();
  CHECK(error_of(to_pickle(snapshot)).find("no memory of a GPU") != std::string::npos);
  snapshot = two_steps();
  snapshot.events.clear();
  CHECK(error_of(to_pickle(snapshot)).find("no events") != std::string::npos);
}

}  // namespace tpsim
