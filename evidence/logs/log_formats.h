// Lines of other programs' logs, for parse_training_log().
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "evidence/logs/training_log.h"

namespace tpsim {

// Less is garbage, and times of it would leave the numbers.
inline constexpr double kLeastRate = 1e-9;

// The number that a text starts with, if it is finite, not negative, and no garbage.
std::optional<double> logged_number(std::string_view text);
// Likewise of "6,210" and "1.23K".
std::optional<double> logged_count(std::string_view text);
// Where no number of a step stands beside it, steps are counted.
std::int64_t next_step(const TrainingLog& log);
// As a count of steps; 0 for none.
std::int64_t whole(std::optional<double> number);
// The number behind `label`.
std::optional<double> number_after(std::string_view line, std::string_view label);

// A step of another program than Megatron; false for any other line.
// Seconds of a mean step, of Trainer's last line, which counts everything between the first and the
// last.
std::optional<double> summed_up_step(std::string_view line);
bool read_foreign_step(std::string_view line, TrainingLog& log);
// "'memory(GiB)': 46.5" of ms-swift, "perf/max_memory_reserved_gb:60.2" of verl, both in GiB.
void read_logged_memory(std::string_view line, TrainingLog& log);
// "throughput per GPU (TFLOP/s/GPU): 80.2", "tflops: 310", ...
void read_logged_tflops(std::string_view line, TrainingLog& log);

}  // namespace tpsim
