// Whether a stretch of work had its processor for itself. What was disturbed by other programs is
// thrown away, not averaged in.
#pragma once

namespace tpsim {

class LoadMeter {
 public:
  virtual ~LoadMeter() = default;
  // The calling thread begins a stretch of work.
  virtual void start() = 0;
  // Whether it has had a core to itself since start().
  virtual bool was_alone() = 0;
};

// For work that runs on the calling thread: its time on a core against the clock on the wall. A
// thread that also sleeps (in a collective) cannot be judged so.
class ThreadLoadMeter final : public LoadMeter {
 public:
  void start() override;
  bool was_alone() override;

 private:
  double wall_ = 0, on_core_ = 0;  // seconds, when the stretch began
};

// For a device that nobody else uses.
class OwnDeviceMeter final : public LoadMeter {
 public:
  void start() override {}
  bool was_alone() override { return true; }
};

}  // namespace tpsim
