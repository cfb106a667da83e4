// Recorded and compared times of a run, as tables and as JSON.
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

// {"ops": [{"op", "key", "label", "count", "seconds"}], "collectives": [{"collective", "group",
// "ranks", "bytes", "label", "count", "seconds"}]}: keys for the report of a run.
JsonValue ops_json(const std::vector<OpTime>& ops);
JsonValue collectives_json(const std::vector<CollectiveTime>& collectives);

JsonValue compared_json(const std::vector<ComparedTime>& rows);
constexpr std::size_t kComparedRows = 16;
// At most `most` rows and how many more there are.
std::string compared_table(const Terminal& terminal, const std::string& title,
                           const std::vector<ComparedTime>& rows, std::size_t most = kComparedRows);

// "+4.2 %"
std::string error_text(double share);

// What a run's steps say together, once the first, which warm caches and allocators up, are left
// out.
struct MeasuredSteps {
  Seconds step;       // median
  Seconds mean;       // of the same steps
  double spread = 0;  // median absolute deviation over median
  std::int64_t count = 0;
  std::int64_t warm_up = 0;  // steps left out before these
  Seconds least;             // of the same steps
  double share_on_core = 1;  // mean, StepReport's
  StepTimes times;           // of one step, on average
  Bytes allocated;           // at most
  Bytes used;                // on the device altogether; 0 where nobody says
  // What predictions of memory are about: all that is in use where the device tells, else what was
  // allocated.
  Bytes peak() const { return used.value() > 0 ? used : allocated; }
};

// Leaves out the first two steps, where there are more.
MeasuredSteps measured_steps(const std::vector<StepReport>& reports);

// As bytes, for another process of this program. Labels stay behind: they point into this one.
std::string packed(const MeasuredSteps& steps);
MeasuredSteps unpacked_steps(std::string_view bytes);

// Times divided by `by`, counts too.
StepTimes divided(const StepTimes& times, std::int64_t by);

}  // namespace tpsim::cli
