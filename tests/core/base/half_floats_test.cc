#include "core/base/half_floats.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "kernels/cpu/floats.h"
#include "kernels/normal_stream.h"

namespace tpsim {
namespace {

std::uint16_t to_half(float x, DType dtype) {
  return dtype == DType::kBFloat16 ? to_bfloat16(x) : to_float16(x);
}
float from_half(std::uint16_t bits, DType dtype) {
  return dtype == DType::kBFloat16 ? from_bfloat16(bits) : from_float16(bits);
}

}  // namespace

TEST_CASE("every half number is unchanged by conversion to fp32 and back") {
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    for (int i = 0; i < 65536; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const float x = from_half(bits, dtype);
      if (!std::isnan(x)) CHECK(to_half(x, dtype) == bits);
      if (std::isnan(x)) CHECK(std::isnan(from_half(to_half(x, dtype), dtype)));
    }
  }
}

TEST_CASE("halfway cases round to even, and large numbers to infinity") {
  CHECK(from_bfloat16(to_bfloat16(1.0F + 0x1p-8F)) == 1.0F);
  CHECK(from_bfloat16(to_bfloat16(1.0F + 0x3p-8F)) == 1.0F + 0x1p-6F);
  CHECK(from_float16(to_float16(1.0F + 0x1p-11F)) == 1.0F);
  CHECK(from_float16(to_float16(1.0F + 0x3p-11F)) == 1.0F + 0x1p-9F);
  CHECK(from_float16(to_float16(65519.0F)) == 65504.0F);
  CHECK(std::isinf(from_float16(to_float16(65520.0F))));
  CHECK(from_float16(to_float16(0x1p-25F)) == 0.0F);
  CHECK(from_float16(to_float16(0x3p-25F)) == 0x1p-23F);
}

TEST_CASE("8-bit floats have a size but no conversions") {
  const double number = 1;
  std::byte stored{};
  CHECK_THROWS_AS(encode(std::span(&number, 1), DType::kFloat8, &stored), BugError);
  float loaded = 0;
  CHECK_THROWS_AS(load_floats(&stored, DType::kFloat8, 1, &loaded), BugError);
}

TEST_CASE("the CPU's conversions equal the reference bit for bit") {
  std::vector<float> numbers = {0.0F, -0.0F, INFINITY, -INFINITY, 65519.9F, 65520.0F, 0x1p-24F};
  for (std::uint64_t i = 0; i < 100'001; ++i) {
    const auto bits = static_cast<std::uint32_t>(mix(i));
    numbers.push_back(std::bit_cast<float>(bits));
    // Near the halfway points of bf16 and fp16.
    numbers.push_back(std::bit_cast<float>((bits & 0xffff0000U) | (0x7fffU + (bits & 3U))));
    numbers.push_back(
        std::bit_cast<float>((bits & 0xc7ffe000U) | 0x30000000U | (0xfffU + (bits & 3U))));
  }
  const auto count = static_cast<std::int64_t>(numbers.size());
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    std::vector<std::uint16_t> stored(numbers.size());
    std::vector<float> loaded(numbers.size());
    store_floats(numbers.data(), count, dtype, stored.data());
    load_floats(stored.data(), dtype, count, loaded.data());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (std::isnan(numbers[i])) {
        wrong += std::isnan(loaded[i]) ? 0 : 1;
      } else {
        wrong += stored[i] == to_half(numbers[i], dtype) ? 0 : 1;
        wrong += loaded[i] == from_half(stored[i], dtype) ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  }
}

}  // namespace tpsim
