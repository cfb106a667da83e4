// Laws of the op cost model, for any profile.
#include "costs/op_cost.h"

#include <catch2/catch.hpp>

#include "kernels/recurrence_records.h"
#include "tests/sim/small_scenario.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

OpRecord product(std::int64_t m, std::int64_t n, std::int64_t k, std::uint8_t variant = kTransposeB,
                 std::int64_t batch = 1) {
  const double flops = 2.0 * static_cast<double>(batch * m * n) * static_cast<double>(k);
  return {{OpKind::kMatmul, DType::kBFloat16, variant, {batch, m, n, k}}, flops, 0, test::kTest};
}

OpRecord elementwise(std::int64_t elements) {
  return {{OpKind::kScale, DType::kBFloat16, 0, {elements}},
          1.0 * static_cast<double>(elements),
          4.0 * static_cast<double>(elements),
          test::kTest};
}

OpRecord flash(OpKind kind, std::int64_t seq, std::int64_t heads) {
  const double products = kind == OpKind::kFlashForward ? 2 : 5;
  const auto pairs = static_cast<double>(heads * seq) * static_cast<double>(seq + 1) / 2;
  return {{kind, DType::kBFloat16, 0, {1, seq, heads, heads, 128}},
          2 * products * pairs * 128,
          0,
          test::kTest};
}

Profile with_samples(std::vector<std::pair<OpRecord, Seconds>> samples) {
  Profile profile = test::constant_profile();
  for (const auto& [op, median] : samples) profile.ops.push_back({op.key, median});
  return profile;
}

double seconds(const Profile& profile, const OpRecord& op) {
  return OpCostModel(profile).price(op).time.value();
}

const std::vector<OpRecord> kSomeOps = {
    product(4096, 4096, 4096),
    product(17, 300, 5000),
    product(2048, 2048, 128, 2, 8),
    product(2048, 128, 2048, 0, 8),
    product(4096, 4096, 512, kTransposeA | kAccumulate | kOutputFloat32),
    flash(OpKind::kFlashForward, 2048, 16),
    flash(OpKind::kFlashBackward, 4096, 8),
    elementwise(1 << 24)};

TEST_CASE("an op found in the profile costs its measured time") {
  const Profile profile =
      with_samples({{product(512, 512, 512), Seconds(7e-6)}, {elementwise(1000), Seconds(2e-6)}});
  const OpCostModel model(profile);
  CHECK(model.price(product(512, 512, 512)).time == Seconds(7e-6));
  CHECK(model.price(product(512, 512, 512)).source == PriceSource::kExact);
  CHECK(model.price(elementwise(1000)).source == PriceSource::kExact);
  OpRecord half = product(512, 512, 512);
  half.key.dtype = DType::kFloat16;
  CHECK(model.price(half).time == Seconds(7e-6));
}

TEST_CASE("a faster device is never slower") {
  for (const OpRecord& op : kSomeOps) {
    const double before = seconds(test::constant_profile(), op);
    Profile memory = test::constant_profile();
    memory.device.memory_bandwidth *= 2;
    CHECK(seconds(memory, op) <= before);
    Profile peak = test::constant_profile();
    peak.device.matmul_peak *= 2;
    peak.device.vector_peak *= 2;
    CHECK(seconds(peak, op) <= before);
  }
}

TEST_CASE("more work never takes less time on a device without samples") {
  const Profile profile = test::constant_profile();
  for (const std::int64_t k : {64, 500, 512, 1024, 1100, 4096, 5000, 20000}) {
    CHECK(seconds(profile, product(2048, 3000, k)) <= seconds(profile, product(2048, 3000, 2 * k)));
  }
  for (const std::int64_t m : {1, 100, 128, 129, 1000, 4096}) {
    CHECK(seconds(profile, product(m, 1024, 1024)) <= seconds(profile, product(2 * m, 1024, 1024)));
    CHECK(seconds(profile, product(1024, m, 1024)) <= seconds(profile, product(1024, 2 * m, 1024)));
  }
  CHECK(seconds(profile, elementwise(1 << 20)) <= seconds(profile, elementwise(1 << 21)));
}

TEST_CASE("no GEMM exceeds the device's peak or its memory bandwidth") {
  const Profile profile = test::constant_profile();
  for (const std::int64_t m : {1, 64, 777, 4096}) {
    for (const std::int64_t k : {32, 1000, 8192}) {
      const OpRecord op = product(m, 2048, k);
      const double bytes = 2.0 * static_cast<double>(m * k + 2048 * k + m * 2048);
      CHECK(seconds(profile, op) >= op.flops / profile.device.matmul_peak.value());
      CHECK(seconds(profile, op) >= bytes / profile.device.memory_bandwidth.value());
    }
  }
}

TEST_CASE("interpolation does not exceed the rate of the best sample") {
  // Every sample runs at 90 % of the peak, so that predictions rise to 90 % and no further.
  std::vector<std::pair<OpRecord, Seconds>> samples;
  const double rate = 0.9 * test::constant_profile().device.matmul_peak.value();
  for (const std::int64_t k : {1024, 2048, 4096}) {
    const OpRecord op = product(4096, 4096, k);
    samples.emplace_back(op, Seconds(op.flops / rate));
  }
  const OpRecord between = product(4096, 4096, 3000);
  const double reached = between.flops / seconds(with_samples(samples), between);
  CHECK(reached <= rate * (1 + 1e-12));
  CHECK(reached > 0.85 * rate);
}

TEST_CASE("measured 8-bit GEMMs price only 8-bit GEMMs") {
  const auto narrow = [](std::int64_t k) {
    OpRecord op = product(4096, 4096, k);
    op.key.dtype = DType::kFloat8;
    return op;
  };
  const auto price = [](const std::vector<std::pair<OpRecord, Seconds>>& samples,
                        const OpRecord& op) {
    Profile profile = with_samples(samples);
    profile.device.fp8_peak = 2 * profile.device.matmul_peak;
    return OpCostModel(profile).price(op);
  };
  std::vector<std::pair<OpRecord, Seconds>> samples;
  for (std::int64_t k = 1024; k < 1024 + 16 * 64; k += 64) {
    samples.emplace_back(narrow(k), 1.5 * price({}, narrow(k)).time);
  }
  CHECK(price(samples, narrow(1024)).source == PriceSource::kExact);
  const OpRecord between = narrow(1024 + 32);
  CHECK(price(samples, between).time.value() ==
        Approx(1.5 * price({}, between).time.value()).epsilon(0.01));
  CHECK(price(samples, product(4096, 4096, 1024)).time ==
        price({}, product(4096, 4096, 1024)).time);
}

TEST_CASE("a kernel between two measured sizes costs a time between") {
  const Profile profile =
      with_samples({{elementwise(1000), Seconds(3e-6)}, {elementwise(9000), Seconds(5e-6)}});
  const OpPrice between = OpCostModel(profile).price(elementwise(3000));
  CHECK(between.source == PriceSource::kInterpolated);
  CHECK(between.time.value() == Approx(std::sqrt(3e-6 * 5e-6)));
  CHECK(seconds(profile, elementwise(10)) == Approx(3e-6));
  CHECK(seconds(profile, elementwise(18000)) == Approx(10e-6));
}

TEST_CASE("burst clocks are corrected for the power limit, and only for GEMMs") {
  Profile burst = test::constant_profile();
  burst.burst_clocks = true;
  burst.model.sustained_clock = 0.8;
  const OpRecord full = product(16384, 16384, 16384);
  const double ratio = seconds(burst, full) / seconds(test::constant_profile(), full);
  CHECK(ratio > 1.2);
  CHECK(ratio <= 1.25);
  const OpRecord starved = product(16, 4096, 4096);
  CHECK(seconds(burst, starved) == Approx(seconds(test::constant_profile(), starved)));
  CHECK(seconds(burst, elementwise(1 << 24)) ==
        seconds(test::constant_profile(), elementwise(1 << 24)));
}

TEST_CASE("a time measured at sustained clocks is not corrected") {
  const OpRecord op = product(4096, 4096, 4096);
  Profile profile = with_samples({{op, Seconds(100e-6)}});
  profile.burst_clocks = true;
  profile.model.sustained_clock = 0.5;
  CHECK(seconds(profile, op) > 100e-6);
  profile.sustained = {{op.key, Seconds(103e-6)}};
  CHECK(seconds(profile, op) == Approx(103e-6));
  CHECK_THAT(OpCostModel(profile).explain(op, 1), Catch::Contains("at sustained clocks"));
}

TEST_CASE("an explanation names the price, its origin and the source of its constants") {
  Profile profile = with_samples({{product(512, 512, 512), Seconds(7e-6)}});
  profile.model.source = "a datasheet";
  const OpCostModel model(profile);
  CHECK_THAT(model.explain(product(512, 512, 512), 1),
             Catch::Contains("exact") && Catch::Contains("tests"));
  CHECK_THAT(model.explain(elementwise(1000), 1), Catch::Contains("model") &&
                                                      Catch::Contains("a datasheet") &&
                                                      Catch::Contains("latency"));
  CHECK_THAT(model.explain(product(100, 100, 107), 1), Catch::Contains("16 bytes"));
}

}  // namespace
TEST_CASE("the FLOPs of a scan follow from its chunks and states, and halve with the heads") {
  const Label label{ModelPart::kRecurrence, "test"};
  const ScanShape shape{MixerKind::kMamba2, 1024, 16, 4, 32, 64, 128};
  const OpRecord forward = scan_record(OpKind::kScanForward, shape, DType::kBFloat16, label);
  // Two GEMMs per value with its state, causal pairs of a chunk, and scores of each group.
  const double values = 1024.0 * 16 * 64, keys = 1024.0 * 4 * 32;
  CHECK(forward.flops == Approx(4 * values * 32 + values * 128 + 2 * keys * 128));
  CHECK(state_elements(shape) == 8 * 16 * 32 * 64);
  const OpCostModel prices(test::constant_profile());
  for (const MixerKind kind : {MixerKind::kMamba2, MixerKind::kDeltaNet}) {
    for (const OpKind op : {OpKind::kScanForward, OpKind::kScanBackward}) {
      ScanShape whole = shape, half = shape;
      whole.kind = half.kind = kind;
      half.heads /= 2;
      half.key_heads /= 2;
      const OpRecord all = scan_record(op, whole, DType::kBFloat16, label);
      const OpRecord part = scan_record(op, half, DType::kBFloat16, label);
      CHECK(part.flops == Approx(all.flops / 2));
      CHECK(part.bytes == Approx(all.bytes / 2));
      CHECK(prices.price(part).time < prices.price(all).time);
      CHECK(prices.price(all).time < 2 * prices.price(part).time);
      CHECK_THAT(prices.explain(all, 1), Catch::Contains("kernels, each latency"));
    }
  }
}

}  // namespace tpsim
