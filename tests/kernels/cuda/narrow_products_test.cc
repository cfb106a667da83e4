// 8-bit GEMMs on a GPU compared with the CPU device, which rounds equally and sums in fp32, so that
// only summation differs. A scale that is read from a wrong place is off by a factor.
#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/cpu/cpu_device.h"
#include "kernels/cuda/runtime/cuda_device.h"

namespace tpsim {
namespace {

constexpr auto kRecipes = std::to_array<Precision>(
    {Precision::kFp8, Precision::kFp8Current, Precision::kFp8Block, Precision::kMxFp8});

std::unique_ptr<CudaDevice> gpu() { return std::move(CudaDevice::create()).value(); }

bool has(const Device& device, Precision recipe) {
  const std::string reason = device.refusal_reason(recipe);
  if (!reason.empty()) WARN(reason);
  return reason.empty();
}

struct Shape2 {
  std::int64_t m, n, k;
};
struct Case {
  Shape2 sides;
  bool transpose_a = false, transpose_b = false, is_gradient = false;
  float beta = 0;
  DType dtype = DType::kFloat32;
  std::int64_t first_column = 0;  // of matrices inside wider ones
  bool finds_scales = false;
};

// Magnitudes differ between 16 x 16 blocks.
std::vector<float> numbers(std::int64_t rows, std::int64_t cols, std::uint32_t seed) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      seed = seed * 1664525U + 1013904223U;
      const float uniform = static_cast<float>(seed >> 8U) / static_cast<float>(1U << 24U) - 0.5F;
      all.push_back(std::ldexp(uniform, static_cast<int>((i / 16 * 5 + j / 16 * 7) % 11) - 5));
    }
  }
  return all;
}

// Keeps the bits of a float that bf16 has, so that all dtypes start with equal values.
float in_16_bits(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffff0000U);
}

Tensor uploaded(Device& device, std::vector<float> values, const Shape& shape, DType dtype) {
  for (float& x : values) x = in_16_bits(x);
  Tensor tensor = device.allocate(shape, dtype, MemoryCategory::kActivations, "x");
  if (dtype == DType::kFloat32) {
    device.upload(std::as_bytes(std::span(values)), tensor);
  } else {
    std::vector<std::uint16_t> bits;
    for (const float x : values) {
      bits.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16U));
    }
    device.upload(std::as_bytes(std::span(bits)), tensor);
  }
  return tensor;
}

// Returns the last columns of a tensor.
Matrix columns_of(const Tensor& tensor, std::int64_t first, bool transposed) {
  Matrix columns = matrix_of(tensor, transposed);
  columns.cols -= first;
  columns.offset = first;
  return columns;
}

struct Result {
  std::vector<float> c;
  std::vector<float> scales;  // with kFp8: scale and amax of both operands
};

Result product_on(Device& device, const Case& one, Precision recipe) {
  const auto [m, n, k] = one.sides;
  const std::int64_t skip = one.first_column;
  const auto operand = [&](std::int64_t rows, std::int64_t cols, std::uint32_t seed) {
    return uploaded(device, numbers(rows, cols + skip, seed), {rows, cols + skip}, one.dtype);
  };
  const Tensor a = operand(one.transpose_a ? k : m, one.transpose_a ? m : k, 1);
  const Tensor b = operand(one.transpose_b ? n : k, one.transpose_b ? k : n, 2);
  const Tensor c = uploaded(device, numbers(m, n + skip, 3), {m, n + skip}, DType::kFloat32);
  // Amax values are at most 16; those of earlier steps are smaller.
  Tensor scales = uploaded(device, {8.0F / 448, 0, 0, 0, 8.0F / 448, 0, 0, 0}, {2, kScaleStride},
                           DType::kFloat32);
  const bool is_weight = !one.transpose_a;
  device.run(Matmul{.a = columns_of(a, skip, one.transpose_a),
                    .b = columns_of(b, skip, one.transpose_b),
                    .c = columns_of(c, skip, false),
                    .beta = one.beta,
                    .rounding = {recipe, one.is_gradient, is_weight, scales.slice(0, 2),
                                 scales.slice(kScaleStride, 2), one.finds_scales},
                    .label = {ModelPart::kMlpLinear, "product"}});
  Result result{std::vector<float>(static_cast<std::size_t>(c.elements())),
                std::vector<float>(2 * kScaleStride)};
  device.download(c, std::as_writable_bytes(std::span(result.c)));
  device.download(scales, std::as_writable_bytes(std::span(result.scales)));
  return result;
}

// Allowed error of a sum of `depth` 8-bit products. Hopper keeps 13 bits below the leading bit of
// the largest term or sum, so that each term may lose 2^-13 of that value. An H200 has at most a
// quarter of this error. Rounding to E4M3 changes each operand by up to 1 / 16.
double allowed_error(double depth) {
  constexpr double kMean = 4.0 * 4.0;  // of two operands' amax, approximately
  const double greatest = 4 * kMean * std::sqrt(depth);
  return std::ldexp(greatest * std::sqrt(depth), -13);
}

void check_product(Device& device, Device& judge, const Case& one, Precision recipe) {
  const auto [m, n, k] = one.sides;
  INFO(name_of(recipe) << " " << m << " x " << n << " x " << k
                       << (one.transpose_a ? ", a weight's gradient" : "")
                       << (one.is_gradient ? ", a gradient" : "") << " from " << one.first_column);
  const Result mine = product_on(device, one, recipe), right = product_on(judge, one, recipe);
  const double allowed = allowed_error(static_cast<double>(k));
  double worst = 0;
  for (std::size_t i = 0; i < mine.c.size(); ++i) {
    const double off = std::fabs(double{mine.c[i]} - double{right.c[i]});
    worst = off > worst || std::isnan(off) ? off : worst;
  }
  CHECK(worst <= allowed);
  CHECK(mine.scales == right.scales);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Shape2& sides : {Shape2{64, 48, 96}, Shape2{200, 144, 416}, Shape2{33, 80, 50},
                              Shape2{132, 272, 160}, Shape2{7, 24, 19}, Shape2{5, 3, 1}}) {
    cases.push_back({sides, false, true});           // forward
    cases.push_back({sides, false, false, true});    // dgrad
    cases.push_back({sides, true, false, true, 1});  // wgrad
  }
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    cases.push_back({{130, 64, 300}, false, true, false, 1, dtype, 16});
    cases.push_back({{130, 64, 300}, true, false, true, 0, dtype, 3, true});
  }
  return cases;
}

}  // namespace

TEST_CASE("8-bit GEMMs on CUDA equal the CPU's with equally rounded operands", "[narrow]") {
  const auto device = gpu();
  const auto judge = std::move(CpuDevice::create()).value();
  for (const Precision recipe : kRecipes) {
    if (!has(*device, recipe)) continue;
    for (const Case& one : all_cases()) check_product(*device, *judge, one, recipe);
  }
}

TEST_CASE("infinities and NaN stay in 8-bit GEMMs on CUDA", "[narrow]") {
  const auto device = gpu();
  for (const Precision recipe : kRecipes) {
    if (!has(*device, recipe)) continue;
    for (const float odd :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      INFO(name_of(recipe) << " " << odd);
      std::vector<float> a = numbers(16, 32, 1);
      a[40] = odd;
      const Tensor x = uploaded(*device, a, {16, 32}, DType::kFloat32);
      const Tensor y = uploaded(*device, numbers(16, 32, 2), {16, 32}, DType::kFloat32);
      const Tensor z = uploaded(*device, numbers(16, 16, 3), {16, 16}, DType::kFloat32);
      const Tensor scales =
          uploaded(*device, {1, 0, 0, 0, 1, 0, 0, 0}, {2, kScaleStride}, DType::kFloat32);
      device->run(Matmul{.a = matrix_of(x),
                         .b = matrix_of(y, true),
                         .c = matrix_of(z),
                         .rounding = {recipe, false, true, scales.slice(0, 2),
                                      scales.slice(kScaleStride, 2), false},
                         .label = {ModelPart::kMlpLinear, "product"}});
      std::vector<float> result(256);
      device->download(z, std::as_writable_bytes(std::span(result)));
      CHECK_FALSE(std::isfinite(result[16]));
    }
  }
}

TEST_CASE("operands near zero give no NaN in 8-bit GEMMs on CUDA", "[narrow]") {
  const auto device = gpu();
  for (const Precision recipe : kRecipes) {
    if (!has(*device, recipe)) continue;
    for (const bool is_gradient : {false, true}) {
      for (const float greatest : {1e-35F, 1e-38F}) {
        INFO(name_of(recipe) << " " << greatest);
        std::vector<float> a(16 * 32);
        for (std::size_t i = 0; i < a.size(); i += 5) a[i] = greatest;
        const Tensor x = uploaded(*device, a, {16, 32}, DType::kFloat32);
        const Tensor y =
            uploaded(*device, std::vector<float>(16 * 32, 1.0F), {16, 32}, DType::kFloat32);
        const Tensor z = uploaded(*device, std::vector<float>(16 * 16), {16, 16}, DType::kFloat32);
        const Tensor scales =
            uploaded(*device, {1, 0, 0, 0, 1, 0, 0, 0}, {2, kScaleStride}, DType::kFloat32);
        device->run(Matmul{.a = matrix_of(x),
                           .b = matrix_of(y, true),
                           .c = matrix_of(z),
                           .rounding = {recipe, is_gradient, true, scales.slice(0, 2),
                                        scales.slice(kScaleStride, 2), true},
                           .label = {ModelPart::kMlpLinear, "product"}});
        std::vector<float> result(256);
        device->download(z, std::as_writable_bytes(std::span(result)));
        for (std::size_t row = 0; row < 16; ++row) {
          const auto first = a.begin() + static_cast<std::ptrdiff_t>(32 * row);
          const float sum = std::accumulate(first, first + 32, 0.0F);
          CHECK(std::abs(result[16 * row] - sum) <= sum / 8);
        }
      }
    }
  }
}

// dgrad and wgrad of one output gradient, as in backward.
std::array<std::vector<float>, 2> gradients_on(Device& device, Precision recipe, DType dtype,
                                               bool keeps) {
  constexpr std::int64_t kTokens = 150, kOut = 72, kIn = 40;
  const Tensor dy = uploaded(device, numbers(kTokens, kOut, 1), {kTokens, kOut}, dtype);
  const Tensor x = uploaded(device, numbers(kTokens, kIn, 2), {kTokens, kIn}, dtype);
  const Tensor w = uploaded(device, numbers(kOut, kIn, 3), {kOut, kIn}, dtype);
  const Tensor scales =
      uploaded(device, {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, {3, kScaleStride}, DType::kFloat32);
  const auto zeros = [&](std::int64_t rows) {
    const std::vector<float> none(static_cast<std::size_t>(rows * kIn));
    return uploaded(device, none, {rows, kIn}, DType::kFloat32);
  };
  const Tensor dx = zeros(kTokens), dw = zeros(kOut);
  const auto rounding = [&](std::int64_t b, bool of_weight) {
    return OperandRounding{recipe,
                           true,
                           !of_weight,
                           scales.slice(0, 2),
                           scales.slice(b, 2),
                           true,
                           keeps && !of_weight,
                           keeps && of_weight};
  };
  const Label label{ModelPart::kMlpLinear, "product"};
  device.run(Matmul{.a = matrix_of(dy),
                    .b = matrix_of(w),
                    .c = matrix_of(dx),
                    .rounding = rounding(kScaleStride, false),
                    .label = label});
  device.run(Matmul{.a = matrix_of(dy, true),
                    .b = matrix_of(x),
                    .c = matrix_of(dw),
                    .rounding = rounding(2 * kScaleStride, true),
                    .label = label});
  std::array<std::vector<float>, 2> results{std::vector<float>(kTokens * kIn),
                                            std::vector<float>(kOut * kIn)};
  device.download(dx, std::as_writable_bytes(std::span(results[0])));
  device.download(dw, std::as_writable_bytes(std::span(results[1])));
  return results;
}

TEST_CASE("quantizing both orientations of a gradient at once changes no bit on CUDA", "[narrow]") {
  const auto device = gpu();
  for (const Precision recipe : kRecipes) {
    if (!has(*device, recipe)) continue;
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      INFO(name_of(recipe) << " " << name_of(dtype));
      CHECK(gradients_on(*device, recipe, dtype, true) ==
            gradients_on(*device, recipe, dtype, false));
    }
  }
}

// Like the experts' matrices, which are adjacent in memory.
TEST_CASE("batched 8-bit GEMMs on CUDA are quantized per matrix", "[narrow]") {
  const auto device = gpu();
  const auto judge = std::move(CpuDevice::create()).value();
  for (const Precision recipe : kRecipes) {
    if (!has(*device, recipe)) continue;
    const auto result_on = [&](Device& on) {
      const Tensor x = uploaded(on, numbers(3 * 32, 64, 1), {3, 32, 64}, DType::kFloat32);
      const Tensor y = uploaded(on, numbers(3 * 48, 64, 2), {3, 48, 64}, DType::kFloat32);
      const Tensor z = uploaded(on, numbers(3 * 32, 48, 3), {3, 32, 48}, DType::kFloat32);
      const Tensor scales =
          uploaded(on, {0.02F, 0, 0, 0, 0.02F, 0, 0, 0}, {2, kScaleStride}, DType::kFloat32);
      const auto each = [](const Tensor& t, bool transposed) {
        const Shape& s = t.shape();
        return Matrix{.tensor = t,
                      .rows = s[1],
                      .cols = s[2],
                      .row_stride = s[2],
                      .outer_stride = s[1] * s[2],
                      .transposed = transposed};
      };
      on.run(Matmul{.a = each(x, false),
                    .b = each(y, true),
                    .c = each(z, false),
                    .outer = 3,
                    .rounding = {recipe, false, true, scales.slice(0, 2),
                                 scales.slice(kScaleStride, 2), false},
                    .label = {ModelPart::kExperts, "product"}});
      std::vector<float> result(3 * 32 * 48);
      on.download(z, std::as_writable_bytes(std::span(result)));
      return result;
    };
    const std::vector<float> mine = result_on(*device), right = result_on(*judge);
    double worst = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      worst = std::max(worst, std::fabs(double{mine[i]} - double{right[i]}));
    }
    CHECK(worst <= allowed_error(64));
  }
}

}  // namespace tpsim
