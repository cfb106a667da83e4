// Lines of other programs' logs, for parse_training_log().
#pragma once

#include <optional>
#include <string_view>

#include "stacks/training_log.h"

namespace tpsim {

// The number that a text starts with, if it is finite, not negative, and no garbage.
std::optional<double> logged_number(std::string_view text);
// The number behind `label`.
std::optional<double> number_after(std::string_view line, std::string_view label);

// A step of another program than Megatron; false for any other line.
// Seconds of a mean step, of Trainer's last line, which counts everything between the first and the
// last.
std::optional<double> summed_up_step(std::string_view line);
bool read_foreign_step(std::string_view line, TrainingLog& log);
// "throughput per GPU (TFLOP/s/GPU): 80.2", "tflops: 310", ...
void read_logged_tflops(std::string_view line, TrainingLog& log);

}  // namespace tpsim
