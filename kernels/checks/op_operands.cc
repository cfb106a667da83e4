#include "kernels/checks/op_operands.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/base/half_floats.h"
#include "kernels/normal_stream.h"

namespace tpsim {
namespace {

// Length of the pool. It is prime, so that the rows of an operand start at different positions of
// the pool and differ, unless the row length is a multiple of it.
constexpr std::size_t kPool = 65537;

const std::array<double, kPool>& normal_pool() {
  static const std::array<double, kPool> pool = [] {
    std::array<double, kPool> numbers{};
    for (std::size_t i = 0; i < kPool; ++i) numbers[i] = normal_at(stream_key(1, 0), i);
    return numbers;
  }();
  return pool;
}

constexpr const char* kOperandLabel = "operand";

}  // namespace

Tensor Operands::empty(Shape shape, DType dtype) {
  return device_.allocate(shape, dtype, MemoryCategory::kWorkspace, kOperandLabel);
}

// Returns a tensor that repeats the pool from a drawn offset on, with `change` applied to each
// number.
template <class Change>
Tensor Operands::filled(Shape shape, DType dtype, Change change) {
  Tensor tensor = empty(shape, dtype);
  const std::size_t from = mix(stream_key(seed_, drawn_++)) % kPool;
  std::vector<double> numbers(std::min(kPool, static_cast<std::size_t>(tensor.elements())));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = change(normal_pool()[(from + i) % kPool]);
  }
  std::vector<std::byte> contents(numbers.size() * static_cast<std::size_t>(size_of(dtype)));
  encode(numbers, dtype, contents.data());
  const auto period = static_cast<std::int64_t>(numbers.size());
  for (std::int64_t to = 0; to < tensor.elements(); to += period) {
    const std::int64_t count = std::min(period, tensor.elements() - to);
    const auto bytes = static_cast<std::size_t>(count * size_of(dtype));
    device_.upload(std::span(contents).first(bytes), tensor.slice(to, count));
  }
  return tensor;
}

Tensor Operands::normal(Shape shape, DType dtype, double deviation, double mean) {
  return filled(shape, dtype, [=](double x) { return mean + deviation * x; });
}

Tensor Operands::positive(Shape shape, DType dtype) {
  return filled(shape, dtype, [](double x) { return x * x; });
}

Tensor Operands::integers(Shape shape, std::int64_t below) {
  return filled(shape, DType::kInt32, [=](double x) {
    const double uniform = 0.5 * std::erfc(-x / std::sqrt(2.0));
    return std::min(std::floor(uniform * static_cast<double>(below)),
                    static_cast<double>(below - 1));
  });
}

Tensor Operands::slopes(std::int64_t heads) {
  std::vector<float> values;
  for (std::int64_t h = 0; h < heads; ++h) {
    values.push_back(static_cast<float>(
        std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads))));
  }
  Tensor tensor = empty({heads}, DType::kFloat32);
  device_.upload(std::as_bytes(std::span(values)), tensor);
  return tensor;
}

}  // namespace tpsim
