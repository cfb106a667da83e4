// Host and device as two queues, composed exactly.
//
// The host issues work and runs ahead; the device starts an op when the host has issued it and the
// op before it is done. If the host is at time h and the device at d when a piece of work begins,
// they are afterwards at
//     h' = h + host
//     d' = max(d + device, h + path)
// where `path` is the longest way from the first issue to the last result. Where the host waits for
// the device inside of the piece, h' = max(h + host, d + wait). The pair is a matrix
// of the (max, +) algebra, so pieces compose associatively and a chain of n equal blocks is a
// power.
#pragma once

#include <algorithm>
#include <limits>

#include "core/base/units.h"

namespace tpsim {

struct HostDeviceTime {
  Seconds host;    // busy time of the host
  Seconds device;  // busy time of the device
  Seconds path;    // at least as long as each of them where there is work on both

  Seconds wait{-std::numeric_limits<double>::infinity()};  // so much: the host waits for nothing

  // Both queues start together and the host waits for the result at the end.
  Seconds alone() const { return path > host ? path : host; }
};

// `first`, then `second`.
inline HostDeviceTime then(const HostDeviceTime& first, const HostDeviceTime& second) {
  return {std::max(first.host + second.host, first.path + second.wait),
          std::max(first.device + second.device, first.wait + second.path),
          std::max(first.path + second.device, first.host + second.path),
          std::max(first.wait + second.host, first.device + second.wait)};
}
// n times in a row.
HostDeviceTime repeat(const HostDeviceTime& once, std::int64_t n);
// What each one more of many in a row adds.
inline Seconds period(const HostDeviceTime& once) {
  return std::max({once.host, once.device, 0.5 * (once.path + once.wait)});
}

// One op: `issue` seconds of host time, then `run` seconds on the device.
inline HostDeviceTime op_cost(Seconds issue, Seconds run) { return {issue, run, issue + run}; }
// The same, and the host waits for the result.
inline HostDeviceTime blocking_op_cost(Seconds issue, Seconds run) {
  return {issue + run, run, issue + run};
}
// The host waits until the device has done all that was issued, and hears of it `latency` later.
inline HostDeviceTime synchronization(Seconds latency) {
  return {latency, Seconds(), Seconds(), latency};
}

}  // namespace tpsim
