#include "cli/measured_steps.h"

#include <algorithm>

#include "profiler/samples.h"

namespace tpsim {

StepTimes divided(const StepTimes& times, std::int64_t by) {
  StepTimes result = times;
  for (OpTime& op : result.ops) {
    op.count /= by;
    op.time = op.time / static_cast<double>(by);
  }
  for (CollectiveTime& call : result.collectives) {
    call.count /= by;
    call.time = call.time / static_cast<double>(by);
  }
  return result;
}

MeasuredSteps measured_steps(const std::vector<StepReport>& reports) {
  constexpr std::size_t kWarmUp = 2;
  const std::size_t first = std::min(kWarmUp, reports.size() - 1);
  MeasuredSteps measured;
  std::vector<double> seconds;
  StepTimesSum sum;
  for (std::size_t i = first; i < reports.size(); ++i) {
    seconds.push_back(reports[i].seconds);
    measured.mean += Seconds(reports[i].seconds);
    sum.add(reports[i].times);
  }
  measured.count = static_cast<std::int64_t>(seconds.size());
  measured.mean = measured.mean / static_cast<double>(seconds.size());
  const Middle middle = middle_of(seconds);
  measured.step = Seconds(middle.median);
  measured.spread = middle.spread;
  measured.times = divided(sum.times(), measured.count);
  measured.peak = Bytes(static_cast<double>(reports.back().peak_bytes));
  return measured;
}

}  // namespace tpsim
