#include "sim/queue_cost.h"

#include <algorithm>

namespace tpsim {

QueueCost then(const QueueCost& first, const QueueCost& second) {
  return {first.host + second.host, first.device + second.device,
          std::max(first.through + second.device, first.host + second.through)};
}

// The longest way through n in a row changes queues once, in any of them.
QueueCost repeat(const QueueCost& once, std::int64_t n) {
  if (n == 0) return {};
  const auto times = static_cast<double>(n);
  return {times * once.host, times * once.device,
          once.through + (times - 1) * std::max(once.host, once.device)};
}

}  // namespace tpsim
