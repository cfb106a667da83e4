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
  io.integer({"rows", "number of measured steps to which the constants were fitted"}, facts.rows,
             {1, 1'000'000'000});
  io.text({"on", "name of the table of measured steps"}, facts.on);
  io.text({"date", "date of the fit, YYYY-MM-DD"}, facts.date);
  io.number({"left_out_error",
             "mean relative error of the step time if each measured step is predicted from a fit "
             "to the others"},
            facts.left_out_error, {0, 1e6});
  io.number({"host_spread", "relative standard deviation of host times that remains after the fit"},
            facts.host_spread, {0, 1});
  io.number({"kernel_spread",
             "relative standard deviation that remains after the fit, of times of kernels without "
             "sample in the profile"},
            facts.kernel_spread, {0, 1});
  io.number({"network_spread",
             "relative standard deviation that remains after the fit, of times of collectives "
             "between nodes"},
            facts.network_spread, {0, 1});
};

// Reads or writes the facts. Files that are not calibrated omit them.
template <class Io>
void calibration_field(Io& io, auto& facts) {
  io.object_if(facts.rows > 0, {"calibrated", "results of tpsim calibrate (docs/calibrate.md)"},
               [&](auto& inner) { kCalibrationFields(inner, facts); });
}

}  // namespace tpsim
