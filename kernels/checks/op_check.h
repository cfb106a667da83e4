// Compares an op on a device with the same op on the float64 reference device (SlowDevice).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/checks/op_cases.h"
#include "kernels/device.h"

namespace tpsim {

// Returns a tensor's elements as doubles on the host.
std::vector<double> downloaded(Device& device, const Tensor& tensor);

// Error of one result of an op: ||a - b|| / ||b||, the larger of the Euclidean and the maximum
// norm.
struct ResultError {
  std::string result;
  double error = 0;
  double tolerance = 0;  // depends on the result's dtype and the number of summed terms
  bool within_tolerance() const { return error <= tolerance; }
};

// A change of the op that make_op() returned, applied on both devices before the op runs.
using OpChange = std::function<void(Op&)>;

// Runs the op with this key on `device` and on a SlowDevice and compares all results.
std::vector<ResultError> errors_against_slow(Device& device, const OpKey& key, std::uint64_t seed,
                                             const OpChange& change = nullptr);

}  // namespace tpsim
