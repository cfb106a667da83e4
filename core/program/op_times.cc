#include "core/program/op_times.h"

namespace tpsim {

void StepTimesSum::add(const OpRecord& op, Seconds time, std::int64_t count) {
  OpTime& sum = ops_.try_emplace(op.key, OpTime{op, 0, Seconds()}).first->second;
  sum.count += count;
  sum.time += time;
}

void StepTimesSum::add(const CollectiveRecord& record, Seconds time, std::int64_t count) {
  const Call call{record.kind, record.group, record.ranks, record.bytes};
  CollectiveTime& sum =
      collectives_.try_emplace(call, CollectiveTime{record, 0, Seconds()}).first->second;
  sum.count += count;
  sum.time += time;
}

void StepTimesSum::add(const StepTimes& times) {
  for (const OpTime& op : times.ops) add(op.record, op.time, op.count);
  for (const CollectiveTime& c : times.collectives) add(c.record, c.time, c.count);
}

StepTimes StepTimesSum::times() const {
  StepTimes times;
  for (const auto& [key, op] : ops_) times.ops.push_back(op);
  for (const auto& [call, collective] : collectives_) times.collectives.push_back(collective);
  return times;
}

Seconds total(const std::vector<OpTime>& ops) {
  Seconds sum;
  for (const OpTime& op : ops) sum += op.time;
  return sum;
}

Seconds total(const std::vector<CollectiveTime>& collectives) {
  Seconds sum;
  for (const CollectiveTime& collective : collectives) sum += collective.time;
  return sum;
}

std::size_t drop_larger(Bytes most, StepTimes& times) {
  const auto is_larger = [&](const auto& one) {
    return static_cast<double>(one.record.bytes) > most.value();
  };
  return std::erase_if(times.ops, is_larger) + std::erase_if(times.collectives, is_larger);
}

}  // namespace tpsim
