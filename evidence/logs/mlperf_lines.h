// Lines of MLPerf's results files: ":::MLLOG {"key": "tracked_stats", "value": {...}, ...}", behind
// any prefix of a launcher.
#pragma once

#include <cstdint>
#include <string_view>

#include "evidence/logs/training_log.h"

namespace tpsim {

// Adds the step of a line that states "train_step_time" in s, or else "throughput" in sequences/s
// of all GPUs, to `log`; sets `batch` where the line states "global_batch_size". False for any line
// that is not MLPerf's.
bool read_mlperf_line(std::string_view line, TrainingLog& log, std::int64_t& batch);

}  // namespace tpsim
