// Who fitted the constants of a stack or cluster file to measured steps, and how well that worked
// (tpsim calibrate). Nobody where `rows` is zero.
#pragma once

#include <cstdint>
#include <string>

namespace tpsim {

struct CalibrationFacts {
  std::int64_t rows = 0;  // measured steps
  std::string on;         // what held them: "runs.csv"
  std::string date;
  double left_out_error = 0;  // mean error of rows, each predicted by a fit without it
  // Standard deviations of what the rows leave open, in place of those that any prediction has:
  // of all that the host takes, of kernels that are not the profile's, of collectives between
  // nodes.
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

// Written where somebody did.
template <class Io>
void calibration_field(Io& io, auto& facts) {
  io.object_if(facts.rows > 0, "calibrated",
               [&](auto& inner) { kCalibrationFields(inner, facts); });
}

}  // namespace tpsim
