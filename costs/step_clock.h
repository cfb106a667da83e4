// The GPU's clock during a step.
//
// GEMMs draw so much power that the GPU lowers its clock to stay below its power limit. An op by
// itself runs at the clock that it sustains; within a step all ops run at one clock, which follows
// from the shares of GEMMs and attention in the time:
//   clock = 1 - (1 - c) (share of GEMMs + kAttentionPower x share of attention)
// relative to the clock of short work, where c is the clock that GEMMs alone sustain. So the GEMMs
// of a step are faster than alone and its attention is slower. Waiting and memory-bound kernels
// draw little power and do not depend on the clock. docs/decisions/op-prices.md compares the law
// with measured steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/enum_words.h"
#include "core/base/units.h"

namespace tpsim {

enum class PriceSource : std::uint8_t { kExact, kInterpolated, kModel };
template <>
inline constexpr auto kEnumNames<PriceSource> = words<3>("exact interpolated model");

// Power of attention kernels above that of waiting, relative to a GEMM's. The one constant of the
// law, fitted on six steps on an H200.
inline constexpr double kAttentionPower = 0.5;

// Device time of an op as a function of the clock.
struct OpPrice {
  Seconds time;  // at `clock`
  PriceSource source = PriceSource::kModel;
  double clock = 0;    // 0: the time does not depend on the clock
  Seconds least = {};  // at any clock
  double drop = 0;     // by how much the op by itself lowers the clock

  Seconds at(double of_step) const { return std::max(least, clock / of_step * time); }
};

// Finds the clock of a step from its ops.
class StepClock {
 public:
  // Counts kernels that take `factor` times the price.
  void add(const OpPrice& price, double factor) {
    if (price.clock > 0) ops_.push_back({price, factor});
  }
  // Returns the clock. `whole`: time of the step, waits included, with all ops at clock `at`.
  double solve(Seconds whole, double at) const;

 private:
  struct Op {
    OpPrice price;
    double factor = 1;
  };
  std::vector<Op> ops_;
};

}  // namespace tpsim
