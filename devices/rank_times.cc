#include "devices/rank_times.h"

#include <algorithm>

#include "lowering/trace/rank_trace.h"

namespace tpsim::app {

StepTimes predicted_times(const LayerPricer& pricer, const Plan& plan, std::int64_t rank) {
  const Scenario& scenario = pricer.scenario();
  const RankTrace trace = trace_rank(scenario.model, plan, scenario.stack.training, rank);
  const HostCost& host = scenario.stack.host;
  const bool one_queue = !scenario.profile.device.asynchronous;
  StepTimesSum sum;
  for (std::size_t i = trace.step; i < trace.program.events.size(); ++i) {
    const ProgramEvent& event = trace.program.events[i];
    if (event.kind == ProgramEvent::Kind::kOp) {
      const OpRecord& op = trace.program.ops[event.index];
      const Seconds run = pricer.ops().price(op).time;
      // If the device is synchronous, host and device time add up; else the larger of both counts.
      sum.add(op, one_queue ? host.per_op + run : std::max(host.per_op, run));
    } else if (event.kind == ProgramEvent::Kind::kCollective) {
      const LoweredCollective record{trace.program.collectives[event.index]};
      sum.add(record, pricer.collective(record, plan));
    }
  }
  return sum.times();
}

}  // namespace tpsim::app
