// The CUDA device compared with the slow device, over every kind of op. [long]: on an emulated GPU.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <span>

#include "kernels/cuda/runtime/cuda_check.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "kernels/cuda/runtime/gpu_facts.h"
#include "kernels/cuda/runtime/host_costs.h"
#include "kernels/flash_memory.h"
#include "tests/kernels/checks/odd_cases.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

std::unique_ptr<CudaDevice> gpu() { return std::move(CudaDevice::create()).value(); }

// A kernel fault ends the process. TPSIM_OP selects the single kind of op to check.
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

// Ops without GPU kernels, which training refuses: sinks, values narrower than keys, activations
// other than GELU and SwiGLU, recent routers.
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

// Sizes at which kernels change: whole packs, several packs per thread, several tiles.
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
  // Each token occurs hundreds of times; columns span several blocks.
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

TEST_CASE("heads beyond the memory for sums of dq run in turns on CUDA", "[long]") {
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

TEST_CASE("dropout drops the same elements on CUDA as on the CPU") {
  const auto device = gpu();
  const OpKey key{OpKind::kDropoutForward, DType::kBFloat16, 3, {33, 4096}};
  const std::vector<std::byte> mask = bytes_after(*device, key, 1);
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if ((mask[i] != std::byte{0}) != dropout_keeps(9, i, 0.1F)) FAIL("element " << i);
  }
}

TEST_CASE("GPU memory is counted and reused, and exhaustion is an error") {
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

TEST_CASE("marks on CUDA give the order and duration of the work between them", "[long]") {
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

TEST_CASE("a GPU's facts and its host's costs are plausible") {
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

TEST_CASE("a delayed stream begins later, and CUPTI's gaps between kernels agree with marks") {
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
    WARN(to_string(kernels.error()));  // another profiler or a sanitizer is active
    return;
  }
  CHECK(kernels->size() == 4);
  const LaunchGap gap = launch_gap_of(*kernels);
  CHECK(gap.kernel_s > 1e-5);  // 256 MiB at less than 27 TB/s
  CHECK(gap.gap_s < 1e-4);
}

TEST_CASE("choices of algorithms are texts with a library name, and unknown texts are ignored") {
  const OpKey key{OpKind::kMatmul, DType::kBFloat16, kTransposeB, {1, 256, 512, 1024}};
  const auto first = gpu();
  static_cast<void>(bytes_after(*first, key, 0));
  AlgorithmChoices chosen = first->algorithms();
  REQUIRE(chosen.choices.size() == 2);  // of attention and of the GEMM
  const auto second = gpu();
  chosen.choices.emplace_back("no choice at all");
  second->use_algorithms(chosen);
  static_cast<void>(bytes_after(*second, key, 0));
  CHECK(second->algorithms().choices == first->algorithms().choices);
}

TEST_CASE("a GEMM without a cuBLASLt algorithm records no choice") {
  const auto device = gpu();
  MatmulCall call;  // 8-bit GEMMs require multiples of 16
  call.key.dtype = DType::kFloat8;
  call.key.output = DType::kFloat32;
  call.key.sizes = {1, 3, 3, 3};
  call.key.row_strides = {3, 3, 3};
  CHECK_THROWS_AS(device->matmuls().run(call, nullptr, device->stream()), CudaFailure);
  CHECK(device->matmuls().choices().empty());
  CHECK(device->algorithms().choices.size() == 1);  // of attention
}

TEST_CASE("recorded algorithm choices select the attention kernels") {
  const char* const asked = std::getenv("TPSIM_HOPPER_ATTENTION");
  const std::string before = asked == nullptr ? "" : asked;
  setenv("TPSIM_HOPPER_ATTENTION", "0", 1);
  const AlgorithmChoices by_warps = gpu()->algorithms();
  unsetenv("TPSIM_HOPPER_ATTENTION");
  const auto other = gpu();
  other->use_algorithms(by_warps);
  CHECK_FALSE(other->limits().uses_warpgroups);
  CHECK(other->algorithms().choices == by_warps.choices);
  if (asked != nullptr) setenv("TPSIM_HOPPER_ATTENTION", before.c_str(), 1);
}

TEST_CASE("the choice of algorithms can be used on another device of the same kind") {
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
