#include "sim/step/order.h"

#include <cmath>

#include "core/base/normal.h"

namespace tpsim {

double probability_faster(Seconds a, Seconds b) {
  return normal_cdf(std::log(b / a) / kPairSpread);
}

bool is_tie(Seconds best, Seconds other) {
  constexpr double kSure = 0.9;
  return probability_faster(best, other) < kSure;
}

}  // namespace tpsim
