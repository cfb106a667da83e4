#include "kernels/checks/op_check.h"

#include <algorithm>
#include <cmath>

#include "core/base/half_floats.h"
#include "kernels/slow/slow_device.h"

namespace tpsim {

std::vector<double> downloaded(Device& device, const Tensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes()));
  device.download(tensor, bytes);
  std::vector<double> values(static_cast<std::size_t>(tensor.elements()));
  decode(bytes.data(), tensor.dtype(), values);
  return values;
}

namespace {

// Returns the tolerance for one element: half a unit in the last place, with a margin for several
// roundings.
double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return 1.5e-6;
    case DType::kBFloat16: return 8e-3;
    case DType::kFloat16: return 1e-3;
    case DType::kInt32:
    case DType::kUInt8: return 0;
    default: break;
  }
  TPSIM_CHECK(false, "no device computes in " + std::string(name_of(dtype)));
}

// Returns the factor by which rounding errors grow with the number of summed terms, as in a random
// walk. Backward of flash attention sums over the queries of a group of heads.
double growth_of(const OpKey& key) {
  double terms = 0;
  if (key.kind == OpKind::kMatmul) terms = static_cast<double>(key.dims[3]);
  if (key.kind == OpKind::kFlashBackward) {
    terms = static_cast<double>(key.dims[1] * key.dims[2] / key.dims[3]);
  }
  return std::max(1.0, std::sqrt(terms) / 32);
}

// Returns the additional error of probabilities with ALiBi; 0 for other ops. An fp32 score of
// magnitude a has an error of a x 2^-24, and ALiBi scores are as large as the number of keys.
double score_rounding(const OpKey& key) {
  const bool softmax = is_softmax(key.kind);
  if ((!softmax && !is_flash(key.kind)) || key.variant != 1) return 0;
  const std::int64_t keys = softmax ? key.dims[2] : std::max(key.dims[1], key.dims[5]);
  return std::ldexp(static_cast<double>(keys), -24);
}

// Returns the typical magnitude of column sums for operands of magnitude 1; 0 for other ops. Sums
// of signed terms may be near zero, so their error is relative to this magnitude.
double size_of_sums(const OpKey& key) {
  return key.kind == OpKind::kColumnSum ? std::sqrt(static_cast<double>(key.dims[0])) : 0;
}

// Returns the error relative to the expected results, or to `least` if these are smaller.
double error_of(const std::vector<double>& actual, const std::vector<double>& expected,
                double least) {
  double difference2 = 0, difference_max = 0;
  double expected2 = least * least * static_cast<double>(expected.size()), expected_max = least;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i]) continue;  // also for equal infinities
    const double d = actual[i] - expected[i];
    if (!std::isfinite(d)) return INFINITY;
    difference2 += d * d;
    difference_max = std::max(difference_max, std::fabs(d));
  }
  if (difference_max == 0) return 0;
  double sum2 = 0;
  for (const double x : expected) {
    if (!std::isfinite(x)) continue;
    sum2 += x * x;
    expected_max = std::max(expected_max, std::fabs(x));
  }
  expected2 = std::max(expected2, sum2);
  return std::max(std::sqrt(difference2 / expected2), difference_max / expected_max);
}

}  // namespace

std::vector<ResultError> errors_against_slow(Device& device, const OpKey& key, std::uint64_t seed,
                                             const OpChange& change) {
  SlowDevice slow;
  Op actual = make_op(device, key, seed);
  Op expected = make_op(slow, key, seed);
  if (change) {
    change(actual);
    change(expected);
  }
  device.run(actual);
  slow.run(expected);

  const std::vector<OpResult> actual_results = results_of(actual);
  const std::vector<OpResult> expected_results = results_of(expected);
  std::vector<ResultError> errors;
  for (std::size_t i = 0; i < actual_results.size(); ++i) {
    const Tensor& tensor = actual_results[i].tensor;
    errors.push_back({actual_results[i].name,
                      error_of(downloaded(device, tensor),
                               downloaded(slow, expected_results[i].tensor), size_of_sums(key)),
                      rounding_of(tensor.dtype()) * growth_of(key) + score_rounding(key)});
  }
  return errors;
}

}  // namespace tpsim
