// Times every op and collective of a device, by marks around each.
//
// What a collective runs on the device itself counts as the collective's time; of one that runs
// beside ops, what the host does for it and the wait for its end. Nothing is read from
// the device before take(), so that an asynchronous one is never made to wait.
#pragma once

#include <vector>

#include "core/program/op_times.h"
#include "kernels/device.h"

namespace tpsim {

class TimingRecorder final : public Recorder {
 public:
  // Becomes the device's recorder for as long as it lives.
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

  // What was recorded since the last call; waits for the device.
  StepTimes take();
  // Forgets what was recorded since the last take().
  void clear();
  // Of what this thread did since clear() outside of collectives, which wait by right: the share of
  // the time in which it had a core. Says nothing of a device that works beside its thread.
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
    bool begins = true;  // else it goes on with one that was counted before
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
  Clocks since_, worked_;  // when work went on; how much of it there was
  std::vector<TimedOp> ops_;
  std::vector<TimedCollective> collectives_;
};

}  // namespace tpsim
