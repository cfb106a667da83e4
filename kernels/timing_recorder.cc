#include "kernels/timing_recorder.h"

#include <algorithm>
#include <ctime>

namespace tpsim {

TimingRecorder::TimingRecorder(Device& device) : device_(device), before_(device.recorder()) {
  device_.set_recorder(this);
  since_ = now();
}

TimingRecorder::~TimingRecorder() { device_.set_recorder(before_); }

void TimingRecorder::op_started(const OpRecord&) {
  if (!inside_collective_) started_ = device_.mark();
}

void TimingRecorder::op_finished(const OpRecord& record) {
  if (!inside_collective_) ops_.push_back({record, {started_, device_.mark()}});
}

TimingRecorder::Clocks TimingRecorder::now() {
  const auto read = [](clockid_t clock) {
    timespec time = {};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  return {read(CLOCK_MONOTONIC), read(CLOCK_THREAD_CPUTIME_ID)};
}

void TimingRecorder::end_work() {
  const Clocks here = now();
  worked_.wall += here.wall - since_.wall;
  worked_.cpu += here.cpu - since_.cpu;
  since_ = here;
}

double TimingRecorder::share_on_core() const {
  return worked_.wall > 0 ? std::min(1.0, worked_.cpu / worked_.wall) : 1;
}

void TimingRecorder::collective_started(const CollectiveRecord&) {
  end_work();
  started_ = device_.mark();
  inside_collective_ = true;
}

void TimingRecorder::collective_finished(const CollectiveRecord& record) {
  inside_collective_ = false;
  collectives_.push_back({record, {started_, device_.mark()}});
  since_ = now();
}

void TimingRecorder::collective_resumed(const CollectiveRecord& record) {
  collective_started(record);
}

void TimingRecorder::collective_paused(const CollectiveRecord& record) {
  collective_finished(record);
  collectives_.back().begins = false;
}

StepTimes TimingRecorder::take() {
  end_work();
  StepTimesSum sum;
  const auto seconds = [&](const Span& span) {
    return Seconds(device_.seconds_between(span.begin, span.end));
  };
  for (const TimedOp& op : ops_) sum.add(op.record, seconds(op.span));
  for (const TimedCollective& c : collectives_) {
    sum.add(c.record, seconds(c.span), c.begins ? 1 : 0);
  }
  const Clocks worked = worked_;
  clear();
  worked_ = worked;  // share_on_core() remains valid until clear()
  return sum.times();
}

void TimingRecorder::clear() {
  ops_.clear();
  collectives_.clear();
  device_.forget_marks();
  worked_ = {};
  since_ = now();
}

}  // namespace tpsim
