#include "costs/op_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/program/op_dims.h"
#include "costs/scan_model.h"

namespace tpsim {
namespace {

// Exponent 8 of the formula in the header: reduced clocks under load.
constexpr double kPowerExponent = 8;

// Whether clocks were read while the samples were timed.
bool has_clocks(const Profile& profile) {
  const RuntimeFacts& runtime = profile.runtime;
  return runtime.sustained_mhz > 0 && runtime.burst_mhz > runtime.sustained_mhz;
}

// Returns the clock that GEMMs alone sustain, relative to the clock of short work. Samples of other
// profiles than those of short bursts were timed at the clocks of training.
double clock_of_gemms(const Profile& profile) {
  if (!profile.burst_clocks) return 1;
  const RuntimeFacts& runtime = profile.runtime;
  return has_clocks(profile) ? runtime.sustained_mhz / runtime.burst_mhz
                             : profile.model.sustained_clock;
}

// fp16 and bf16 have the same rates and sizes, so both share one key.
OpKey canonical(OpKey key) {
  if (key.dtype == DType::kFloat16) key.dtype = DType::kBFloat16;
  const bool names_a_dtype = key.kind == OpKind::kAdd || key.kind == OpKind::kCast ||
                             key.kind == OpKind::kAdamW || key.kind == OpKind::kAxpby;
  const int reads = key.kind == OpKind::kAxpby ? key.variant & kReadsY : 0;
  if (names_a_dtype && (key.variant ^ reads) == static_cast<int>(DType::kFloat16)) {
    key.variant = static_cast<std::uint8_t>(static_cast<int>(DType::kBFloat16) | reads);
  }
  return key;
}

std::vector<OpSample> memory_bound_samples(std::vector<OpSample> samples) {
  // GEMMs and attention have separate models, since size alone does not determine their time.
  std::erase_if(samples,
                [](const OpSample& sample) { return runs_on_matrix_units(sample.key.kind); });
  for (OpSample& sample : samples) sample.key = canonical(sample.key);
  return samples;
}

}  // namespace

OpCostModel::OpCostModel(const Profile& profile, Fp32Matmul fp32, double site_clock)
    : source_(fmt::format("profile {}, {}", profile.name, profile.source)),
      device_(profile.device),
      model_(profile.model),
      burst_clocks_(profile.burst_clocks),
      has_clocks_(has_clocks(profile)),
      gemm_clock_(std::min(1.0, site_clock * clock_of_gemms(profile))),
      matmul_(profile, fp32 == Fp32Matmul::kTf32),
      flash_(profile),
      kernels_(memory_bound_samples(profile.ops)) {
  for (double* clock : {&model_.sustained_clock, &model_.narrow_sustained_clock}) {
    *clock = std::min(1.0, site_clock * *clock);
  }
  exact_.reserve(profile.ops.size());
  for (const OpSample& sample : profile.ops) exact_.emplace(canonical(sample.key), sample.median);
  for (const OpSample& sample : profile.sustained) {
    sustained_.emplace(canonical(sample.key), sample.median);
  }
}

OpPrice OpCostModel::price(const OpRecord& op) const {
  OpPrice price = burst_price(op);
  const auto measured = sustained_.find(canonical(op.key));
  const bool is_measured = measured != sustained_.end();
  if (is_measured) price.source = PriceSource::kExact;
  if (op.key.kind == OpKind::kMatmul) {
    const Seconds burst = price.time;
    price.clock = clock_alone(op);
    price.drop = 1 - price.clock;
    price.time = is_measured ? measured->second : slowdown(op, burst) * burst;
    // Sustained clocks of published profiles were chosen from whole steps, so GEMMs of a step are
    // not faster.
    price.least = has_clocks_ ? std::min(price.time, burst) : price.time;
    return price;
  }
  if (is_measured) price.time = measured->second;
  price.least = price.time;
  if (is_flash(op.key.kind)) {
    price.clock = 1;
    price.drop = kAttentionPower * (1 - gemm_clock_);
  }
  return price;
}

double OpCostModel::attention_speed(AttentionKernel kernel) const {
  // Forward and backward of FlexAttention over FlashAttention 2: 1.45 and 0.87 on an A6000
  // (pytorch/pytorch pull request 137036). Triton generates code for newer matrix units, which
  // FlashAttention 2 does not use: FlashAttention 4 takes 1/2.4 and 1/2.1 of its time on GB200
  // (pytorch.org, FlexAttention with a FlashAttention-4 backend, 2026).
  constexpr double kFlexOverFlash2 = 0.9, kFlexOverBest = 0.46;
  switch (kernel) {
    case AttentionKernel::kFlex:
      return std::max(kFlexOverFlash2 * model_.attention_speeds.flash2, kFlexOverBest);
    case AttentionKernel::kFlash1: return model_.attention_speeds.flash1;
    case AttentionKernel::kFlash2: return model_.attention_speeds.flash2;
    case AttentionKernel::kFlash3: return model_.attention_speeds.flash3;
    case AttentionKernel::kCudnn: return model_.attention_speeds.cudnn;
    case AttentionKernel::kBest:
    case AttentionKernel::kTorch:
    case AttentionKernel::kFusedSoftmax:
    case AttentionKernel::kMegatron: break;
  }
  return 1;
}

double OpCostModel::streaming_cost(OpKind kind) const {
  return memory_efficiency(kind) / model_.streaming_efficiency;
}

OpPrice OpCostModel::burst_price(const OpRecord& op) const {
  OpKey key = canonical(op.key);
  if (key.kind == OpKind::kMatmul) {
    key.variant &= static_cast<std::uint8_t>(~(kSplitSums | kSumsRows));
  }
  const auto exact = exact_.find(key);
  if (exact != exact_.end()) {
    const bool is_product = key.kind == OpKind::kMatmul;
    const Seconds sums = is_product ? matmul_.split_sum_time(op.key) : Seconds();
    return {exact->second + sums, PriceSource::kExact};
  }
  if (op.key.kind == OpKind::kMatmul) {
    const MatmulEstimate estimate = matmul_estimate(op);
    return {estimate.time,
            estimate.near_samples ? PriceSource::kInterpolated : PriceSource::kModel};
  }
  if (is_flash(op.key.kind)) {
    const FlashEstimate estimate = flash_.estimate(op);
    return {estimate.time,
            estimate.near_samples ? PriceSource::kInterpolated : PriceSource::kModel};
  }
  if (is_scan(op.key.kind)) return {scan_time(op.key, device_, model_), PriceSource::kModel};
  if (is_planned_product(op.key)) {
    return {planned_time(op, device_, model_), PriceSource::kModel};
  }
  return kernel_price(op);
}

MatmulEstimate OpCostModel::matmul_estimate(const OpRecord& op) const {
  return is_grouped_product(op) ? matmul_.estimate_grouped(op.key) : matmul_.estimate(op.key);
}

double OpCostModel::memory_efficiency(OpKind kind) const {
  return is_reduction(kind) ? model_.reduction_efficiency : model_.streaming_efficiency;
}

OpPrice OpCostModel::kernel_price(const OpRecord& op) const {
  if (const auto measured = kernels_.time(canonical(op.key))) {
    return {*measured, PriceSource::kInterpolated};
  }
  const Seconds memory =
      Bytes(op.bytes) / (memory_efficiency(op.key.kind) * device_.memory_bandwidth);
  const Seconds compute =
      device_.vector_peak.value() > 0 ? Flops(op.flops) / device_.vector_peak : Seconds();
  return {model_.kernel_latency + std::max(memory, compute), PriceSource::kModel};
}

bool OpCostModel::has_narrow_clock(const OpRecord& op) const {
  return is_narrow(op.key.dtype) && model_.narrow_sustained_clock > 0;
}

double OpCostModel::lowest_clock() const {
  if (!burst_clocks_ || model_.narrow_sustained_clock <= 0) return gemm_clock_;
  return std::min(gemm_clock_, model_.narrow_sustained_clock);
}

double OpCostModel::clock_alone(const OpRecord& op) const {
  if (!burst_clocks_) return 1;
  return has_narrow_clock(op) ? model_.narrow_sustained_clock : gemm_clock_;
}

double OpCostModel::slowdown(const OpRecord& op, Seconds burst) const {
  if (!burst_clocks_) return 1;
  const FlopsPerSecond peak =
      is_narrow(op.key.dtype) ? matrix_peak(device_, op.key.dtype) : device_.matmul_peak;
  const Seconds at_full_rate = Flops(op.flops) / (model_.matmul_efficiency * peak);
  // A sample may be faster than matmul_efficiency, which was fitted to all samples.
  const double u = std::min(1.0, at_full_rate / burst);
  const double clock =
      has_narrow_clock(op) ? model_.narrow_sustained_clock : model_.sustained_clock;
  const double limit = std::pow(clock, -kPowerExponent) - 1;
  return std::pow(1 + std::pow(u, kPowerExponent) * limit, 1 / kPowerExponent);
}

std::string OpCostModel::explain(const OpRecord& op, double clock) const {
  const OpPrice paid = price(op);
  const OpPrice burst = burst_price(op);
  std::string how;
  if (paid.source == PriceSource::kExact) {
    how = fmt::format("measured {}", to_string(burst.time));
    OpRecord wide = op;
    wide.key.dtype = DType::kBFloat16;
    const bool is_narrow_product = op.key.kind == OpKind::kMatmul && is_narrow(op.key.dtype);
    if (is_narrow_product && price(wide).time < paid.time) {
      how += fmt::format(", although bf16 takes {}", to_string(price(wide).time));
    }
  } else if (op.key.kind == OpKind::kMatmul) {
    how = explain_matmul(op);
  } else if (is_flash(op.key.kind)) {
    how = explain_flash(op);
  } else if (is_scan(op.key.kind)) {
    how = explain_scan(op, device_, model_);
  } else if (is_planned_product(op.key)) {
    how = explain_planned(op, device_, model_);
  } else {
    how = explain_kernel(op);
  }
  std::string text = fmt::format("{}: {} ({}) = {}", to_string(op.key), to_string(paid.at(clock)),
                                 name_of(paid.source), how);
  if (sustained_.contains(canonical(op.key))) {
    text += fmt::format(", {} at sustained clocks", to_string(paid.time));
  } else if (paid.time > burst.time) {
    text +=
        fmt::format(", x {:.3f} from burst to sustained clocks ({} {:.2f})", paid.time / burst.time,
                    has_narrow_clock(op) ? "narrow_sustained_clock" : "sustained_clock",
                    has_narrow_clock(op) ? model_.narrow_sustained_clock : model_.sustained_clock);
  }
  if (paid.time > Seconds() && paid.at(clock) != paid.time) {
    text +=
        fmt::format(", x {:.3f} at the step's clock of {:.2f}", paid.at(clock) / paid.time, clock);
  }
  return text + "; " + (paid.source == PriceSource::kModel ? model_.source : source_);
}

std::string OpCostModel::explain_matmul(const OpRecord& op) const {
  const MatmulEstimate e = matmul_estimate(op);
  std::string text = fmt::format(
      "(latency {} + max(compute {}, traffic {})) x {:.3f} from measured GEMMs of similar shapes; "
      "{:.2f} waves of {}x{} tiles over {} SMs or cores",
      to_string(model_.matmul_latency), to_string(e.bound.compute), to_string(e.bound.traffic),
      e.correction, e.bound.waves, e.bound.tile_m, e.bound.tile_n, device_.processors);
  if (e.bound.k_splits > 1) text += fmt::format(", split-K in {} parts", e.bound.k_splits);
  if (e.layout_factor != 1) text += fmt::format(", x {:.3f} for the layout", e.layout_factor);
  if (!matmul_shape(op.key).aligned) text += ", rows are not multiples of 16 bytes";
  if (e.split_sums > Seconds()) {
    text +=
        fmt::format(", + {} to add partial sums outside the tensor cores", to_string(e.split_sums));
  }
  if (e.streamed > Seconds()) {
    text += fmt::format(
        ", one GEMM over the tokens of all experts; + {} to read the matrices of {} more experts",
        to_string(e.streamed), dim_of(op.key, GemmDim::kBatch) - 1);
  }
  if (e.wider > Seconds()) {
    text +=
        fmt::format(", as measured, although the next wider dtype takes {}", to_string(e.wider));
  }
  return text;
}

std::string OpCostModel::explain_flash(const OpRecord& op) const {
  const FlashEstimate e = flash_.estimate(op);
  return fmt::format(
      "bound {} x {:.3f} from measured ops of similar shapes, {:.3g} FLOPs at {} peak",
      to_string(e.bound), e.correction, op.flops, to_string(device_.matmul_peak));
}

std::string OpCostModel::explain_kernel(const OpRecord& op) const {
  if (kernels_.time(canonical(op.key))) return "interpolated between measured sizes of this kernel";
  return fmt::format("latency {} + max({} / ({:.2f} x {}), {:.3g} FLOPs / {})",
                     to_string(model_.kernel_latency), to_string(Bytes(op.bytes)),
                     memory_efficiency(op.key.kind), to_string(device_.memory_bandwidth), op.flops,
                     to_string(device_.vector_peak));
}

}  // namespace tpsim
