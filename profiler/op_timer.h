// Times single ops repeatedly, on operands that the caches do not hold.
//
// A GPU is delayed until all ops of a sample have been issued, so that device time is measured
// instead of host time. Times of single ops hold for a step if ops read their operands from memory.
// If caches pass results from one op to the next, ops are faster inside a step, and time_in_steps()
// (profiler/profiler.h) times them there.
#pragma once

#include <functional>
#include <vector>

#include "core/base/units.h"
#include "kernels/device.h"
#include "profiler/load_meter.h"
#include "profiler/rank_barrier.h"

namespace tpsim {

struct OpTimerSettings {
  Bytes rotated = Bytes(64 * kMiB);       // total size of the operand sets that rotate
  Seconds budget = Seconds(0.3);          // for the samples of one op
  Seconds making = Seconds(60);           // no further operand sets are created after this
  Seconds least_sample = Seconds(50e-6);  // shorter ops are timed several at a time
  double enough_spread = 0.01;            // sampling ends at or below this spread
  std::size_t least_samples = 9;
  // Warm-up of sustained_times(), longer than the second over which NVML averages power.
  Seconds soak = Seconds(1.5);
  // Called while the device is busy, except in a warm-up. `soaked`: the warm-up is complete. May be
  // empty.
  std::function<void(bool soaked)> at_work;
};

class OpTimer {
 public:
  OpTimer(Device& device, LoadMeter& meter, RankBarrier& barrier, OpTimerSettings settings)
      : device_(device), meter_(meter), barrier_(barrier), settings_(settings) {}

  // Returns the seconds per run of each undisturbed sample; empty if all samples were disturbed.
  // All ranks call this with the same key.
  std::vector<double> times(const OpKey& key);
  // Like times(), but first runs this op for settings.soak, so that the device has the temperature
  // and clocks of training.
  std::vector<double> sustained_times(const OpKey& key);

 private:
  struct WarmSets {
    std::vector<Op> sets;
    Seconds once;  // time of the fastest single run
  };
  WarmSets warm_sets(const OpKey& key);
  std::size_t runs_within(Seconds length, const WarmSets& warm);
  double run_all(const std::vector<Op>& sets, std::size_t first, std::size_t count,
                 bool soaks = false, bool soaked = false);

  Device& device_;
  LoadMeter& meter_;
  RankBarrier& barrier_;
  OpTimerSettings settings_;
};

}  // namespace tpsim
