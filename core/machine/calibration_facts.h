// Origin and accuracy of the constants of a stack or cluster file that were fitted to measured
// steps (tpsim calibrate). Not calibrated if `rows` is zero.
#pragma once

#include <cstdint>
#include <string>

namespace tpsim {

struct CalibrationFacts {
  std::int64_t rows = 0;  // measured steps
  std::string on;         // file of the measured steps: "runs.csv"
  std::string date;
  double left_out_error = 0;  // mean relative error of leave-one-out predictions
  // Relative standard deviations that remain after the fit: of host time, of kernels that are not
  // in the profile, and of collectives between nodes. They replace the defaults.
  double host_spread = 0, kernel_spread = 0, network_spread = 0;
};

inline constexpr auto kCalibrationFields = [](auto& io, auto& facts) {
  io.integer("rows", facts.rows, {1, 1'000'000'000});
  io.text("on", facts.on);
  io.text("date", facts.date);
  io.number("left_out_error", facts.left_out_error, {0, 1e6});
  io.number("host_spread", facts.host_spread, {0, 1});
  io.number("kernel_spread", facts.kernel_spread, {0, 1});
  io.number("network_spread", facts.network_spread, {0, 1});
};

// Reads or writes the facts. Files that are not calibrated omit them.
template <class Io>
void calibration_field(Io& io, auto& facts) {
  io.object_if(facts.rows > 0, "calibrated",
               [&](auto& inner) { kCalibrationFields(inner, facts); });
}

}  // namespace tpsim
