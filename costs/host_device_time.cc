#include "costs/host_device_time.h"

#include <cmath>

namespace tpsim {

// If the host never waits, the longest path changes from the host to the device in one of the n
// pieces and takes `path` there. Each other piece adds its host time or its device time, whichever
// is longer.
HostDeviceTime repeat(const HostDeviceTime& once, std::int64_t n) {
  if (n == 0) return {};
  if (std::isfinite(once.wait.value())) {
    if (n == 1) return once;
    const HostDeviceTime half = repeat(once, n / 2);
    const HostDeviceTime twice = then(half, half);
    return n % 2 == 0 ? twice : then(twice, once);
  }
  const auto times = static_cast<double>(n);
  return {times * once.host, times * once.device,
          once.path + (times - 1) * std::max(once.host, once.device)};
}

}  // namespace tpsim
