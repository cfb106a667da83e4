// The memory of a plan over a step: its contents at the peak, as a PyTorch memory snapshot, and
// compared with a snapshot of a real run.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/answers/plan_answers.h"
#include "core/base/result.h"
#include "core/json/json_value.h"
#include "evidence/logs/profiler_files.h"
#include "sim/memory/peak_memory.h"

namespace tpsim::app {

struct MemoryRequest {
  SimulatedPlan plan;
  std::string snapshot = {};  // file of a snapshot of the run; empty: none
  std::int64_t rank = 0;      // that recorded the snapshot
};

struct ComparedBytes {
  std::string_view what;
  Bytes measured, predicted;
};

struct ComparedSnapshot {
  std::int64_t rank = 0, stage = 0;
  SnapshotPeak peak;
  std::vector<ComparedBytes> rows;
};

struct MemoryAnswer {
  std::vector<PeakMemory> peaks;  // by stage
  std::optional<ComparedSnapshot> measured;
};
// Returns an error if the snapshot cannot be read, or if the plan lacks the rank.
Result<MemoryAnswer> memory_answer(const MemoryRequest& request);

// Returns the stage that needs the most memory.
const PeakMemory& fullest_stage(const std::vector<PeakMemory>& peaks);

// Returns the tensors of a stage over a step as a memory snapshot of PyTorch, which to_pickle()
// (evidence/logs/pickle.h) writes. Addresses are assigned first fit
// in one segment that grows, so fragmentation differs from that of PyTorch's allocator.
JsonValue predicted_snapshot(const Scenario& scenario, const Plan& plan, std::int64_t stage);

}  // namespace tpsim::app
