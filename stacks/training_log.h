// What a training log says about time and memory. Three formats are told apart line by line:
//
// - Megatron-LM:
//     " iteration 10/ 500 | ... elapsed time per iteration (ms): 12936.1 | ..."
// - Megatron-DeepSpeed:
//     "iteration 10/ 500 | ... elapsed time per iteration (s): 105.2 | ..."
// - tpsim run:
//     "    10   9.812345     1.2345     1.25 s        1638     93.10    12.5 GiB"
//
// The layout is what Megatron prints at its start: "using world size: 384, data-parallel size: 8,
// ...". Timers are read where Megatron prints them: as "    forward-compute ....: (min, max)" after
// a line "(min, max) time across ranks (ms)", or as "time (ms) | optimizer: 12.3 | ...". Memory is
// read from "[Rank 3] ... max reserved: 11000.0" in MiB; tpsim states the first rank's. Every other
// line is passed over.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/units.h"

namespace tpsim {

struct LoggedStep {
  std::int64_t iteration = 0;
  std::int64_t global_batch = 0;  // 0: not said
  Seconds time;
};

// Of one step, over the ranks that reported: equal for a log that prints one number.
struct LoggedTimer {
  Seconds least;
  Seconds most;
};

// What a log says of the layout that ran; 0 where it is silent.
struct LoggedLayout {
  std::int64_t gpus = 0;
  std::int64_t tp = 0;
  std::int64_t pp = 0;
  std::int64_t dp = 0;
  std::int64_t cp = 0;
};

struct TrainingLog {
  LoggedLayout layout;
  std::vector<LoggedStep> steps;
  std::map<std::string, std::vector<LoggedTimer>> timers;  // by the name in the log
  std::map<std::int64_t, Bytes> reserved;                  // most that the allocator held, by rank
};

// `file` names it in errors. A log without one step is an error.
Result<TrainingLog> parse_training_log(std::string_view text, const std::string& file);

}  // namespace tpsim
