#include "core/float_bits.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tpsim {

float float_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

float float_from_fp16(std::uint16_t bits) {
  const float sign = (bits & 0x8000U) != 0 ? -1.0F : 1.0F;
  const int exponent = (bits >> 10) & 0x1f;
  const auto mantissa = static_cast<float>(bits & 0x3ffU);
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  return sign * std::ldexp(1024.0F + mantissa, exponent - 25);
}

std::uint16_t fp16_from_float(float value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000U : 0U);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (magnitude >= 65520.0F) return static_cast<std::uint16_t>(sign | 0x7c00U);
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude < 2^exponent
  // The unit in the last place: 2^(exponent - 11), no finer than a subnormal's 2^-24.
  const int unit = std::max(exponent - 11, -24);
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, -unit)));
  // Units beyond 2^10 carry into the exponent by themselves.
  const std::uint32_t bits = unit == -24 ? units
                                         : (static_cast<std::uint32_t>(unit + 24) << 10) + units;
  return static_cast<std::uint16_t>(sign | bits);
}

}  // namespace tpsim
