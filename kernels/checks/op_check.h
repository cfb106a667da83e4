// Holds an op on a device against the same op on the slow device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/checks/op_cases.h"
#include "kernels/device.h"

namespace tpsim {

// A tensor's elements on the host.
std::vector<double> downloaded(Device& device, const Tensor& tensor);

// How far one result of an op is off: the larger of ||a - b|| / ||b|| in the Euclidean and in the
// maximum norm.
struct ResultError {
  std::string result;
  double error = 0;
  double tolerance = 0;  // what the result's dtype and the op's sums allow
  bool within_tolerance() const { return error <= tolerance; }
};

// A change to the op that make_op() made, before it runs; applied to both devices' ops alike.
using OpChange = std::function<void(Op&)>;

// Makes the op with this key on `device` and on a SlowDevice, runs both, compares all results.
std::vector<ResultError> errors_against_slow(Device& device, const OpKey& key, std::uint64_t seed,
                                             const OpChange& change = nullptr);

}  // namespace tpsim
