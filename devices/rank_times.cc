#include "devices/rank_times.h"

#include <algorithm>
#include <vector>

#include "lowering/trace/rank_trace.h"

namespace tpsim::app {

namespace {

// Returns the clock of the rank's step: all its ops and collectives, without waits for other ranks.
// `prices`: of the trace's ops.
double clock_of(const LayerPricer& pricer, const Plan& plan, const RankTrace& trace,
                const std::vector<OpPrice>& prices) {
  const double lowest = pricer.ops().lowest_clock();
  StepClock clock;
  Seconds whole;
  for (std::size_t i = trace.step; i < trace.program.events.size(); ++i) {
    const ProgramEvent& event = trace.program.events[i];
    if (event.kind == ProgramEvent::Kind::kOp) {
      clock.add(prices[event.index], 1);
      whole += prices[event.index].at(lowest);
    } else if (event.kind == ProgramEvent::Kind::kCollective) {
      whole += pricer.collective({trace.program.collectives[event.index]}, plan);
    }
  }
  return clock.solve(whole, lowest);
}

}  // namespace

StepTimes predicted_times(const LayerPricer& pricer, const Plan& plan, std::int64_t rank) {
  const Scenario& scenario = pricer.scenario();
  const RankTrace trace = trace_rank(scenario.model, plan, scenario.stack.training, rank);
  const HostCost& host = scenario.stack.host;
  const bool one_queue = !scenario.profile.device.asynchronous;
  std::vector<OpPrice> prices;
  for (const OpRecord& op : trace.program.ops) prices.push_back(pricer.ops().price(op));
  const double clock = clock_of(pricer, plan, trace, prices);
  StepTimesSum sum;
  for (std::size_t i = trace.step; i < trace.program.events.size(); ++i) {
    const ProgramEvent& event = trace.program.events[i];
    if (event.kind == ProgramEvent::Kind::kOp) {
      const OpRecord& op = trace.program.ops[event.index];
      const Seconds run = prices[event.index].at(clock);
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
