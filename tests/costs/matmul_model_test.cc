// The analytical bound of a GEMM compared with closed forms, and its corrections with samples.
#include "costs/matmul_model.h"

#include <catch2/catch.hpp>

#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

// No latency, no epilogue, whole waves: only tiles / SMs remain.
Profile bare_profile() {
  Profile profile = test::constant_profile();
  profile.model.matmul_latency = Seconds(0);
  profile.model.matmul.epilogue_exposed = 0;
  profile.model.matmul.wave_rounding = 1;
  profile.model.matmul.small_tile_exponent = 2;  // small tiles are never faster
  profile.model.matmul_efficiency = 1;
  profile.device.memory_bandwidth = BytesPerSecond(1e15);
  return profile;
}

OpKey key_of(std::int64_t m, std::int64_t n, std::int64_t k, std::uint8_t variant = kTransposeB,
             std::int64_t batch = 1) {
  return {OpKind::kMatmul, DType::kBFloat16, variant, {batch, m, n, k}};
}

double bound_of(const Profile& profile, const OpKey& key) {
  return MatmulModel(profile).bound(matmul_shape(key)).time.value();
}

TEST_CASE("a GEMM takes its number of waves times the time of one tile") {
  const Profile profile = bare_profile();  // 100 SMs of 1 TFLOP/s, tiles of 128 x 256
  const double tile = 2.0 * 128 * 256 * 256 / 1e12;
  CHECK(bound_of(profile, key_of(1280, 2560, 256)) == Approx(tile));
  CHECK(bound_of(profile, key_of(1280, 2568, 256)) == Approx(2 * tile));
  CHECK(bound_of(profile, key_of(2560, 5120, 256)) == Approx(4 * tile));
  CHECK(bound_of(profile, key_of(640, 2560, 256, kTransposeB, 4)) == Approx(2 * tile));
}

TEST_CASE("without wave rounding a partial wave costs its share") {
  Profile profile = bare_profile();
  profile.model.matmul.wave_rounding = 0;
  const double tile = 2.0 * 128 * 256 * 256 / 1e12;
  CHECK(bound_of(profile, key_of(1280, 3840, 256)) == Approx(1.5 * tile));
}

TEST_CASE("a GEMM with few tiles and a large k uses split-K") {
  const MatmulModel model(bare_profile());
  CHECK(model.bound(matmul_shape(key_of(256, 256, 16384))).k_splits > 1);
  CHECK(model.bound(matmul_shape(key_of(256, 256, 256))).k_splits == 1);
  CHECK(model.bound(matmul_shape(key_of(8192, 8192, 16384))).k_splits == 1);
}

TEST_CASE("rows that are not a multiple of 16 bytes slow a GEMM, by layout") {
  CHECK(matmul_shape(key_of(100, 104, 112)).aligned);
  CHECK_FALSE(matmul_shape(key_of(104, 104, 108)).aligned);  // rows of A and B have k elements
  CHECK_FALSE(matmul_shape(key_of(104, 108, 104)).aligned);  // rows of C
  CHECK(matmul_shape(key_of(100, 104, 104, 0)).aligned);     // m is not the length of a row of A
  CHECK_FALSE(matmul_shape(key_of(100, 104, 104, kTransposeA)).aligned);
  Profile profile = bare_profile();
  profile.model.matmul.unaligned_batched_rate = 0.1;
  const double aligned = bound_of(profile, key_of(2048, 2048, 128, kTransposeB, 16));
  CHECK(bound_of(profile, key_of(2048, 2048, 108, kTransposeB, 16)) == Approx(10 * aligned));
  // Below the vector units' rate the GEMM runs there, without padding.
  profile.model.matmul.unaligned_batched_rate = 0.05;
  const double of_108 = bound_of(profile, key_of(2048, 2048, 108, kTransposeB, 16));
  CHECK(bound_of(profile, key_of(2048, 2048, 150, kTransposeB, 16)) ==
        Approx(150.0 / 108 * of_108).epsilon(1e-3));
  CHECK(bound_of(profile, key_of(2048, 150, 2048, kTransposeB, 16)) ==
        Approx(bound_of(profile, key_of(2048, 2048, 150, kTransposeB, 16))).epsilon(1e-3));
}

TEST_CASE("adding to an fp32 result writes and reads more") {
  Profile profile = test::constant_profile();
  profile.device.memory_bandwidth = BytesPerSecond(100e9);
  const double plain = bound_of(profile, key_of(4096, 4096, 256));
  CHECK(bound_of(profile, key_of(4096, 4096, 256, kTransposeB | kOutputFloat32)) > plain);
  CHECK(bound_of(profile, key_of(4096, 4096, 256, kTransposeB | kOutputFloat32 | kAccumulate)) >
        bound_of(profile, key_of(4096, 4096, 256, kTransposeB | kOutputFloat32)));
}

Profile profile_slower_than_bound(double factor) {
  Profile profile = test::constant_profile();
  const MatmulModel model(profile);
  for (const std::int64_t k : {512, 1024, 2048, 4096, 8192}) {
    for (const std::int64_t n : {1024, 2048, 4096, 8192}) {
      const OpKey key = key_of(2048, n, k);
      profile.ops.push_back({key, factor * model.bound(matmul_shape(key)).time});
    }
  }
  return profile;
}

TEST_CASE("samples correct the bound of GEMMs of similar size only") {
  const MatmulModel model(profile_slower_than_bound(1.3));
  const MatmulEstimate near = model.estimate(key_of(2048, 4096, 3000));
  CHECK(near.near_samples);
  CHECK(near.correction == Approx(1.3).epsilon(0.01));
  const MatmulEstimate far = model.estimate(key_of(1, 8, 8));
  CHECK_FALSE(far.near_samples);
  CHECK(far.correction == Approx(1).epsilon(0.01));
}

TEST_CASE("corrections are between those of the samples") {
  Profile profile = profile_slower_than_bound(1.3);
  for (std::size_t i = 0; i < profile.ops.size(); i += 2) profile.ops[i].median *= 1.1 / 1.3;
  const MatmulModel model(profile);
  for (const std::int64_t n : {1024, 1500, 2048, 3000, 5000, 8192}) {
    for (const std::int64_t k : {512, 700, 2048, 5000}) {
      const double correction = model.estimate(key_of(2048, n, k)).correction;
      CHECK(correction >= 1.0);
      CHECK(correction <= 1.3 * (1 + 1e-6));
    }
  }
}

TEST_CASE("a layout without samples takes the forward's time times its factor") {
  Profile profile = profile_slower_than_bound(1.3);
  profile.model.matmul.nn_layout_factor = 1.1;
  profile.model.matmul.tn_layout_factor = 1.2;
  const MatmulModel model(profile);
  const double forward = model.estimate(key_of(2048, 3072, 3072)).time.value();
  CHECK(model.estimate(key_of(2048, 3072, 3072, 0)).time.value() == Approx(1.1 * forward));
  CHECK(model.estimate(key_of(2048, 3072, 3072, kTransposeA)).time.value() ==
        Approx(1.2 * forward));
  for (int i = 0; i < 20; ++i) {
    OpSample backward = profile.ops[static_cast<std::size_t>(i)];
    backward.key.variant = 0;
    profile.ops.push_back(backward);
  }
  CHECK(MatmulModel(profile).estimate(key_of(2048, 3072, 3072, 0)).time.value() ==
        Approx(forward).epsilon(0.02));
}

// Samples of small, memory-bound GEMMs.
Profile profile_with_samples() {
  Profile profile = test::constant_profile();
  for (std::int64_t n = 128; n <= 2560; n += 128) {
    const OpKey key = key_of(256, n, 256);
    profile.ops.push_back({key, 3 * MatmulModel(profile).bound(matmul_shape(key)).time});
  }
  return profile;
}

TEST_CASE("faster memory never slows an fp32 GEMM, with any bf16 samples") {
  Profile profile = profile_with_samples();
  OpKey wide = key_of(256, 1024, 256);
  wide.dtype = DType::kFloat32;
  double before = MatmulModel(profile).estimate(wide).time.value();
  CHECK(MatmulModel(profile).estimate(wide).correction == 1);
  CHECK(MatmulModel(profile).estimate(key_of(256, 1024, 256)).correction > 1.5);
  for (int i = 0; i < 5; ++i) {
    profile.device.memory_bandwidth = 1.5 * profile.device.memory_bandwidth;
    const double now = MatmulModel(profile).estimate(wide).time.value();
    CHECK(now <= before * (1 + 1e-12));
    before = now;
  }
}

TEST_CASE("faster memory never slows a GEMM near samples of memory-bound GEMMs") {
  Profile profile = test::constant_profile();
  profile.device.memory_bandwidth = profile.device.measured_bandwidth = BytesPerSecond(5e11);
  for (const std::int64_t k : {64, 256, 4096}) {
    profile.ops.push_back({key_of(4096, 4096, k), Seconds(1e-4 * (1.0 + 1e-3 * double(k)))});
  }
  for (const std::int64_t k : {128, 512, 8192}) {
    const OpKey key = key_of(4096, 2048, k);
    Profile faster = profile;
    faster.device.memory_bandwidth = BytesPerSecond(2e12);
    CHECK(MatmulModel(faster).estimate(key).time <= MatmulModel(profile).estimate(key).time);
  }
}

TEST_CASE("TF32 GEMMs have half of the bf16 rate on GPUs with bf16 units") {
  Profile profile = bare_profile();
  profile.device.vector_peak = 0.1 * profile.device.matmul_peak;
  OpKey wide = key_of(1280, 2560, 256);
  wide.dtype = DType::kFloat32;
  const auto time = [&](bool as_tf32) {
    return MatmulModel(profile, as_tf32).bound(matmul_shape(wide)).compute.value();
  };
  CHECK(time(false) == Approx(5 * time(true)));
  CHECK(time(true) ==
        Approx(2 * MatmulModel(profile).bound(matmul_shape(key_of(1280, 2560, 256))).time.value()));
  profile.device.matmul_dtype = DType::kFloat16;
  CHECK(time(true) == time(false));
}

}  // namespace
}  // namespace tpsim
