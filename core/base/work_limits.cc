#include "core/base/work_limits.h"

#include <fmt/format.h>

namespace tpsim {

WorkEstimate work_of_tasks(double tasks) {
  // Costs per task, measured in 2026. The simulation stores the arrival time of each task. The
  // spans of a timeline are not included.
  constexpr Seconds kTask(40e-9);
  constexpr Bytes kArrival(8);
  return {tasks * kTask, tasks * kArrival};
}

Status check_work(const std::string& what, const WorkEstimate& work, const WorkLimits& limits) {
  if (work.time <= limits.time && work.memory <= limits.memory) return Ok{};
  return Error{
      ErrorKind::kDoesNotFit,
      fmt::format(
          "{} takes about {} on one core and {} of memory; work above {} or {} needs --no-limits",
          what, to_string(work.time), to_string(work.memory), to_string(limits.time),
          to_string(limits.memory)),
      "", "add --no-limits to run it anyway"};
}

}  // namespace tpsim
