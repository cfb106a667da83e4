// Log lines of programs other than Megatron, for parse_training_log().
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "evidence/logs/training_log.h"

namespace tpsim {

// Smaller rates are ignored, because the step time derived from them would overflow.
inline constexpr double kLeastRate = 1e-9;

// Returns the number at the start of the text if it is between 0 and 1e15, else nothing.
std::optional<double> logged_number(std::string_view text);
// Like logged_number(), but also reads "6,210" and "1.23K".
std::optional<double> logged_count(std::string_view text);
// Returns the step number after the last one, for lines that do not state a step number.
std::int64_t next_step(const TrainingLog& log);
// Rounds the number to a count. Returns 0 if the number is missing.
std::int64_t whole(std::optional<double> number);
// Returns the number after `label`.
std::optional<double> number_after(std::string_view line, std::string_view label);

// summed_up_step() returns the mean seconds per step from the last line of Hugging Face's Trainer,
// which covers the time from the first to the last step. read_foreign_step() reads a step line of a
// program other than Megatron, and returns false for any other line.
std::optional<double> summed_up_step(std::string_view line);
bool read_foreign_step(std::string_view line, TrainingLog& log);
// Reads a line of an MLPerf result file, ":::MLLOG {"key": "tracked_stats", "value": {...}, ...}",
// after any prefix of a launcher. Adds a step if the line has "train_step_time" in seconds, or else
// "throughput" in sequences/s of all GPUs. Sets `batch` if the line has "global_batch_size".
// Returns false if the line is not an MLPerf line.
bool read_mlperf_line(std::string_view line, TrainingLog& log, std::int64_t& batch);
// Reads "'memory(GiB)': 46.5" of ms-swift and "perf/max_memory_reserved_gb:60.2" of verl, both in
// GiB.
void read_logged_memory(std::string_view line, TrainingLog& log);
// Reads "throughput per GPU (TFLOP/s/GPU): 80.2", "tflops: 310", ...
void read_logged_tflops(std::string_view line, TrainingLog& log);

}  // namespace tpsim
