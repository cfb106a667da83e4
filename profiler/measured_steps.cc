#include "profiler/measured_steps.h"

#include <algorithm>
#include <tuple>
#include <type_traits>

#include "core/base/packed.h"
#include "profiler/samples.h"

namespace tpsim {
namespace {

// Label of times received from another rank. Labels are not sent, since times are matched by key.
constexpr Label kOfRank{ModelPart::kMeasurement, ""};

// Scalar fields that packed() writes before the times of ops and collectives.
constexpr std::tuple kNumbers{
    &MeasuredSteps::step,          &MeasuredSteps::mean,      &MeasuredSteps::spread,
    &MeasuredSteps::count,         &MeasuredSteps::warm_up,   &MeasuredSteps::least,
    &MeasuredSteps::share_on_core, &MeasuredSteps::allocated, &MeasuredSteps::used};

}  // namespace

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

std::string packed(const MeasuredSteps& steps) {
  Packer packer;
  std::apply([&](auto... number) { (packer.put(steps.*number), ...); }, kNumbers);
  packer.put(steps.times.ops.size());
  for (const OpTime& op : steps.times.ops) {
    packer.put(op.record.key);
    packer.put(op.record.flops);
    packer.put(op.record.bytes);
    packer.put(op.count);
    packer.put(op.time);
  }
  packer.put(steps.times.collectives.size());
  for (const CollectiveTime& call : steps.times.collectives) {
    packer.put(call.record.kind);
    packer.put(call.record.group);
    packer.put(call.record.ranks);
    packer.put(call.record.bytes);
    packer.put(call.count);
    packer.put(call.time);
  }
  return packer.take();
}

MeasuredSteps unpacked_steps(std::string_view bytes) {
  Unpacker from(bytes);
  MeasuredSteps steps;
  const auto take = [&](auto& number) { number = from.get<std::decay_t<decltype(number)>>(); };
  std::apply([&](auto... number) { (take(steps.*number), ...); }, kNumbers);
  // Braces are evaluated from left to right, in the order of packed().
  for (auto left = from.get<std::size_t>(); left > 0; --left) {
    const OpRecord record{from.get<OpKey>(), from.get<double>(), from.get<double>(), kOfRank};
    steps.times.ops.push_back({record, from.get<std::int64_t>(), from.get<Seconds>()});
  }
  for (auto left = from.get<std::size_t>(); left > 0; --left) {
    const CollectiveRecord record{from.get<CollectiveKind>(), from.get<GroupKind>(),
                                  from.get<std::int64_t>(), from.get<std::int64_t>(), kOfRank};
    steps.times.collectives.push_back({record, from.get<std::int64_t>(), from.get<Seconds>()});
  }
  return steps;
}

MeasuredSteps measured_steps(const std::vector<StepReport>& reports) {
  constexpr std::size_t kWarmUp = 2;
  const std::size_t first = std::min(kWarmUp, reports.size() - 1);
  MeasuredSteps measured;
  std::vector<double> seconds;
  StepTimesSum sum;
  measured.warm_up = static_cast<std::int64_t>(first);
  measured.share_on_core = 0;
  for (std::size_t i = first; i < reports.size(); ++i) {
    seconds.push_back(reports[i].seconds);
    measured.mean += Seconds(reports[i].seconds);
    measured.share_on_core += reports[i].share_on_core;
    sum.add(reports[i].times);
  }
  measured.count = static_cast<std::int64_t>(seconds.size());
  measured.mean = measured.mean / static_cast<double>(seconds.size());
  measured.share_on_core /= static_cast<double>(seconds.size());
  measured.least = Seconds(*std::min_element(seconds.begin(), seconds.end()));
  const MedianSpread middle = median_and_spread(seconds);
  measured.step = Seconds(middle.median);
  measured.spread = middle.spread;
  measured.times = divided(sum.times(), measured.count);
  measured.allocated = Bytes(static_cast<double>(reports.back().peak_bytes));
  measured.used = Bytes(static_cast<double>(reports.back().used_bytes));
  return measured;
}

}  // namespace tpsim
