#include "kernels/timing_recorder.h"

namespace tpsim {

TimingRecorder::TimingRecorder(Device& device) : device_(device), before_(device.recorder()) {
  device_.set_recorder(this);
}

TimingRecorder::~TimingRecorder() { device_.set_recorder(before_); }

void TimingRecorder::op_started(const OpRecord&) {
  if (!inside_collective_) started_ = device_.mark();
}

void TimingRecorder::op_finished(const OpRecord& record) {
  if (!inside_collective_) ops_.push_back({record, {started_, device_.mark()}});
}

void TimingRecorder::collective_started(const CollectiveRecord&) {
  started_ = device_.mark();
  inside_collective_ = true;
}

void TimingRecorder::collective_finished(const CollectiveRecord& record) {
  inside_collective_ = false;
  collectives_.push_back({record, {started_, device_.mark()}});
}

StepTimes TimingRecorder::take() {
  StepTimesSum sum;
  const auto seconds = [&](const Span& span) {
    return Seconds(device_.seconds_between(span.begin, span.end));
  };
  for (const TimedOp& op : ops_) sum.add(op.record, seconds(op.span));
  for (const TimedCollective& c : collectives_) sum.add(c.record, seconds(c.span));
  clear();
  return sum.times();
}

void TimingRecorder::clear() {
  ops_.clear();
  collectives_.clear();
  device_.forget_marks();
}

}  // namespace tpsim
