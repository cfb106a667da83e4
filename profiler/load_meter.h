// Checks whether work had its processor to itself. Samples that other programs disturbed are
// discarded, not averaged.
#pragma once

namespace tpsim {

class LoadMeter {
 public:
  virtual ~LoadMeter() = default;
  // The calling thread starts a piece of work.
  virtual void start() = 0;
  // Whether the thread had a core to itself since start().
  virtual bool was_alone() = 0;
};

// For work on the calling thread: compares CPU time with wall time. Not valid for a thread that
// also sleeps (in a collective).
class ThreadLoadMeter final : public LoadMeter {
 public:
  void start() override;
  bool was_alone() override;

 private:
  double wall_ = 0, on_core_ = 0;  // seconds, at the start
};

// For a device without other users.
class OwnDeviceMeter final : public LoadMeter {
 public:
  void start() override {}
  bool was_alone() override { return true; }
};

}  // namespace tpsim
