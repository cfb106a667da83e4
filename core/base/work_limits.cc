#include "core/base/work_limits.h"

#include <fmt/format.h>

namespace tpsim {

WorkEstimate work_of_tasks(double tasks) {
  // Measured, 2026. The simulation keeps each task's arrival time; its result may be a span of a
  // timeline.
  constexpr Seconds kTask(40e-9);
  constexpr Bytes kArrival(8);
  return {tasks * kTask, tasks * kArrival};
}

Status check_work(const std::string& what, const WorkEstimate& work, const WorkLimits& limits) {
  if (work.time <= limits.time && work.memory <= limits.memory) return Ok{};
  return Error{
      ErrorKind::kDoesNotFit,
      fmt::format("{} takes about {} of one core and {}; work above {} or {} needs --no-limits",
                  what, to_string(work.time), to_string(work.memory), to_string(limits.time),
                  to_string(limits.memory)),
      "", "--no-limits starts it"};
}

}  // namespace tpsim
