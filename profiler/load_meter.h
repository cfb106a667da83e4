// Checks whether a timed piece of work had its processor to itself. Samples that other programs
// disturbed are discarded, not averaged.
#pragma once

namespace tpsim {

class LoadMeter {
 public:
  virtual ~LoadMeter() = default;
  // Call at the start of a piece of work.
  virtual void start() = 0;
  // Whether the thread had a core to itself since start().
  virtual bool was_alone() = 0;
};

// Meter for work on the calling thread: compares its CPU time with wall time. Not valid if the
// thread also sleeps, as in a collective.
class ThreadLoadMeter final : public LoadMeter {
 public:
  void start() override;
  bool was_alone() override;

 private:
  double wall_ = 0, on_core_ = 0;  // seconds, at the start
};

// Meter for a device that no other program uses.
class OwnDeviceMeter final : public LoadMeter {
 public:
  void start() override {}
  bool was_alone() override { return true; }
};

}  // namespace tpsim
