// The CPU device compared with the slow device, over every kind of op.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "kernels/cpu/cpu_device.h"
#include "kernels/slow/slow_device.h"
#include "tests/kernels/checks/odd_cases.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

std::unique_ptr<CpuDevice> cpu() { return std::move(CpuDevice::create()).value(); }

void check_all(DType dtype) {
  const auto device = cpu();
  std::vector<OpCase> all = odd_cases({dtype});
  for (OpCase& one : cases_of_today({dtype})) all.push_back(std::move(one));
  for (const OpCase& one : all) {
    for (const ResultError& e : errors_against_slow(*device, one.key, 5, one.change)) {
      INFO(to_string(one.key) << " variant " << int{one.key.variant} << " " << one.what << ": "
                              << e.result << " is off by " << e.error << ", allowed "
                              << e.tolerance);
      CHECK(e.within_tolerance());
    }
  }
}

}  // namespace

TEST_CASE("CPU ops on fp32 agree with float64") { check_all(DType::kFloat32); }
TEST_CASE("CPU ops on bf16 agree with float64 but for the rounding of bf16") {
  check_all(DType::kBFloat16);
}
TEST_CASE("CPU ops on fp16 agree with float64 but for the rounding of fp16") {
  check_all(DType::kFloat16);
}

TEST_CASE("sums over millions of elements keep their digits") {
  const auto device = cpu();
  for (const OpKey& key : {OpKey{OpKind::kSumSquares, DType::kFloat32, 0, {5'000'003}},
                           OpKey{OpKind::kColumnSum, DType::kFloat32, 0, {300'001, 3}},
                           OpKey{OpKind::kVocabMax, DType::kFloat32, 1, {2, 250'880}},
                           OpKey{OpKind::kVocabSums, DType::kFloat32, 0, {2, 250'880}}}) {
    for (const ResultError& e : errors_against_slow(*device, key, 5)) {
      INFO(to_string(key) << ": " << e.result << " is off by " << e.error);
      // Optimized builds stay below 6e-7. With sanitizers the loops are not vectorized, so that one
      // lane holds a whole sum.
      CHECK(e.error < 2e-6);
    }
  }
}

TEST_CASE("the same op on the same values gives the same bits") {
  const auto device = cpu();
  const OpKey key{OpKind::kFlashBackward, DType::kFloat32, 1, {2, 100, 4, 2, 16}};
  std::vector<std::vector<double>> results;
  for (int run = 0; run < 2; ++run) {
    const Op op = make_op(*device, key, 5);
    device->run(op);
    results.push_back(downloaded(*device, results_of(op)[1].tensor));
  }
  CHECK(results[0] == results[1]);
}

TEST_CASE("initial values do not depend on the layout, and are normally distributed") {
  const auto device = cpu();
  const auto whole = device->allocate({64, 96}, DType::kFloat32, MemoryCategory::kWeights, "w");
  const auto block = device->allocate({16, 32}, DType::kFloat32, MemoryCategory::kWeights, "w");
  device->run(
      InitNormal{.x = whole, .seed = 1, .tensor_id = 2, .global_cols = 96, .label = test::kTest});
  device->run(InitNormal{.x = block,
                         .seed = 1,
                         .tensor_id = 2,
                         .row_begin = 48,
                         .col_begin = 64,
                         .global_cols = 96,
                         .label = test::kTest});
  const std::vector<double> all = downloaded(*device, whole);
  const std::vector<double> part = downloaded(*device, block);
  double sum = 0, squares = 0;
  for (const double x : all) {
    sum += x;
    squares += x * x;
  }
  const auto n = static_cast<double>(all.size());
  CHECK(std::fabs(sum / n) < 4 / std::sqrt(n));
  CHECK(std::fabs(squares / n - 1) < 4 * std::sqrt(2 / n));
  for (std::size_t i = 0; i < part.size(); ++i) {
    CHECK(part[i] == all[(48 + i / 32) * 96 + 64 + i % 32]);
  }
}

TEST_CASE("freed memory is reused, and counted") {
  const auto device = cpu();
  void* first = nullptr;
  for (int step = 0; step < 3; ++step) {
    const Tensor x = device->allocate({1000}, DType::kFloat32, MemoryCategory::kWorkspace, "x");
    CHECK(reinterpret_cast<std::uintptr_t>(x.raw()) % 64 == 0);
    if (step == 0) first = x.raw();
    CHECK(x.raw() == first);
    CHECK(device->allocated_bytes() == 4000);
  }
  CHECK(device->allocated_bytes() == 0);
  CHECK(device->peak_allocated_bytes() == 4000);
}

TEST_CASE("a tensor larger than the address space is out of memory, not a crash") {
  const auto device = cpu();
  CHECK_THROWS_AS(device->allocate({std::int64_t{1} << 50}, DType::kFloat32,
                                   MemoryCategory::kWorkspace, "huge"),
                  OutOfDeviceMemory);
  CHECK(device->allocated_bytes() == 0);
}

TEST_CASE("every op has cases, and can be made from the key of each") {
  SlowDevice slow;
  std::set<OpKind> kinds;
  std::vector<OpCase> all = odd_cases({DType::kFloat32, DType::kBFloat16});
  for (OpCase& one : cases_of_today({DType::kFloat32, DType::kBFloat16})) {
    all.push_back(std::move(one));
  }
  for (const OpCase& one : all) {
    const OpKey key = describe(make_op(slow, one.key, 1)).key;
    INFO(to_string(one.key) << " variant " << int{one.key.variant} << " became " << to_string(key)
                            << " variant " << int{key.variant});
    CHECK(key == one.key);
    kinds.insert(key.kind);
  }
  for (int kind = 0; kind < kOpKindCount; ++kind) {
    INFO(name_of(static_cast<OpKind>(kind)));
    CHECK(kinds.contains(static_cast<OpKind>(kind)));
  }
}

}  // namespace tpsim
