// Log lines of programs other than Megatron, for parse_training_log().
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "evidence/logs/training_log.h"

namespace tpsim {

// Smaller rates are invalid, and their times would overflow.
inline constexpr double kLeastRate = 1e-9;

// Returns the number at the start of a text, if it is finite and >= 0.
std::optional<double> logged_number(std::string_view text);
// Likewise for "6,210" and "1.23K".
std::optional<double> logged_count(std::string_view text);
// Returns the next step number, for lines without a number.
std::int64_t next_step(const TrainingLog& log);
// Returns the number as a count; 0 for nothing.
std::int64_t whole(std::optional<double> number);
// Returns the number after `label`.
std::optional<double> number_after(std::string_view line, std::string_view label);

// summed_up_step() returns the seconds of a mean step in Trainer's last line, which covers
// everything from first to last step. read_foreign_step() reads a step of a program other than
// Megatron; false for other lines.
std::optional<double> summed_up_step(std::string_view line);
bool read_foreign_step(std::string_view line, TrainingLog& log);
// Reads "'memory(GiB)': 46.5" of ms-swift and "perf/max_memory_reserved_gb:60.2" of verl, both in
// GiB.
void read_logged_memory(std::string_view line, TrainingLog& log);
// Reads "throughput per GPU (TFLOP/s/GPU): 80.2", "tflops: 310", ...
void read_logged_tflops(std::string_view line, TrainingLog& log);

}  // namespace tpsim
