#include "profiler/device_fit.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "kernels/checks/op_cases.h"
#include "kernels/meta/meta_device.h"
#include "profiler/samples.h"

namespace tpsim {
namespace {

constexpr std::int64_t kProductExtent = 1024;
constexpr std::int64_t kCopiedElements = 8 << 20;
// Sizes for a GPU. The GEMM's result has many tiles per SM (8448 rows on Hopper's 132 SMs). The
// copy exceeds the caches (half a gigabyte of an H200's memory).
constexpr std::int64_t kGpuRowsPerProcessor = 64;
constexpr double kGpuCopiedShare = 1.0 / 280;
// Samples of GEMMs and memory passes of at least this size measure rates. Smaller ones measure
// latencies.
constexpr double kLargeFlops = 1e8;
constexpr double kLargeBytes = 8e6;

// The median time of a sampled op, with its FLOPs and bytes.
struct Rated {
  OpKey key;
  double seconds, flops, bytes;
};

std::vector<Rated> rated(const std::vector<OpRecord>& records,
                         const std::vector<OpSample>& samples) {
  std::unordered_map<OpKey, const OpRecord*> by_key;
  for (const OpRecord& record : records) by_key[record.key] = &record;
  std::vector<Rated> all;
  for (const OpSample& sample : samples) {
    const auto found = by_key.find(sample.key);
    if (found == by_key.end() || sample.median.value() <= 0) continue;
    all.push_back({sample.key, sample.median.value(), found->second->flops, found->second->bytes});
  }
  return all;
}

// Returns the median of measure(sample) over the samples that match; `otherwise` if none matches.
template <class Matches, class Measure>
double median_over(const std::vector<Rated>& all, Matches matches, Measure measure,
                   double otherwise) {
  std::vector<double> values;
  for (const Rated& one : all) {
    if (matches(one)) values.push_back(measure(one));
  }
  return values.empty() ? otherwise : median_and_spread(values).median;
}

template <class Matches, class Measure>
double best_over(const std::vector<Rated>& all, Matches matches, Measure measure,
                 double otherwise) {
  double best = otherwise;
  for (const Rated& one : all) {
    if (matches(one)) best = std::max(best, measure(one));
  }
  return best;
}

double share(double value) { return std::clamp(value, 1e-6, 1.5); }

double flop_rate(const Rated& one) { return one.flops / one.seconds; }
double byte_rate(const Rated& one) { return one.bytes / one.seconds; }
bool is_product(const Rated& one) { return one.key.kind == OpKind::kMatmul; }
bool is_large_product(const Rated& one) { return is_product(one) && one.flops >= kLargeFlops; }
bool passes_over_memory(const Rated& one) {
  return !runs_on_matrix_units(one.key.kind) && one.bytes >= kLargeBytes;
}

void fit_rates(const std::vector<Rated>& all, DeviceFacts& device) {
  constexpr double kAtLeast = 1;  // keeps rates above zero
  device.matmul_peak = FlopsPerSecond(best_over(all, is_product, flop_rate, kAtLeast));
  device.vector_peak = FlopsPerSecond(best_over(
      all, [](const Rated& one) { return !runs_on_matrix_units(one.key.kind); }, flop_rate,
      kAtLeast));
  const auto copies = [](const Rated& one) {
    return one.key.kind == OpKind::kCopy && one.bytes >= kLargeBytes;
  };
  // On a busy machine there may be no undisturbed large copy. The fallback is the fastest pass of
  // any size, which overestimates the bandwidth if caches hold its operands.
  const double of_any_pass = best_over(
      all, [](const Rated& one) { return !runs_on_matrix_units(one.key.kind); }, byte_rate,
      kAtLeast);
  const double of_copies = best_over(all, copies, byte_rate, 0);
  device.memory_bandwidth = BytesPerSecond(of_copies > 0 ? of_copies : of_any_pass);
}

void fit_latencies(const std::vector<Rated>& all, DeviceModel& model) {
  double product = 1e-6, kernel = 1e-6;
  for (const Rated& one : all) {
    double& least = is_product(one) ? product : kernel;
    least = std::min(least, one.seconds);
  }
  model.matmul_latency = Seconds(product);
  model.kernel_latency = Seconds(kernel);
}

// Returns the rate of large GEMMs at sustained clocks over their rate in bursts, at most 1; 1
// without sustained samples.
double sustained_clock(const std::vector<Rated>& burst, const std::vector<OpSample>& sustained) {
  std::unordered_map<OpKey, double> hot;
  for (const OpSample& sample : sustained) hot[sample.key] = sample.median.value();
  const double ratio = median_over(
      burst, [&](const Rated& one) { return is_large_product(one) && hot.contains(one.key); },
      [&](const Rated& one) { return one.seconds / hot[one.key]; }, 1.0);
  return std::min(1.0, share(ratio));
}

}  // namespace

std::vector<OpRecord> probe_ops(DType dtype, const DeviceFacts& facts) {
  constexpr std::int64_t kWhole = 1 << 20;
  const double share = kGpuCopiedShare * facts.memory.value() / 4 / kWhole;
  const std::int64_t n =
      facts.asynchronous ? kGpuRowsPerProcessor * facts.processors : kProductExtent;
  const std::int64_t copied = facts.asynchronous
                                  ? kWhole * std::max<std::int64_t>(1, std::llround(share))
                                  : kCopiedElements;
  MetaDevice device;
  std::vector<OpRecord> probes;
  for (const OpKey& key : {OpKey{OpKind::kMatmul, dtype, kTransposeB, {1, n, n, n, 0}},
                           OpKey{OpKind::kMatmul, dtype, kTransposeB, {1, 8, 8, 8, 0}},
                           OpKey{OpKind::kCopy, DType::kFloat32, 0, {copied}},
                           OpKey{OpKind::kFill, DType::kFloat32, 0, {8}}}) {
    probes.push_back(describe(make_op(device, key, 0)));
  }
  return probes;
}

void fit_device(const std::vector<OpRecord>& records, Profile& profile) {
  const std::vector<Rated> all = rated(records, profile.ops);
  DeviceFacts& device = profile.device;
  DeviceModel& model = profile.model;
  fit_rates(all, device);
  fit_latencies(all, model);
  const double peak = device.matmul_peak.value();
  const double bandwidth = device.memory_bandwidth.value();
  const auto of_peak = [&](const Rated& one) { return flop_rate(one) / peak; };
  const auto of_bandwidth = [&](const Rated& one) { return byte_rate(one) / bandwidth; };
  model.source = "fitted to the samples of this profile";
  model.provenance = Provenance::kMeasuredHere;
  model.matmul_efficiency = share(median_over(all, is_large_product, of_peak, 0.9));
  if (!device.asynchronous) {
    // A CPU works through the tiles of a GEMM one after the other, without wave quantization.
    model.tile_m = model.tile_n = 64;
    model.matmul.small_tile_exponent = 0;
    model.matmul.epilogue_exposed = 0;
    model.matmul.traffic_efficiency = 1;
  }
  model.sustained_clock = sustained_clock(all, profile.sustained);
  profile.burst_clocks = !profile.sustained.empty();
  model.streaming_efficiency = share(median_over(
      all, [](const Rated& one) { return passes_over_memory(one) && !is_reduction(one.key.kind); },
      of_bandwidth, 0.8));
  model.reduction_efficiency = share(median_over(
      all, [](const Rated& one) { return passes_over_memory(one) && is_reduction(one.key.kind); },
      of_bandwidth, 0.7));
  const auto flash = [&](OpKind kind, double otherwise) {
    return share(median_over(
        all, [&](const Rated& one) { return one.key.kind == kind; }, of_peak, otherwise));
  };
  model.flash_forward_efficiency = flash(OpKind::kFlashForward, 0.5);
  model.flash_backward_efficiency = flash(OpKind::kFlashBackward, 0.4);
}

}  // namespace tpsim
