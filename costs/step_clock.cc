#include "costs/step_clock.h"

#include <cmath>

namespace tpsim {

double StepClock::solve(Seconds whole, double at) const {
  Seconds others = whole;
  for (const Op& op : ops_) others -= op.factor * op.price.at(at);
  others = std::max(Seconds(), others);
  constexpr int kMostRounds = 20;
  constexpr double kEnough = 1e-9;
  double clock = at;
  for (int round = 0; round < kMostRounds; ++round) {
    Seconds all = others, lowering;
    for (const Op& op : ops_) {
      const Seconds time = op.factor * op.price.at(clock);
      all += time;
      lowering += op.price.drop * time;
    }
    const double next = all > Seconds() ? 1 - lowering / all : 1;
    const double change = std::abs(next - clock);
    clock = next;
    if (change < kEnough) break;
  }
  return clock;
}

}  // namespace tpsim
