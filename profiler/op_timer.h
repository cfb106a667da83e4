// How long an op takes by itself, again and again on operands that the caches do not hold.
//
// Right for a device whose ops start from its memory. Where caches carry results from one op to the
// next, times in the middle of a step are shorter: profiler/rehearsal.h.
#pragma once

#include <vector>

#include "core/units.h"
#include "kernels/device.h"
#include "profiler/load_meter.h"
#include "profiler/lockstep.h"

namespace tpsim {

struct OpTimerSettings {
  Bytes rotated = Bytes(64 * kMiB);  // operands that are worked through before the first come again
  Seconds budget = Seconds(0.3);     // for one op, without making its operands
  Seconds least_sample = Seconds(50e-6);  // shorter ops are timed several at a time
  double enough_spread = 0.01;            // of the samples: then no more are taken
  std::size_t least_samples = 9;
};

class OpTimer {
 public:
  OpTimer(Device& device, LoadMeter& meter, Lockstep& lockstep, OpTimerSettings settings)
      : device_(device), meter_(meter), lockstep_(lockstep), settings_(settings) {}

  // Seconds of one run, for every sample that nothing disturbed; empty when all were. Every rank
  // calls this with the same key.
  std::vector<double> times(const OpKey& key);

 private:
  double run_all(const std::vector<Op>& sets, std::size_t first, std::size_t count);

  Device& device_;
  LoadMeter& meter_;
  Lockstep& lockstep_;
  OpTimerSettings settings_;
};

}  // namespace tpsim
