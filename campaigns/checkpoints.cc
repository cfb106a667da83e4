#include "campaigns/checkpoints.h"

#include <algorithm>
#include <cmath>

namespace tpsim {
namespace {

// A last segment below this share of an interval is rounding error.
constexpr double kNoStretch = 1e-9;

struct Stretches {
  std::int64_t full = 0;
  Seconds last;  // zero if the full segments cover the work
};

Stretches stretches_of(const FailureModel& model) {
  const double count = model.work / model.interval;
  Stretches stretches;
  stretches.full = static_cast<std::int64_t>(std::floor(count + kNoStretch));
  const double rest = count - static_cast<double>(stretches.full);
  if (rest > kNoStretch) stretches.last = rest * model.interval;
  return stretches;
}

// Returns the expected time until the next checkpoint can be loaded. `due`: time until then without
// a failure. `anew`: this time after a restart. expm1 stays accurate for segments much shorter than
// the MTBF.
Seconds expected_checkpoint(const FailureModel& model, Seconds due, Seconds anew) {
  const double m = model.mtbf.value();
  return Seconds(-m * std::exp((model.restart + anew).value() / m) * std::expm1(-due.value() / m));
}

}  // namespace

Seconds best_interval(Seconds write, Seconds mtbf) {
  // x + ln(1 - x) falls from 0 to minus infinity over (0, 1). Bisection stops at rounding error.
  constexpr int kHalvings = 60;
  double low = 0;
  double high = 1;
  for (int i = 0; i < kHalvings; ++i) {
    const double x = (low + high) / 2;
    (x + std::log1p(-x) > -(write / mtbf) ? low : high) = x;
  }
  return mtbf * low;
}

Seconds young_interval(Seconds write, Seconds mtbf) {
  return Seconds(std::sqrt(2 * write.value() * mtbf.value()));
}

Seconds daly_interval(Seconds write, Seconds mtbf) {
  const double half = write / (2 * mtbf);
  if (half >= 1) return mtbf;
  return young_interval(write, mtbf) * (1 + std::sqrt(half) / 3 + half / 9) - write;
}

std::int64_t checkpoint_count(const FailureModel& model) {
  const Stretches stretches = stretches_of(model);
  return stretches.full + (stretches.last > Seconds() ? 1 : 0);
}

Seconds expected_wall(const FailureModel& model) {
  const Stretches stretches = stretches_of(model);
  const Seconds full = model.interval + model.write;
  const Seconds last = stretches.last + model.write;
  const Seconds anew = full + model.behind, anew_last = last + model.behind;
  if (stretches.full == 0) return expected_checkpoint(model, anew_last, anew_last);
  Seconds wall = expected_checkpoint(model, anew, anew) +
                 static_cast<double>(stretches.full - 1) * expected_checkpoint(model, full, anew);
  // A last segment that is shorter than the async write of the previous checkpoint waits for this
  // write.
  if (stretches.last > Seconds()) {
    wall += expected_checkpoint(model, std::max(last, model.behind), anew_last);
  }
  return wall;
}

bool can_end(const FailureModel& model) {
  const Seconds stretch =
      std::min(model.interval, model.work) + model.write + model.behind + model.restart;
  return stretch / model.mtbf <= kMostFailuresPerStretch;
}

}  // namespace tpsim
