// Reads lines of MLPerf result files: ":::MLLOG {"key": "tracked_stats", "value": {...}, ...}". A
// launcher's prefix before ":::MLLOG" is ignored.
#pragma once

#include <cstdint>
#include <string_view>

#include "evidence/logs/training_log.h"

namespace tpsim {

// Adds a step to `log` if the line has "train_step_time" in seconds, or else "throughput" in
// sequences/s of all GPUs. Sets `batch` if the line has "global_batch_size". Returns false if the
// line is not an MLPerf line.
bool read_mlperf_line(std::string_view line, TrainingLog& log, std::int64_t& batch);

}  // namespace tpsim
