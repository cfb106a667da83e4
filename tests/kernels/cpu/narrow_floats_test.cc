// Rounding to 8 bits: values of the formats, their scales, and rounding errors.
#include "kernels/cpu/narrow_floats.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

namespace tpsim {
namespace {

std::vector<float> normal_numbers(std::size_t count) {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(engine);
  return numbers;
}

TEST_CASE("numbers of E4M3 and E5M2 are unchanged, others are rounded to nearest even") {
  for (const float exact : {0.0F, 448.0F, -448.0F, 1.875F, 0.015625F, 0.001953125F, -240.0F}) {
    CHECK(rounded_to_e4m3(exact) == exact);
  }
  for (const float exact : {57344.0F, -1.75F, 0.0000152587890625F}) {
    CHECK(rounded_to_e5m2(exact) == exact);
  }
  CHECK(rounded_to_e4m3(1.0625F) == 1.0F);   // between 1 and 1.125
  CHECK(rounded_to_e4m3(1.1875F) == 1.25F);  // between 1.125 and 1.25
  CHECK(rounded_to_e4m3(1e6F) == 448.0F);
  CHECK(rounded_to_e5m2(-1e9F) == -57344.0F);
  CHECK(rounded_to_e4m3(0.0009F) == 0.0F);  // below half of the smallest value
  CHECK(rounded_to_e4m3(0.0011F) == 0.001953125F);
}

TEST_CASE("a rounded operand has at most half a step of its format as error") {
  struct Case {
    Precision recipe;
    bool gradient;
    float half_step;
  };
  for (const Case& one :
       {Case{Precision::kFp8Current, false, 1.0F / 16},
        Case{Precision::kFp8Current, true, 1.0F / 8}, Case{Precision::kFp8Block, false, 1.0F / 16},
        Case{Precision::kMxFp8, true, 1.0F / 16}}) {
    const std::vector<float> exact = normal_numbers(96 * 160);
    std::vector<float> rounded = exact;
    round_operand({rounded.data(), 96, 160, false}, {one.recipe, one.gradient, false});
    CHECK(rounded != exact);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      // Small values that share a scale with large ones have the step of subnormal numbers.
      const float least = 5.0F / 448 / 64;
      CHECK(std::abs(rounded[i] - exact[i]) <= std::max(std::abs(exact[i]), least) * one.half_step);
    }
    std::vector<float> again = rounded;
    round_operand({again.data(), 96, 160, false}, {one.recipe, one.gradient, false});
    if (one.recipe != Precision::kFp8Current) CHECK(again == rounded);
  }
}

TEST_CASE("an outlier changes only numbers that share its scale") {
  const auto lost = [](Precision recipe, bool over_rows, bool weight) {
    std::vector<float> numbers(256 * 256, 1e-4F);
    numbers[0] = 448;
    round_operand({numbers.data(), 256, 256, over_rows}, {recipe, false, weight});
    return std::count(numbers.begin(), numbers.end(), 0.0F);
  };
  CHECK(lost(Precision::kFp8Current, false, false) == 256 * 256 - 1);
  CHECK(lost(Precision::kFp8Block, false, false) == 127);
  CHECK(lost(Precision::kFp8Block, true, false) == 127);
  CHECK(lost(Precision::kFp8Block, false, true) == 128 * 128 - 1);
  CHECK(lost(Precision::kMxFp8, false, true) == 31);
}

TEST_CASE("a scale of earlier steps saturates larger numbers, and amax is recorded") {
  std::vector<float> numbers = {1.0F, -3.0F, 0.25F, 100.0F};
  float greatest = 2;
  round_operand({numbers.data(), 2, 2, false},
                {Precision::kFp8, false, false, {8.0F / 448, &greatest}});
  CHECK(greatest == 100);
  CHECK(numbers[3] == 8);  // saturated
  CHECK(numbers[1] == Approx(-3).epsilon(1.0 / 16));
  numbers = {1.0F, -3.0F, 0.25F, 50.0F};
  round_operand({numbers.data(), 2, 2, false}, {Precision::kFp8, true, false, {0, &greatest}});
  CHECK(greatest == 100);
  CHECK(numbers[3] == 50);  // its own amax maps to the format's maximum
}

TEST_CASE("tiny numbers rounded to 8 bits stay tiny and are not NaN") {
  for (const Precision recipe :
       {Precision::kFp8, Precision::kFp8Current, Precision::kFp8Block, Precision::kMxFp8}) {
    for (const bool gradient : {false, true}) {
      for (const float greatest : {1e-35F, 1e-38F, 1e-43F}) {
        INFO(name_of(recipe) << " " << greatest);
        std::vector<float> numbers = {0.0F, greatest, -greatest / 2, 0.0F};
        round_operand({numbers.data(), 2, 2, false}, {recipe, gradient, false});
        CHECK(numbers[0] == 0);
        CHECK(std::abs(numbers[1] - greatest) <= greatest / 8 + 1e-40F);
        CHECK(std::abs(numbers[2] + greatest / 2) <= greatest / 8 + 1e-40F);
      }
    }
  }
}

}  // namespace
}  // namespace tpsim
