// From samples to a profile: statistics, op checks and fitted constants.
#include "profiler/profiler.h"

#include <catch2/catch.hpp>

#include "kernels/slow/slow_device.h"
#include "profiler/device_fit.h"
#include "profiler/reduced_key.h"
#include "ranks/modelled/modelled_world.h"
#include "tests/kernels/clock_device.h"

namespace tpsim {
namespace {

constexpr auto kFp32 = DType::kFloat32;

void hear_nothing(double) {}

}  // namespace

TEST_CASE("the median of samples ignores outliers") {
  const MedianSpread middle = median_and_spread({10, 11, 9, 10, 1000});
  CHECK(middle.median == 10);
  CHECK(middle.spread == Approx(0.1));
  CHECK(median_and_spread({1, 2, 3, 4}).median == 2.5);
}

TEST_CASE("samples of several ranks become one entry") {
  const OpKey key{OpKind::kFill, kFp32, 0, {8}};
  Samples first, second;
  first.add(key, 1.0);
  second.add(key, 3.0);
  second.add(CollectiveKind::kAllReduce, 2, 64, 5.0);
  first.add(second);
  REQUIRE(first.ops().size() == 1);
  CHECK(first.ops()[0].median.value() == 2);
  CHECK(first.ops()[0].count == 2);
  REQUIRE(first.collectives().size() == 1);
  CHECK(first.collectives()[0].bytes.value() == 64);
}

TEST_CASE("samples are unchanged by packing for another process") {
  const OpKey key{OpKind::kMatmul, kFp32, kTransposeB, {1, 8, 16, 32}};
  Samples here;
  here.add(key, 1.0);
  here.add(key, 4.0);
  here.add(CollectiveKind::kReduceScatter, 4, 64, 5.0);
  here.add_steps({1.0, 1.1, 1.2});
  const Samples there = Samples::unpacked(here.packed());
  REQUIRE(there.ops().size() == 1);
  CHECK(there.ops()[0].key == key);
  CHECK(there.ops()[0].median.value() == 2.5);
  CHECK(there.ops()[0].count == 2);
  REQUIRE(there.collectives().size() == 1);
  CHECK(there.collectives()[0].kind == CollectiveKind::kReduceScatter);
  CHECK(there.collectives()[0].ranks == 4);
  CHECK(there.rank_jitter() == here.rank_jitter());
}

TEST_CASE("a reduced key is the same op with small sizes") {
  const OpKey keys[] = {
      {OpKind::kMatmul, DType::kBFloat16, kTransposeA | kAccumulate, {1, 4096, 14336, 14336}},
      {OpKind::kFlashForward, kFp32, 1, {4, 2048, 32, 8, 128}},
      {OpKind::kRotary, kFp32, 0, {8192, 64, 128}},
      {OpKind::kEmbeddingForward, kFp32, 0, {4096, 1024, 250880}},
      {OpKind::kAdamW, kFp32, 0, {123456789}}};
  for (const OpKey& key : keys) {
    const OpKey small = reduced_key(key);
    INFO(to_string(small));
    CHECK(small.kind == key.kind);
    CHECK(small.variant == key.variant);
    double extents = 1;
    for (std::size_t i = 0; i < key.dims.size(); ++i) {
      CHECK(small.dims[i] <= key.dims[i]);
      CHECK((small.dims[i] > 0) == (key.dims[i] > 0));
      if (key.dims[i] > 0) extents *= static_cast<double>(small.dims[i]);
    }
    CHECK(extents <= 1 << 21);
  }
  CHECK(reduced_key(keys[1]).dims[2] / reduced_key(keys[1]).dims[3] == 4);
  CHECK(reduced_key(keys[2]).dims[2] == 128);
}

TEST_CASE("a device with wrong results is detected before timing") {
  const std::vector<OpKey> keys = {{OpKind::kMatmul, kFp32, 0, {1, 512, 512, 512}}};
  SlowDevice right;
  CHECK(check_ops(right, keys, hear_nothing).ok());
  test::ClockDevice wrong;  // computes nothing
  const Status status = check_ops(wrong, keys, hear_nothing);
  REQUIRE(!status.ok());
  CHECK(status.error().kind == ErrorKind::kBug);
  CHECK_THAT(status.error().message, Catch::Contains("matmul"));
}

TEST_CASE("constants are read back from samples that were made with them") {
  constexpr double kPeak = 1e11, kBandwidth = 2e10;
  DeviceFacts processor;
  processor.asynchronous = false;
  const std::vector<OpRecord> probes = probe_ops(kFp32, processor);
  Profile profile;
  for (const OpRecord& probe : probes) {
    const bool product = probe.key.kind == OpKind::kMatmul;
    const double seconds = 1e-7 + (product ? probe.flops / kPeak : probe.bytes / kBandwidth);
    profile.ops.push_back({probe.key, Seconds(seconds)});
  }
  fit_device(probes, profile);
  CHECK(profile.device.matmul_peak.value() == Approx(kPeak).epsilon(1e-3));
  CHECK(profile.device.memory_bandwidth.value() == Approx(kBandwidth).epsilon(1e-3));
  CHECK(profile.model.kernel_latency.value() == Approx(1e-7).epsilon(0.1));
  CHECK(profile.model.matmul_efficiency == Approx(1).epsilon(1e-3));
}

TEST_CASE("without an undisturbed large copy the bandwidth is that of the fastest pass") {
  DeviceFacts processor;
  processor.asynchronous = false;
  Profile profile;
  std::vector<OpRecord> timed;
  for (const OpRecord& probe : probe_ops(kFp32, processor)) {
    if (probe.key.kind == OpKind::kCopy) continue;
    timed.push_back(probe);
    profile.ops.push_back({probe.key, Seconds(1e-7)});
  }
  fit_device(timed, profile);
  double fastest = 0;
  for (const OpRecord& one : timed) {
    if (one.key.kind == OpKind::kFill) fastest = one.bytes / 1e-7;
  }
  CHECK(profile.device.memory_bandwidth.value() == Approx(fastest));
}

TEST_CASE("a step in the profiler gives samples of all its ops; other ops are timed separately") {
  ModelSpec model;
  model.name = "tiny";
  model.layers = 2;
  model.hidden = 16;
  model.ffn_hidden = 32;
  model.vocab = 24;
  model.seq = 4;
  model.attention.heads = model.attention.kv_heads = 2;
  model.attention.head_dim = 8;
  Plan plan;
  plan.degrees = {2, 1, 1, 1};
  plan.dtype = kFp32;
  plan.stage_layers = {2};
  const OpKey other{OpKind::kFill, kFp32, 0, {77}};
  ProfileRequest request;
  request.ops = {other};
  request.in_step_runs = {{model, plan, {}, 0}};
  request.collectives = {{CollectiveKind::kAllReduce, 2, 64}};  // the world has a single rank

  test::ClockDevice device;
  OwnDeviceMeter meter;
  ModelledWorld world(
      0, 1, [](const CollectiveRecord&) { return 0.0; }, 1);
  const auto samples = profile_rank(world, device, meter, request, hear_nothing);
  REQUIRE(samples.ok());
  CHECK(samples->has(other));
  CHECK(samples->has(
      {OpKind::kMatmul, kFp32, kTransposeB, {1, 4, 16, 16}}));  // first GEMM of the MLP
  for (const OpSample& sample : samples->ops()) {
    CHECK(sample.median.value() == Approx(1e-6));
    CHECK(sample.count >= static_cast<int>(request.in_step.least_steps));
  }
  CHECK(samples->collectives().empty());
  CHECK(samples->rank_jitter() == Approx(0).margin(1e-9));
  // Neither a step nor an op starts after the budget.
  request.budget = Seconds(0);
  const auto none = profile_rank(world, device, meter, request, hear_nothing);
  REQUIRE(none.ok());
  CHECK(none->ops().empty());
}

}  // namespace tpsim
