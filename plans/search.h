// All legal plans of a model on a number of GPUs, and the best of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/plan.h"
#include "core/report.h"
#include "core/result.h"
#include "core/scenario.h"

namespace tpsim {

enum class Objective : std::uint8_t { kTime, kMemory, kCost };

// What to search. An empty list leaves a dimension free: every legal value is tried.
struct SearchSpace {
  std::int64_t gpus = 1;
  std::int64_t global_batch = 1;
  std::vector<std::int64_t> tp, pp, dp, zero, micro_batch, virtual_stages;
  std::vector<Recompute> recompute;
  std::vector<bool> sequence_parallel;
  std::vector<AttentionKind> attention;
  std::vector<ScheduleKind> schedule;
  DType dtype = DType::kBFloat16;
  DType gradient_dtype = DType::kFloat32;
  Objective objective = Objective::kTime;
  Bytes memory_limit;  // zero: the device's capacity
};

struct SearchResult {
  std::int64_t considered = 0;
  std::int64_t feasible = 0;
  std::int64_t simulated = 0;                  // event by event: those that could be among the best
  std::map<std::string, std::int64_t> pruned;  // why a combination cannot run -> how many
  Seconds elapsed;
  std::vector<PlannedRun> plans;           // best first, simulated event-exactly
  std::optional<PlannedRun> nearest_miss;  // when nothing fits: the plan that misses by least
};

// `top` best plans. `progress` hears the done share in [0,1]; it may be empty. Fails on a GPU count
// beyond the cluster; nothing fitting is no failure: plans is empty and nearest_miss is set. The
// answer does not depend on the number of threads.
Result<SearchResult> search(const Scenario& scenario, const SearchSpace& space, int top,
                            const std::function<void(double)>& progress, int threads = 1);

// What plans of the space may use of a device: at a peak of its capacity, memory runs out in every
// second run.
Bytes memory_limit(const Scenario& scenario, const SearchSpace& space);

}  // namespace tpsim
