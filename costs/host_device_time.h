// Time of work that a host issues to an asynchronous device, as two queues.
//
// The host issues work and runs ahead. The device starts an op when the host has issued it and the
// previous op is complete. If a piece of work starts with the host at time h and the device at d,
// the times afterwards are exactly
//   h' = h + host
//   d' = max(d + device, h + path)
// where `path` is the longest path from the first issue to the last result. If the host waits for
// the device inside the piece, h' = max(h + host, d + wait). The four numbers are a matrix of the
// (max, +) algebra. The composition of pieces is therefore associative: a matrix product. A chain
// of n equal blocks is a matrix power.
#pragma once

#include <algorithm>
#include <limits>

#include "core/base/units.h"

namespace tpsim {

struct HostDeviceTime {
  Seconds host;    // busy time of the host
  Seconds device;  // busy time of the device
  Seconds path;    // at least `host` and `device` if both have work

  Seconds wait{-std::numeric_limits<double>::infinity()};  // -infinity: the host never waits

  // Elapsed time if both queues start together and the host waits for the result.
  Seconds alone() const { return path > host ? path : host; }
};

// Returns the times of `first` followed by `second`.
inline HostDeviceTime then(const HostDeviceTime& first, const HostDeviceTime& second) {
  return {std::max(first.host + second.host, first.path + second.wait),
          std::max(first.device + second.device, first.wait + second.path),
          std::max(first.path + second.device, first.host + second.path),
          std::max(first.wait + second.host, first.device + second.wait)};
}
// Returns the times of n repetitions, one after another.
HostDeviceTime repeat(const HostDeviceTime& once, std::int64_t n);
// Returns the elapsed time that each further repetition adds to a long sequence.
inline Seconds period(const HostDeviceTime& once) {
  return std::max({once.host, once.device, 0.5 * (once.path + once.wait)});
}

// One op: `issue` seconds of host time, then `run` seconds on the device.
inline HostDeviceTime op_cost(Seconds issue, Seconds run) { return {issue, run, issue + run}; }
// An op after which the host waits for the result.
inline HostDeviceTime blocking_op_cost(Seconds issue, Seconds run) {
  return {issue + run, run, issue + run};
}
// The host waits until the device has completed all issued work, plus `latency`.
inline HostDeviceTime synchronization(Seconds latency) {
  return {latency, Seconds(), Seconds(), latency};
}

}  // namespace tpsim
