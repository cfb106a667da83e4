#include "core/base/half_floats.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/check.h"

namespace tpsim {
namespace {

constexpr double kLeastNormalFloat16 = 0x1.0p-14;
constexpr double kFirstInfiniteFloat16 =
    65520;  // halfway between the largest number, 65504, and the next step

template <class Stored, class Encode>
void encode_each(std::span<const double> from, std::byte* to, Encode encode_one) {
  for (const double x : from) {
    const Stored bits = encode_one(x);
    std::memcpy(to, &bits, sizeof(bits));
    to += sizeof(bits);
  }
}

template <class Stored, class Decode>
void decode_each(const std::byte* from, std::span<double> to, Decode decode_one) {
  for (double& x : to) {
    Stored bits;
    std::memcpy(&bits, from, sizeof(bits));
    x = static_cast<double>(decode_one(bits));
    from += sizeof(bits);
  }
}

[[noreturn]] void refuse_8_bits() { TPSIM_CHECK(false, "8-bit floats are modelled, never stored"); }

}  // namespace

std::uint16_t to_bfloat16(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  // A NaN is truncated, since rounding could turn it into infinity. The quiet bit keeps it a NaN.
  if (std::isnan(x)) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  // Round to nearest even: add just below half a unit, plus one if the last kept bit is odd.
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

float from_bfloat16(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float x = 0;
  std::memcpy(&x, &wide, sizeof(x));
  return x;
}

std::uint16_t to_float16(float x) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000U : 0U);
  const double size = std::fabs(static_cast<double>(x));
  if (std::isnan(x)) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (size >= kFirstInfiniteFloat16) return static_cast<std::uint16_t>(sign | 0x7c00U);
  // The unit in the last place is 2^-24 for subnormal numbers, else 2^(exponent - 10).
  int exponent = -14;
  if (size >= kLeastNormalFloat16) exponent = std::ilogb(size);
  const double units = std::nearbyint(std::ldexp(size, 10 - exponent));
  // `units` of a normal number includes the implicit bit, 1024: the exponent's bias is 14, not 15.
  // A carry into the next exponent is correct.
  const int biased = size >= kLeastNormalFloat16 ? (exponent + 14) * 1024 : 0;
  return static_cast<std::uint16_t>(sign | (biased + static_cast<int>(units)));
}

float from_float16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  double size =
      std::ldexp(exponent == 0 ? mantissa : mantissa + 1024, exponent == 0 ? -24 : exponent - 25);
  if (exponent == 31) {
    size = mantissa == 0 ? std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  return static_cast<float>((bits & 0x8000U) != 0 ? -size : size);
}

void encode(std::span<const double> from, DType dtype, std::byte* to) {
  const auto narrow = [](double x) { return static_cast<float>(x); };
  switch (dtype) {
    case DType::kFloat32: return encode_each<float>(from, to, narrow);
    case DType::kBFloat16:
      return encode_each<std::uint16_t>(from, to, [&](double x) { return to_bfloat16(narrow(x)); });
    case DType::kFloat16:
      return encode_each<std::uint16_t>(from, to, [&](double x) { return to_float16(narrow(x)); });
    case DType::kInt32:
      return encode_each<std::int32_t>(
          from, to, [](double x) { return static_cast<std::int32_t>(std::lround(x)); });
    case DType::kUInt8:
      return encode_each<std::uint8_t>(
          from, to, [](double x) { return static_cast<std::uint8_t>(std::lround(x)); });
    default: break;
  }
  refuse_8_bits();
}

void decode(const std::byte* from, DType dtype, std::span<double> to) {
  switch (dtype) {
    case DType::kFloat32: return decode_each<float>(from, to, [](float x) { return x; });
    case DType::kBFloat16: return decode_each<std::uint16_t>(from, to, from_bfloat16);
    case DType::kFloat16: return decode_each<std::uint16_t>(from, to, from_float16);
    case DType::kUInt8:
      return decode_each<std::uint8_t>(from, to, [](std::uint8_t x) { return int{x}; });
    case DType::kInt32:
      return decode_each<std::int32_t>(from, to, [](std::int32_t x) { return x; });
    default: break;
  }
  refuse_8_bits();
}

}  // namespace tpsim
