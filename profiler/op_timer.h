// How long an op takes by itself, again and again on operands that the caches do not hold.
//
// An asynchronous device is delayed until the ops of a sample have been issued, so that its time is
// measured and not the host's. Right for a device whose ops start from its memory. Where caches
// carry results from one op to the next, times in the middle of a step are shorter:
// profiler/profiler.h.
#pragma once

#include <functional>
#include <vector>

#include "core/base/units.h"
#include "kernels/device.h"
#include "profiler/load_meter.h"
#include "profiler/rank_barrier.h"

namespace tpsim {

struct OpTimerSettings {
  Bytes rotated = Bytes(64 * kMiB);  // operands that are worked through before the first come again
  Seconds budget = Seconds(0.3);     // for one op, without making its operands
  Seconds making = Seconds(60);      // for its operands: fewer are worked through after so long
  Seconds least_sample = Seconds(50e-6);  // shorter ops are timed several at a time
  double enough_spread = 0.01;            // of the samples: then no more are taken
  std::size_t least_samples = 9;
  // How long sustained_times() works before it takes samples; longer than the second over which
  // NVML's power is a mean.
  Seconds soak = Seconds(1.5);
  // Called while the device has work to do; `soaked`: after that long. May be empty.
  std::function<void(bool soaked)> at_work;
};

class OpTimer {
 public:
  OpTimer(Device& device, LoadMeter& meter, RankBarrier& barrier, OpTimerSettings settings)
      : device_(device), meter_(meter), barrier_(barrier), settings_(settings) {}

  // Seconds of one run, for every sample that nothing disturbed; empty when all were. Every rank
  // calls this with the same key.
  std::vector<double> times(const OpKey& key);
  // The same once the device has done nothing else for settings.soak and is as hot, and as slow, as
  // in training.
  std::vector<double> sustained_times(const OpKey& key);

 private:
  struct WarmSets {
    std::vector<Op> sets;
    Seconds once;  // the fastest single run
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
