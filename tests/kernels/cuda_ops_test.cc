// The CUDA device against the slow one, over every kind of op. [long]: on an emulated GPU.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/gpu_facts.h"
#include "kernels/flash_memory.h"
#include "tests/kernels/odd_cases.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

std::unique_ptr<CudaDevice> gpu() { return std::move(CudaDevice::create()).value(); }

// A kernel that faults takes its process along: TPSIM_OP names the one kind of op to check.
bool is_wanted(const OpKey& key) {
  const char* wanted = std::getenv("TPSIM_OP");
  return wanted == nullptr || name_of(key.kind) == wanted;
}

void check_case(Device& device, const OpCase& one) {
  if (!is_wanted(one.key)) return;
  INFO("at " << to_string(one.key) << " variant " << int{one.key.variant} << " " << one.what);
  for (const ResultError& e : errors_against_slow(device, one.key, 5, one.change)) {
    INFO(to_string(one.key) << " variant " << int{one.key.variant} << " " << one.what << ": "
                            << e.result << " is off by " << e.error << ", allowed " << e.tolerance);
    CHECK(e.within_tolerance());
  }
}

// What a GPU has no kernels for, as training refuses it by name: sinks, values narrower than keys,
// other activations than GELU and SwiGLU, routers of today.
bool is_lacking(const OpKey& key) {
  switch (key.kind) {
    case OpKind::kFlashForward:
    case OpKind::kFlashBackward: return (key.variant & kSinks) != 0 || key.dims[7] > 0;
    case OpKind::kSoftmaxForward:
    case OpKind::kSoftmaxBackward: return (key.variant & kSinks) != 0;
    case OpKind::kBiasGeluForward:
    case OpKind::kBiasGeluBackward:
    case OpKind::kSwigluForward:
    case OpKind::kSwigluBackward: return key.variant > 1;
    case OpKind::kRouteForward:
    case OpKind::kRouteBackward: return true;
    default: return false;
  }
}

void check_all(DType dtype) {
  const auto device = gpu();
  for (const OpCase& one : odd_cases({dtype})) check_case(*device, one);
  for (const OpCase& one : cases_of_today({dtype})) {
    if (!is_lacking(one.key)) check_case(*device, one);
  }
}

// Sizes at which kernels change their way: whole packs, several packs to a thread, several tiles.
std::vector<OpKey> wide_keys(DType dtype) {
  const auto own = static_cast<std::uint8_t>(dtype);
  const auto residual_in_own = static_cast<std::uint8_t>(own << 2 | 2);
  std::vector<OpKey> keys;
  for (const std::int64_t cols : {64, 1024, 4096, 8192, 14336, 20480, 40960}) {
    for (const auto kind : {std::uint8_t{0}, std::uint8_t{1}}) {
      keys.push_back({OpKind::kNormForward, dtype, kind, {5, cols}});
      keys.push_back({OpKind::kNormBackward, dtype, kind, {5, cols}});
      keys.push_back({OpKind::kNormBackward,
                      dtype,
                      static_cast<std::uint8_t>(kind | residual_in_own),
                      {70, cols}});
    }
    keys.push_back({OpKind::kBiasGeluForward, dtype, 1, {9, cols}});
    keys.push_back({OpKind::kBiasResidual, dtype, 3, {9, cols}});
    keys.push_back({OpKind::kDropoutForward, dtype, 3, {9, cols}});
    keys.push_back({OpKind::kColumnSum, dtype, own, {700, cols}});
    keys.push_back({OpKind::kCrossEntropyBackward, dtype, 0, {3, cols}});
    keys.push_back({OpKind::kEmbeddingBackward, dtype, 0, {600, cols / 64, 50}});
    keys.push_back({OpKind::kInitNormal, dtype, 0, {7, cols}});
  }
  for (const std::int64_t seq : {64, 1000, 2048, 10000}) {
    keys.push_back({OpKind::kSoftmaxForward, dtype, 1, {2, 3, seq}});
    keys.push_back({OpKind::kSoftmaxBackward, dtype, 0, {2, 3, seq}});
  }
  for (const OpDims& dims : {OpDims{1, 200, 4, 2, 64},
                             {2, 131, 2, 1, 128},
                             {1, 257, 3, 3, 96},
                             {1, 64, 2, 2, 80},
                             {1, 300, 1, 1, 128},
                             {1, 33, 2, 2, 256},
                             {1, 130, 2, 1, 128, 300},
                             {2, 70, 4, 2, 64, 333},
                             {1, 33, 2, 2, 256, 65}}) {
    for (const auto alibi : {std::uint8_t{0}, std::uint8_t{1}}) {
      keys.push_back({OpKind::kFlashForward, dtype, alibi, dims});
      keys.push_back({OpKind::kFlashBackward, dtype, alibi, dims});
    }
  }
  // Each token hundreds of times; columns of several blocks.
  for (const std::int64_t cols : {96, 301, 4096}) {
    keys.push_back({OpKind::kEmbeddingBackward, dtype, 0, {700, cols, 3}});
  }
  keys.push_back({OpKind::kCopyMatrices, dtype, 0, {5, 70, 256}});
  keys.push_back({OpKind::kRotary, dtype, 0, {70, 3, 128}});
  keys.push_back({OpKind::kAdamW, dtype, 0, {100'003}});
  keys.push_back({OpKind::kSumSquares, dtype, 0, {100'003}});
  keys.push_back({OpKind::kMatmul, dtype, kTransposeB, {1, 128, 192, 256}});
  return keys;
}

void check_wide(DType dtype) {
  const auto device = gpu();
  for (const OpKey& key : wide_keys(dtype)) check_case(*device, {key, "", nullptr});
}

std::vector<std::byte> bytes_after(Device& device, const OpKey& key, std::size_t result) {
  const Op op = make_op(device, key, 5);
  device.run(op);
  const Tensor tensor = results_of(op)[result].tensor;
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes()));
  device.download(tensor, bytes);
  return bytes;
}

}  // namespace

namespace {

// The element's magnitude rounded to so many bits of mantissa, as a format of 8 bits has them.
double in_8_bits(double x, int mantissa, int least_exponent, double greatest) {
  if (x == 0) return 0;
  const int step = std::max(std::ilogb(x), least_exponent) - mantissa;
  const double nearest = std::ldexp(std::nearbyint(std::ldexp(x, -step)), step);
  return std::clamp(nearest, -greatest, greatest);
}

struct Values {
  std::vector<float> numbers;
  std::int64_t rows, cols;  // as stored
  bool transposed;

  double at(std::int64_t row, std::int64_t col) const {
    return numbers[static_cast<std::size_t>(transposed ? col * cols + row : row * cols + col)];
  }
};

Values values_of(std::int64_t rows, std::int64_t cols, bool transposed, std::uint32_t seed) {
  Values values{{}, rows, cols, transposed};
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    seed = seed * 1664525U + 1013904223U;
    const float uniform = static_cast<float>(seed >> 8U) / static_cast<float>(1U << 24U) - 0.5F;
    values.numbers.push_back(uniform * uniform * uniform * 3.0F);
  }
  return values;
}

// With one scale a matrix, in double.
Values rounded_to_8_bits(Values values, bool is_gradient) {
  float greatest = 0;
  for (const float x : values.numbers) greatest = std::max(greatest, std::fabs(x));
  const double most = is_gradient ? 57344 : 448;
  const float unit = greatest / static_cast<float>(most);
  for (float& x : values.numbers) {
    x = unit * static_cast<float>(is_gradient ? in_8_bits(x / unit, 2, -14, most)
                                              : in_8_bits(x / unit, 3, -6, most));
  }
  return values;
}

Tensor uploaded(Device& device, const Values& values) {
  Tensor tensor = device.allocate({values.rows, values.cols}, DType::kFloat32,
                                  MemoryCategory::kActivations, "x");
  device.upload(std::as_bytes(std::span(values.numbers)), tensor);
  return tensor;
}

struct NarrowCase {
  std::int64_t m, n, k;
  bool transpose_a, transpose_b, is_gradient;
  float beta;
};

void check_in_8_bits(Device& device, const NarrowCase& one) {
  INFO(one.m << " x " << one.n << " x " << one.k << (one.is_gradient ? ", a gradient" : ""));
  const Values a = values_of(one.transpose_a ? one.k : one.m, one.transpose_a ? one.m : one.k,
                             one.transpose_a, 1);
  const Values b = values_of(one.transpose_b ? one.n : one.k, one.transpose_b ? one.k : one.n,
                             one.transpose_b, 2);
  const Values c = values_of(one.m, one.n, false, 3);
  const Tensor x = uploaded(device, a), y = uploaded(device, b), z = uploaded(device, c);
  device.run(Matmul{.a = matrix_of(x, one.transpose_a),
                    .b = matrix_of(y, one.transpose_b),
                    .c = matrix_of(z),
                    .beta = one.beta,
                    .rounding = {Precision::kFp8Current, one.is_gradient, false},
                    .label = {ModelPart::kMlpLinear, "product"}});
  std::vector<float> result(c.numbers.size());
  device.download(z, std::as_writable_bytes(std::span(result)));
  const Values a8 = rounded_to_8_bits(a, one.is_gradient), b8 = rounded_to_8_bits(b, false);
  double worst = 0;
  for (std::int64_t i = 0; i < one.m; ++i) {
    for (std::int64_t j = 0; j < one.n; ++j) {
      double sum = one.beta * c.at(i, j);
      for (std::int64_t k = 0; k < one.k; ++k) sum += a8.at(i, k) * b8.at(k, j);
      worst = std::max(worst, std::fabs(sum - result[static_cast<std::size_t>(i * one.n + j)]));
    }
  }
  CHECK(worst < 1e-5 * std::sqrt(static_cast<double>(one.k)));
}

}  // namespace

TEST_CASE("products of 8 bits on CUDA are those of operands rounded to 8 bits") {
  const auto device = gpu();
  if (const std::string reason = device->reason_against(Precision::kFp8Current); !reason.empty()) {
    WARN(reason);
    return;
  }
  for (const NarrowCase& one : {NarrowCase{64, 48, 96, false, true, false, 0},  // forward
                                {64, 96, 48, false, false, true, 0},            // inputs' gradient
                                {48, 96, 64, true, false, true, 1},             // weights'
                                {33, 80, 50, false, true, false, 0},            // sums are padded
                                {7, 24, 19, false, true, false, 1},  // columns are not 16
                                {5, 3, 1, true, false, true, 0}}) {
    check_in_8_bits(*device, one);
  }
}

TEST_CASE("what is not finite stays so in products of 8 bits on CUDA") {
  const auto device = gpu();
  if (!device->reason_against(Precision::kFp8Current).empty()) return;
  for (const float odd :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    Values a = values_of(16, 32, false, 1);
    a.numbers[40] = odd;
    const Tensor x = uploaded(*device, a), y = uploaded(*device, values_of(16, 32, true, 2));
    const Tensor z = uploaded(*device, values_of(16, 16, false, 3));
    device->run(Matmul{.a = matrix_of(x),
                       .b = matrix_of(y, true),
                       .c = matrix_of(z),
                       .rounding = {Precision::kFp8Current, false, true},
                       .label = {ModelPart::kMlpLinear, "product"}});
    std::vector<float> result(256);
    device->download(z, std::as_writable_bytes(std::span(result)));
    CHECK_FALSE(std::isfinite(result[16]));
  }
}

TEST_CASE("CUDA ops on fp32 agree with float64") { check_all(DType::kFloat32); }
TEST_CASE("CUDA ops on bf16 agree with float64 but for the rounding of bf16", "[sanitize]") {
  check_all(DType::kBFloat16);
}
TEST_CASE("CUDA ops on fp16 agree with float64 but for the rounding of fp16") {
  check_all(DType::kFloat16);
}

TEST_CASE("CUDA ops on wide fp32 tensors agree with float64", "[long]") {
  check_wide(DType::kFloat32);
}
TEST_CASE("CUDA ops on wide bf16 tensors agree with float64", "[long]") {
  check_wide(DType::kBFloat16);
}
TEST_CASE("CUDA ops on wide fp16 tensors agree with float64", "[long]") {
  check_wide(DType::kFloat16);
}

TEST_CASE("more heads than have room for their sums of dq take turns on CUDA", "[long]") {
  const OpKey key{OpKind::kFlashBackward, DType::kBFloat16, 1, {65, 2, 32, 32, 8, 200}};
  const AttentionDims dims{65, 2, 32, 32, 8, 200};
  REQUIRE(flash_backward_memory(dims).slots < dims.batch * dims.kv_heads);
  check_case(*gpu(), {key, "", nullptr});
}

TEST_CASE("sums over millions of elements keep their digits on CUDA") {
  const auto device = gpu();
  for (const OpKey& key : {OpKey{OpKind::kSumSquares, DType::kFloat32, 0, {5'000'003}},
                           OpKey{OpKind::kColumnSum, DType::kFloat32, 0, {300'001, 3}},
                           OpKey{OpKind::kVocabMax, DType::kFloat32, 1, {2, 250'880}},
                           OpKey{OpKind::kVocabSums, DType::kFloat32, 0, {2, 250'880}}}) {
    for (const ResultError& e : errors_against_slow(*device, key, 5)) {
      INFO(to_string(key) << ": " << e.result << " is off by " << e.error);
      CHECK(e.error < 1e-6);
    }
  }
}

TEST_CASE("the same op on the same values gives the same bits on CUDA", "[sanitize][long]") {
  const auto device = gpu();
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const OpKey& key : {OpKey{OpKind::kFlashBackward, dtype, 1, {2, 300, 4, 2, 64}},
                             OpKey{OpKind::kNormBackward, dtype, 0, {777, 1024}},
                             OpKey{OpKind::kColumnSum, dtype, 0, {777, 1024}},
                             OpKey{OpKind::kSumSquares, dtype, 0, {1'000'003}},
                             OpKey{OpKind::kEmbeddingBackward, dtype, 0, {500, 64, 20}},
                             OpKey{OpKind::kMatmul, dtype, kTransposeA, {1, 256, 256, 4096}}}) {
      INFO(to_string(key));
      CHECK(bytes_after(*device, key, 0) == bytes_after(*device, key, 0));
    }
  }
}

TEST_CASE("dropout drops the same elements on CUDA as everywhere") {
  const auto device = gpu();
  const OpKey key{OpKind::kDropoutForward, DType::kBFloat16, 3, {33, 4096}};
  const std::vector<std::byte> mask = bytes_after(*device, key, 1);
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if ((mask[i] != std::byte{0}) != dropout_keeps(9, i, 0.1F)) FAIL("element " << i);
  }
}

TEST_CASE("memory of the GPU is counted, given out again, and runs out politely") {
  const auto device = gpu();
  {
    const Tensor x = device->allocate({1000}, DType::kFloat32, MemoryCategory::kWorkspace, "x");
    CHECK(reinterpret_cast<std::uintptr_t>(x.raw()) % 256 == 0);
    CHECK(device->allocated_bytes() == 4000);
    CHECK(device->memory().used_bytes() == 4096);
  }
  const std::int64_t reserved = device->memory().reserved_bytes();
  CHECK(reserved > 0);
  CHECK(driver_memory().used >= reserved);
  CHECK_THROWS_AS(device->allocate({std::int64_t{1} << 50}, DType::kFloat32,
                                   MemoryCategory::kWorkspace, "huge"),
                  OutOfDeviceMemory);
  const Tensor y = device->allocate({8}, DType::kFloat32, MemoryCategory::kWorkspace, "y");
  device->run(Fill{y, 2.0F, test::kTest});
  device->synchronize();
}

TEST_CASE("marks on CUDA tell the order and the length of what lies between them", "[long]") {
  const auto device = gpu();
  const Tensor x =
      device->allocate({std::int64_t{1} << 28}, DType::kFloat32, MemoryCategory::kWorkspace, "x");
  for (int round = 0; round < 2; ++round) {
    const DeviceMark start = device->mark();
    const DeviceMark same = device->mark();
    for (int i = 0; i < 4; ++i) device->run(Fill{x, 1.0F, test::kTest});
    const DeviceMark end = device->mark();
    CHECK(device->seconds_between(same, end) > 1e-5);  // 4 GiB at less than 400 TB/s
    CHECK(device->seconds_between(start, end) >= device->seconds_between(same, end));
    device->forget_marks();
  }
}

TEST_CASE("a GPU's facts and its host's costs lie where a GPU's can lie") {
  const auto device = gpu();
  const GpuFacts facts = gpu_facts();
  CHECK_FALSE(facts.name.empty());
  CHECK(facts.multiprocessors == device->limits().multiprocessors);
  CHECK(facts.memory_bytes >= driver_memory().total / 10 * 9);
  const HostCosts costs = host_costs(*device);
  CHECK(costs.launch_s > 0);
  CHECK(costs.upload_bytes_per_s > 1e8);
  CHECK(costs.download_bytes_per_s > 1e8);
}

TEST_CASE("a delayed stream begins later, and CUPTI's kernels lie as far apart as marks say") {
  const auto device = gpu();
  const Tensor x =
      device->allocate({std::int64_t{1} << 26}, DType::kFloat32, MemoryCategory::kWorkspace, "x");
  const DeviceMark start = device->mark();
  device->delay(2e-3);
  const double delayed = device->seconds_between(start, device->mark());
  CHECK(delayed > 1.9e-3);
  CHECK(delayed < 10e-3);
  const auto kernels = traced_kernels(*device, [&] {
    for (int i = 0; i < 4; ++i) device->run(Fill{x, 1.0F, test::kTest});
  });
  if (!kernels.ok()) {
    WARN(to_string(kernels.error()));  // under another profiler or sanitizer
    return;
  }
  CHECK(kernels->size() == 4);
  const LaunchGap gap = launch_gap_of(*kernels);
  CHECK(gap.kernel_s > 1e-5);  // 256 MiB at less than 27 TB/s
  CHECK(gap.gap_s < 1e-4);
}

TEST_CASE("choices of algorithms are texts that name who chose, and others are left alone") {
  const OpKey key{OpKind::kMatmul, DType::kBFloat16, kTransposeB, {1, 256, 512, 1024}};
  const auto first = gpu();
  static_cast<void>(bytes_after(*first, key, 0));
  AlgorithmChoices chosen = first->algorithms();
  REQUIRE(chosen.choices.size() == 1);
  const auto second = gpu();
  chosen.choices.emplace_back("no choice at all");
  second->use_algorithms(chosen);
  static_cast<void>(bytes_after(*second, key, 0));
  CHECK(second->algorithms().choices == first->algorithms().choices);
}

TEST_CASE("the choice of algorithms carries over to another device of the same kind") {
  const OpKey key{OpKind::kMatmul, DType::kBFloat16, kTransposeB, {1, 256, 512, 1024}};
  const auto first = gpu();
  const std::vector<std::byte> product = bytes_after(*first, key, 0);
  const std::vector<MatmulChoice> choices = first->matmuls().choices();
  REQUIRE(choices.size() == 1);
  const auto second = gpu();
  second->matmuls().use(choices);
  CHECK(bytes_after(*second, key, 0) == product);
  CHECK(second->matmuls().choices() == choices);
}

}  // namespace tpsim
