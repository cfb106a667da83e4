#include "sim/host_device_time.h"

#include <algorithm>

namespace tpsim {

HostDeviceTime then(const HostDeviceTime& first, const HostDeviceTime& second) {
  return {first.host + second.host, first.device + second.device,
          std::max(first.path + second.device, first.host + second.path)};
}

// The longest way through n in a row changes queues once, in any of them.
HostDeviceTime repeat(const HostDeviceTime& once, std::int64_t n) {
  if (n == 0) return {};
  const auto times = static_cast<double>(n);
  return {times * once.host, times * once.device,
          once.path + (times - 1) * std::max(once.host, once.device)};
}

}  // namespace tpsim
