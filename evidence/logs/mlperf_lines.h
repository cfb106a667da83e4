// Reads lines of MLPerf's results files: ":::MLLOG {"key": "tracked_stats", "value": {...}, ...}",
// after any prefix of a launcher.
#pragma once

#include <cstdint>
#include <string_view>

#include "evidence/logs/training_log.h"

namespace tpsim {

// Adds the step of a line with "train_step_time" in s, or else "throughput" in sequences/s of all
// GPUs, to `log`. Sets `batch` if the line has "global_batch_size". False for lines of other
// programs.
bool read_mlperf_line(std::string_view line, TrainingLog& log, std::int64_t& batch);

}  // namespace tpsim
