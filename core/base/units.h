// Physical quantities as types: bytes, seconds and floating-point operations.
//
// A Quantity holds one double in base units (byte, second, FLOP); the exponents are part of the
// type. A bandwidth times a time is bytes; adding seconds to bytes does not compile. Used by the
// planner and the simulator. Kernels and tensors count in plain integers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tpsim {

template <int kByteExp, int kSecondExp, int kFlopExp>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double base_units) : value_(base_units) {}

  // The number in base units: bytes, seconds, FLOPs, or their quotient.
  constexpr double value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) { return value_ += other.value_, *this; }
  constexpr Quantity& operator-=(Quantity other) { return value_ -= other.value_, *this; }
  constexpr Quantity& operator*=(double factor) { return value_ *= factor, *this; }

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, double factor) { return a *= factor; }
  friend constexpr Quantity operator*(double factor, Quantity a) { return a *= factor; }
  friend constexpr Quantity operator/(Quantity a, double d) { return Quantity(a.value_ / d); }
  friend constexpr auto operator<=>(Quantity a, Quantity b) = default;

 private:
  double value_ = 0;
};

// Products and quotients derive the unit; a quotient of like quantities is a plain number.
template <int B1, int S1, int F1, int B2, int S2, int F2>
constexpr auto operator*(Quantity<B1, S1, F1> a, Quantity<B2, S2, F2> b) {
  const double product = a.value() * b.value();
  if constexpr (B1 + B2 == 0 && S1 + S2 == 0 && F1 + F2 == 0) {
    return product;
  } else {
    return Quantity<B1 + B2, S1 + S2, F1 + F2>(product);
  }
}
template <int B1, int S1, int F1, int B2, int S2, int F2>
constexpr auto operator/(Quantity<B1, S1, F1> a, Quantity<B2, S2, F2> b) {
  const double quotient = a.value() / b.value();
  if constexpr (B1 == B2 && S1 == S2 && F1 == F2) {
    return quotient;
  } else {
    return Quantity<B1 - B2, S1 - S2, F1 - F2>(quotient);
  }
}

using Bytes = Quantity<1, 0, 0>;
using Seconds = Quantity<0, 1, 0>;
using Flops = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<1, -1, 0>;
using FlopsPerSecond = Quantity<0, -1, 1>;

inline constexpr double kKiB = 1024.0;
inline constexpr double kMiB = 1024.0 * kKiB;
inline constexpr double kGiB = 1024.0 * kMiB;
inline constexpr double kGB = 1e9;
constexpr double gib(Bytes bytes) { return bytes.value() / kGiB; }

// Event time in integer picoseconds: order and equality are exact. Holds up to 106 days; functions
// that convert prices to event times check this limit.
using Picoseconds = std::int64_t;
Picoseconds to_picoseconds(Seconds t);
Seconds to_seconds(Picoseconds t);

// Text of a quantity with a scaled unit and three significant digits: "59.2 GiB", "104 s",
// "12.5 us", "300 GB/s", "150 TFLOP/s".
std::string to_string(Bytes);
std::string to_string(Seconds);
std::string to_string(BytesPerSecond);
std::string to_string(FlopsPerSecond);

// The shortest text that parse_* reads back to exactly the same value, for files. The quantity must
// be finite and not negative.
std::string to_exact_string(Bytes);
std::string to_exact_string(Seconds);
std::string to_exact_string(BytesPerSecond);
std::string to_exact_string(FlopsPerSecond);

// Parses "80 GiB", "3.2 us", "100 Gb/s" (bits), "300 GB/s", "312 TFLOP/s". Errors: no unit, an
// unknown unit, a negative or non-finite number, and a value above 1e24 base units or between 0 and
// 1e-24. Errors list the valid units.
Result<Bytes> parse_bytes(std::string_view text);
Result<Seconds> parse_seconds(std::string_view text);
Result<BytesPerSecond> parse_bandwidth(std::string_view text);
Result<FlopsPerSecond> parse_flops_rate(std::string_view text);

}  // namespace tpsim
