#include "kernels/cpu/narrow_floats.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace tpsim {
namespace {

struct Format {
  int mantissa_bits, least_exponent;
  float greatest;
};
constexpr Format kE4M3{3, -6, 448.0F};
constexpr Format kE5M2{2, -14, 57344.0F};

float rounded(float value, const Format& format) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  // For subnormal numbers (below the smallest exponent), the step is constant.
  const int step = std::max(exponent - 1, format.least_exponent) - format.mantissa_bits;
  const float nearest = std::ldexp(std::nearbyint(std::ldexp(value, -step)), step);
  return std::clamp(nearest, -format.greatest, format.greatest);
}

// A submatrix with one scale.
struct Tile {
  float* data = nullptr;
  std::int64_t rows = 0, cols = 0, stride = 0;

  template <class Do>
  void each(Do on) const {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t col = 0; col < cols; ++col) on(data[row * stride + col]);
    }
  }
};

float greatest_of(const Tile& tile) {
  float greatest = 0;
  tile.each([&](float value) {
    const float magnitude = std::abs(value);
    if (magnitude > greatest || std::isnan(magnitude)) greatest = magnitude;
  });
  return greatest;
}

// Multiplies by the inverse of the scale, as a GPU does.
void round_by(const Tile& tile, const Format& format, float unit) {
  const float inverse = 1.0F / unit;
  tile.each([&](float& value) { value = unit * rounded(value * inverse, format); });
}

// Returns the smallest power of two that is not below a number.
float power_of_two_above(float number) {
  int exponent = 0;
  const float part = std::frexp(number, &exponent);  // in [0.5, 1)
  return std::ldexp(1.0F, part == 0.5F ? exponent - 1 : exponent);
}

void round_tile(const Tile& tile, const Format& format, bool by_powers_of_two) {
  const float greatest = greatest_of(tile);
  if (greatest == 0 || !std::isfinite(greatest)) return;
  const float unit = std::max(greatest / format.greatest, kLeastUnit);
  round_by(tile, format, by_powers_of_two ? power_of_two_above(unit) : unit);
}

void round_tensor(const Tile& tile, const Format& format, const TensorScaling& scaling) {
  if (scaling.greatest != nullptr) {
    const float greatest = greatest_of(tile);
    if (!(greatest <= *scaling.greatest)) *scaling.greatest = greatest;
  }
  if (scaling.unit > 0) {
    round_by(tile, format, scaling.unit);
  } else {
    round_tile(tile, format, false);
  }
}

}  // namespace

float rounded_to_e4m3(float value) { return rounded(value, kE4M3); }
float rounded_to_e5m2(float value) { return rounded(value, kE5M2); }

bool is_emulated(Precision recipe) { return recipe != Precision::kNvFp4; }

void round_operand(const RoundedMatrix& matrix, const RoundedAs& as) {
  TPSIM_CHECK(is_emulated(as.recipe), "the CPU does not emulate the recipe");
  const auto [data, rows, cols, sums_over_rows] = matrix;
  if (as.recipe == Precision::kFp8 || as.recipe == Precision::kFp8Current) {
    return round_tensor({data, rows, cols, cols}, as.is_gradient ? kE5M2 : kE4M3, as.scaling);
  }
  const std::int64_t block = as.recipe == Precision::kMxFp8 ? 32 : 128;
  const bool is_square = as.recipe == Precision::kFp8Block && as.is_weight;
  const std::int64_t high = is_square || sums_over_rows ? block : 1;
  const std::int64_t wide = is_square || !sums_over_rows ? block : 1;
  for (std::int64_t row = 0; row < rows; row += high) {
    for (std::int64_t col = 0; col < cols; col += wide) {
      round_tile(
          {data + row * cols + col, std::min(high, rows - row), std::min(wide, cols - col), cols},
          kE4M3, true);
    }
  }
}

}  // namespace tpsim
