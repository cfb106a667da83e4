// Measured and compared times of a run, as tables and as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options/terminal.h"
#include "core/json/json_value.h"
#include "core/program/op_times.h"
#include "reference_model/training/training.h"
#include "sim/step/comparison.h"

namespace tpsim::cli {

// Return {"ops": [{"op", "key", "label", "count", "seconds"}], "collectives": [{"collective",
// "group", "ranks", "bytes", "label", "count", "seconds"}]}, for the report of a run.
JsonValue ops_json(const std::vector<OpTime>& ops);
JsonValue collectives_json(const std::vector<CollectiveTime>& collectives);

JsonValue compared_json(const std::vector<ComparedTime>& rows);
constexpr std::size_t kComparedRows = 16;
// Shows at most `most` rows and the number of further rows.
std::string compared_table(const Terminal& terminal, const std::string& title,
                           const std::vector<ComparedTime>& rows, std::size_t most = kComparedRows);

// Returns "+4.2 %".
std::string error_text(double share);

// Statistics of a run's steps without the first ones, which warm up caches and allocators.
struct MeasuredSteps {
  Seconds step;       // median
  Seconds mean;       // of the same steps
  double spread = 0;  // median absolute deviation / median
  std::int64_t count = 0;
  std::int64_t warm_up = 0;  // steps skipped before these
  Seconds least;             // minimum of the same steps
  double share_on_core = 1;  // mean of StepReport's
  StepTimes times;           // mean of one step
  Bytes allocated;           // maximum
  Bytes used;                // total on the device; 0: unknown
  // Returns the memory to compare with predictions: memory in use if the device reports it, else
  // allocated memory.
  Bytes peak() const { return used.value() > 0 ? used : allocated; }
};

// Skips the first two steps if there are more.
MeasuredSteps measured_steps(const std::vector<StepReport>& reports);

// Serializes for another process of this program. Labels are dropped, since they point into this
// process.
std::string packed(const MeasuredSteps& steps);
MeasuredSteps unpacked_steps(std::string_view bytes);

// Returns times and counts divided by `by`.
StepTimes divided(const StepTimes& times, std::int64_t by);

}  // namespace tpsim::cli
