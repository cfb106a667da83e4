// Units as types: derived units, code that does not compile, and text that is read and written.
#include "core/base/units.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

namespace tpsim {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <class From, class To>
concept Assignable = requires(From from, To to) {
  to = from;
};

static_assert(Addable<Bytes, Bytes>);
static_assert(!Addable<Bytes, Seconds>, "seconds are no bytes");
static_assert(!Addable<Bytes, double>, "a bare number has no unit");
static_assert(!Comparable<BytesPerSecond, FlopsPerSecond>);
static_assert(!Assignable<double, Seconds>, "a unit must be named");
static_assert(!Assignable<Seconds, double>, "value() says that the unit is dropped");
static_assert(std::same_as<decltype(Bytes() / Seconds()), BytesPerSecond>);
static_assert(std::same_as<decltype(BytesPerSecond() * Seconds()), Bytes>);
static_assert(std::same_as<decltype(Flops() / FlopsPerSecond()), Seconds>);
static_assert(std::same_as<decltype(Bytes() / Bytes()), double>);

TEST_CASE("prefixes of bytes and bits are kept apart") {
  CHECK(parse_bytes("1 GB")->value() == 1e9);
  CHECK(parse_bytes("1 GiB")->value() == 1073741824.0);
  CHECK(parse_bandwidth("8 Gb/s")->value() == 1e9);
  CHECK(parse_bandwidth("8 GB/s")->value() == 8e9);
  CHECK(parse_seconds("3 us")->value() == Approx(3e-6).epsilon(1e-15));
  CHECK(parse_flops_rate("312 TFLOP/s")->value() == 312e12);
}

TEST_CASE("a number alone, an unknown unit or a negative amount is not a quantity") {
  CHECK_THAT(parse_bytes("80").error().message, Catch::Contains("the unit is missing"));
  CHECK_THAT(parse_bytes("80 Gb").error().hint, Catch::Contains("GiB"));
  CHECK_FALSE(parse_seconds("3 minutes").ok());
  CHECK_FALSE(parse_bytes("-1 GiB").ok());
  CHECK_FALSE(parse_bytes("nan GiB").ok());
  CHECK_FALSE(parse_bytes("inf B").ok());
  CHECK_THAT(parse_bandwidth("5e-324 Gb/s").error().message, Catch::Contains("too small"));
  CHECK_THAT(parse_seconds("1e30 s").error().message, Catch::Contains("too large"));
  CHECK(parse_seconds("0 us")->value() == 0);
  CHECK_FALSE(parse_bytes("GiB").ok());
  CHECK_FALSE(parse_bytes("").ok());
}

TEST_CASE("exact text reads back to the same value") {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> exponent(-12, 20);
  for (int i = 0; i < 5000; ++i) {
    const double value = std::pow(10, exponent(random));
    CHECK(parse_bytes(to_exact_string(Bytes(value)))->value() == value);
    CHECK(parse_seconds(to_exact_string(Seconds(value)))->value() == value);
    CHECK(parse_bandwidth(to_exact_string(BytesPerSecond(value)))->value() == value);
    CHECK(parse_flops_rate(to_exact_string(FlopsPerSecond(value)))->value() == value);
  }
}

TEST_CASE("exact text is short if a short number is exact") {
  CHECK(to_exact_string(Bytes(80 * kGiB)) == "80 GiB");
  CHECK(to_exact_string(Bytes(0)) == "0 B");
  CHECK(to_exact_string(BytesPerSecond(300e9)) == "300 GB/s");
  CHECK(to_exact_string(FlopsPerSecond(312e12)) == "312 TFLOP/s");
}

}  // namespace
}  // namespace tpsim
