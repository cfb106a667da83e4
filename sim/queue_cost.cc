#include "sim/queue_cost.h"

#include <algorithm>

namespace tpsim {

QueueCost then(const QueueCost& first, const QueueCost& second) {
  return {first.host + second.host, first.device + second.device,
          std::max(first.through + second.device, first.host + second.through)};
}

QueueCost repeat(const QueueCost& once, std::int64_t n) {
  QueueCost result;
  QueueCost power = once;
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) result = then(result, power);
    power = then(power, power);
  }
  return result;
}

}  // namespace tpsim
