#include "sim/layers/layer_cost.h"

namespace tpsim {

PhaseCost then(const PhaseCost& first, const PhaseCost& second) {
  PhaseCost result = first;
  result.time = then(first.time, second.time);
  result.work += second.work;
  result.by_source += second.by_source;
  result.core.device += second.core.device;
  result.core.host += second.core.host;
  return result;
}

PhaseCost repeat(const PhaseCost& once, std::int64_t n) {
  PhaseCost result;
  result.time = repeat(once.time, n);
  const auto times = static_cast<double>(n);
  result.work = times * once.work;
  result.by_source = times * once.by_source;
  result.core = {times * once.core.device, times * once.core.host};
  return result;
}

}  // namespace tpsim
