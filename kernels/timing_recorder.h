// Times every op and collective of a device, by marks around each.
//
// Ops inside a collective count as time of the collective. For an overlapped collective only the
// host's work and the wait for its end count. No mark is read before take(), so that the host never
// waits for an asynchronous device.
#pragma once

#include <vector>

#include "core/program/op_times.h"
#include "kernels/device.h"

namespace tpsim {

class TimingRecorder final : public Recorder {
 public:
  // Becomes the device's recorder until its destruction.
  explicit TimingRecorder(Device& device);
  ~TimingRecorder() override;
  TimingRecorder(const TimingRecorder&) = delete;
  TimingRecorder& operator=(const TimingRecorder&) = delete;

  void op_started(const OpRecord&) override;
  void op_finished(const OpRecord& record) override;
  void collective_started(const CollectiveRecord&) override;
  void collective_finished(const CollectiveRecord& record) override;
  void collective_resumed(const CollectiveRecord& record) override;
  void collective_paused(const CollectiveRecord& record) override;

  // Returns the times recorded since the last call. Waits for the device.
  StepTimes take();
  // Discards the times recorded since the last take().
  void clear();
  // Returns this thread's CPU time over wall time since clear(), at most 1. Excludes collectives,
  // which may wait. Not meaningful for asynchronous devices.
  double share_on_core() const;

 private:
  struct Span {
    DeviceMark begin, end;
  };
  struct TimedOp {
    OpRecord record;
    Span span;
  };
  struct TimedCollective {
    CollectiveRecord record;
    Span span;
    bool begins = true;  // false: more time of a collective that was already counted
  };

  Device& device_;
  Recorder* before_;
  bool inside_collective_ = false;
  DeviceMark started_;
  struct Clocks {
    double wall = 0, cpu = 0;
  };
  static Clocks now();
  void end_work();
  Clocks since_, worked_;  // clocks at the end of the last collective; total outside collectives
  std::vector<TimedOp> ops_;
  std::vector<TimedCollective> collectives_;
};

}  // namespace tpsim
