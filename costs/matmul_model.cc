#include "costs/matmul_model.h"

#include <algorithm>
#include <cmath>

namespace tpsim {
namespace {

constexpr unsigned kLayoutBits = kTransposeA | kTransposeB;
constexpr unsigned kForwardLayout = kTransposeB;  // y = x W^T, the layout of published tables
constexpr std::size_t kEnoughSamples = 16;  // of a layout; with fewer, uses the forward layout's
constexpr double kAlignment = 16;           // bytes of a vector load
constexpr double kTileBytes = 64;           // bytes along k that a tile loads per step

// Split-K: each part of k has at least kLeastSplit elements. Partial sums are written and read in
// fp32. Half of this traffic is overlapped or cached (fitted on the A100, H100 and H200 tables).
constexpr std::int64_t kLeastSplit = 512;
constexpr double kSplitTraffic = 0.5 * 2 * sizeof(float);

constexpr std::size_t kFirstNarrowField = 4;

constexpr std::size_t kFirstFp32Field = 8;

std::size_t field_of(DType operands, unsigned layout) {
  if (operands == DType::kFloat32) return kFirstFp32Field + layout;
  if (!is_narrow(operands)) return layout;
  return kFirstNarrowField + static_cast<std::size_t>(operands) -
         static_cast<std::size_t>(DType::kFloat8);
}

// Returns the dtype whose samples are used if `operands` has too few. Block-scaled kernels have
// similar costs.
DType next_of_kind(DType operands) {
  switch (operands) {
    case DType::kMxFloat8: return DType::kFloat8Block;
    case DType::kFloat8Block:
    case DType::kNvFloat4: return DType::kFloat8;
    default: return DType::kBFloat16;
  }
}

// Returns the narrowest dtype that is wider than `operands`.
DType next_wider(DType operands) {
  return operands == DType::kNvFloat4 ? DType::kFloat8 : DType::kBFloat16;
}

double ceil_div(std::int64_t a, std::int64_t b) {
  const std::int64_t whole = (a + b - 1) / b;
  return static_cast<double>(whole);
}
double as_double(std::int64_t v) { return static_cast<double>(v); }

// Returns log2 of (waves / waves rounded up); 0 if the last wave is full.
double log_fill(double waves) { return std::log2(waves / std::ceil(waves)); }

double traffic_of(const MatmulShape& s) {
  return as_double(s.batch) * (as_double(s.m * s.k + s.n * s.k) * s.element_bytes +
                               as_double(s.m * s.n) * s.output_bytes);
}

// Axis lengths of the residual field: distances at which GEMMs are no longer similar. One set for
// all GPUs, fitted by leave-one-out cross-validation on thinned tables of A100, H100 and H200.
struct Lengths {
  static constexpr double area = 2.0, aspect = 4.0, depth = 1.7;  // log2
  static constexpr double fill = 0.06, half_fill = 0.15;          // log2
  static constexpr double orientation = 2.4;
};

}  // namespace

MatmulShape matmul_shape(const OpKey& key) {
  MatmulShape shape{.batch = dim_of(key, GemmDim::kBatch),
                    .m = dim_of(key, GemmDim::kM),
                    .n = dim_of(key, GemmDim::kN),
                    .k = dim_of(key, GemmDim::kK)};
  shape.operands = key.dtype;
  shape.element_bytes = bytes_per_element(key.dtype);
  shape.payload_bytes = key.dtype == DType::kNvFloat4 ? 0.5 : as_double(size_of(key.dtype));
  // GEMMs with operands of 8 bits or less write 16-bit outputs.
  const double c = (key.variant & kOutputFloat32) != 0 ? 4.0 : std::max(2.0, shape.payload_bytes);
  // Accumulation reads C too; half of this read is overlapped.
  shape.output_bytes = (key.variant & kAccumulate) != 0 ? 1.5 * c : c;
  const std::int64_t row_a = (key.variant & kTransposeA) != 0 ? shape.m : shape.k;
  const std::int64_t row_b = (key.variant & kTransposeB) != 0 ? shape.k : shape.n;
  shape.aligned = true;
  for (const std::int64_t row : {row_a, row_b, shape.n}) {
    shape.aligned =
        shape.aligned && std::fmod(as_double(row) * shape.payload_bytes, kAlignment) == 0;
  }
  return shape;
}

double flops_of(const MatmulShape& s) {
  return 2 * as_double(s.batch) * as_double(s.m) * as_double(s.n) * as_double(s.k);
}

MatmulModel::MatmulModel(const Profile& profile, bool as_tf32)
    : device_(profile.device), model_(profile.model), as_tf32_(as_tf32) {
  if (device_.measured_bandwidth <= BytesPerSecond()) {
    device_.measured_bandwidth = device_.memory_bandwidth;
  }
  choose_tiles();
  std::array<std::vector<FieldSample>, std::tuple_size_v<decltype(fields_)>> samples;
  for (const OpSample& sample : profile.ops) {
    if (sample.key.kind != OpKind::kMatmul || sample.median.value() <= 0) continue;
    const MatmulShape shape = matmul_shape(sample.key);
    const double log_ratio = std::log(sample.median / measured_bound(shape));
    samples[field_of(sample.key.dtype, sample.key.variant & kLayoutBits)].push_back(
        {point_of(shape), static_cast<float>(log_ratio)});
    const double seconds = sample.median.value();
    // A measured rate is achievable even if it exceeds the datasheet: see fastest_possible().
    best_flops_share_ =
        std::max(best_flops_share_, flops_of(shape) / seconds / peak_for(shape).value());
    best_traffic_share_ = std::max(
        best_traffic_share_, traffic_of(shape) / seconds / device_.measured_bandwidth.value());
  }
  for (std::size_t i = 0; i < fields_.size(); ++i)
    fields_[i] = ResidualField(std::move(samples[i]));
}

// Tiles: the largest, its halves, quarters and an eighth, in both orientations.
void MatmulModel::choose_tiles() {
  const std::int64_t a = model_.tile_m;
  const std::int64_t b = model_.tile_n;
  const std::array<std::array<std::int64_t, 2>, 8> extents = {{{a, b},
                                                               {b, a},
                                                               {a, b / 2},
                                                               {a / 2, b},
                                                               {b, a / 2},
                                                               {a / 2, b / 2},
                                                               {b / 2, a / 2},
                                                               {a / 2, b / 4}}};
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    Tile& tile = tiles_[i];
    tile.m = std::max<std::int64_t>(1, extents[i][0]);
    tile.n = std::max<std::int64_t>(1, extents[i][1]);
    tile.rate =
        std::pow(as_double(tile.m * tile.n) / as_double(a * b), model_.matmul.small_tile_exponent);
  }
}

// Dtypes that tensor cores do not support run on the vector units.
FlopsPerSecond MatmulModel::peak_for(const MatmulShape& s) const {
  const FlopsPerSecond peak = matrix_peak(device_, s.operands);
  if (peak > FlopsPerSecond() || is_narrow(s.operands)) return peak;
  // GPUs whose tensor cores lack bf16 (Volta) lack TF32 too.
  if (as_tf32_ && device_.matmul_dtype == DType::kBFloat16) return 0.5 * device_.matmul_peak;
  return device_.vector_peak.value() <= 0 ? device_.matmul_peak : device_.vector_peak;
}

double MatmulModel::waves_of(const MatmulShape& s, const Tile& tile) const {
  return as_double(s.batch) * ceil_div(s.m, tile.m) * ceil_div(s.n, tile.n) /
         as_double(device_.processors);
}

// Returns whether an unaligned batched GEMM runs on the vector units: its fitted rate is then below
// the vector peak. Such kernels have small tiles without padding, so their time is proportional to
// the FLOPs, without wave quantization.
bool MatmulModel::leaves_matrix_units(const MatmulShape& s) const {
  return !s.aligned && s.batch > 1 && fallback_rate() < device_.vector_peak;
}

FlopsPerSecond MatmulModel::fallback_rate() const {
  return model_.matmul.unaligned_batched_rate * model_.matmul_efficiency * device_.matmul_peak;
}

// Returns waves x (time of a tile + epilogue), plus the reduction over the parts of split-K.
// `tile_waves`: waves_of() without split-K.
Seconds MatmulModel::compute_time(const MatmulShape& s, const Tile& tile, double tile_waves,
                                  std::int64_t k_splits, const Speeds& speeds) const {
  const MatmulTuning& tuning = model_.matmul;
  const double exact = tile_waves * as_double(k_splits);
  // Wave quantization, softened by `wave_rounding` (split-K, stream-K).
  const double waves = exact < 1 ? 1 : exact + tuning.wave_rounding * (std::ceil(exact) - exact);
  // The kernel processes k in steps of kTileBytes. The last step is padded.
  const double step = kTileBytes / s.payload_bytes;
  const double depth = std::ceil(as_double(s.k) / as_double(k_splits) / step) * step;
  double rate = tile.rate * model_.matmul_efficiency;
  if (!s.aligned) rate *= s.batch > 1 ? tuning.unaligned_batched_rate : tuning.unaligned_rate;
  const double area = as_double(tile.m * tile.n) * as_double(device_.processors);
  const Seconds products = Flops(2 * area * depth) / (rate * speeds.peak);
  const Seconds epilogue = tuning.epilogue_exposed * Bytes(area * s.output_bytes) / speeds.memory;
  Seconds time = waves * (products + epilogue);
  if (k_splits > 1) {
    time += Bytes(kSplitTraffic * as_double(k_splits * s.batch * s.m * s.n)) / speeds.memory;
  }
  return time;
}

MatmulBound MatmulModel::bound(const MatmulShape& s) const {
  return bound(s, model_.matmul.traffic_efficiency * device_.memory_bandwidth);
}

MatmulBound MatmulModel::bound(const MatmulShape& s, BytesPerSecond memory) const {
  MatmulBound best;
  best.compute = Seconds(INFINITY);
  const Speeds speeds{peak_for(s), memory};
  const bool on_vector_units = leaves_matrix_units(s);
  for (const Tile& tile : tiles_) {
    const double waves = waves_of(s, tile);
    for (std::int64_t splits = 1; splits <= 16; splits *= 2) {
      // Split-K is only used if there are few tiles per SM and k is long.
      if (splits > 1 && (waves > 4 || s.k < splits * kLeastSplit)) break;
      const Seconds compute = on_vector_units ? Flops(flops_of(s)) / fallback_rate()
                                              : compute_time(s, tile, waves, splits, speeds);
      if (compute < best.compute) {
        best.compute = compute;
        best.tile_m = tile.m;
        best.tile_n = tile.n;
        best.k_splits = splits;
        best.waves = waves * as_double(splits);
      }
    }
  }
  best.traffic = Bytes(traffic_of(s)) / memory;
  best.time = model_.matmul_latency + std::max(best.compute, best.traffic);
  return best;
}

Seconds MatmulModel::measured_bound(const MatmulShape& s) const {
  return bound(s, model_.matmul.traffic_efficiency * device_.measured_bandwidth).time;
}

FieldPoint MatmulModel::point_of(const MatmulShape& s) const {
  const Tile whole{tiles_[0].m, tiles_[0].n};
  const Tile turned{tiles_[1].m, tiles_[1].n};
  const Tile half{tiles_[2].m, tiles_[2].n};
  const Tile half_turned{tiles_[2].n, tiles_[2].m};
  const double fill = log_fill(std::min(waves_of(s, whole), waves_of(s, turned)));
  const double half_fill = log_fill(std::min(waves_of(s, half), waves_of(s, half_turned)));
  const double log_m = std::log2(as_double(s.m));
  const double log_n = std::log2(as_double(s.n));
  const std::array<double, kFieldAxes> axes = {
      (std::log2(as_double(s.batch)) + log_m + log_n) / Lengths::area,
      std::abs(log_m - log_n) / Lengths::aspect,
      std::log2(as_double(s.k)) / Lengths::depth,
      fill / Lengths::fill,
      half_fill / Lengths::half_fill,
      (s.m > s.n ? 1 : 0) / Lengths::orientation};
  FieldPoint point{};
  std::transform(axes.begin(), axes.end(), point.begin(),
                 [](double axis) { return static_cast<float>(axis); });
  return point;
}

double MatmulModel::layout_factor(unsigned layout) const {
  const double nn = model_.matmul.nn_layout_factor;
  const double tn = model_.matmul.tn_layout_factor;
  switch (layout) {
    case 0: return nn;
    case kTransposeA: return tn;
    case kTransposeA | kTransposeB: return nn * tn;
    default: return 1;
  }
}

// Returns a lower bound of the time. The FLOP rate is at most matmul_efficiency or that of the best
// sample; the traffic rate is at most the memory bandwidth or that of the best sample.
Seconds MatmulModel::fastest_possible(const MatmulShape& s) const {
  const double flops_share = std::max(model_.matmul_efficiency, best_flops_share_);
  const BytesPerSecond memory =
      std::max(device_.memory_bandwidth, best_traffic_share_ * device_.measured_bandwidth);
  return std::max(Flops(flops_of(s)) / (flops_share * peak_for(s)), Bytes(traffic_of(s)) / memory);
}

bool MatmulModel::has_samples(DType operands) const {
  const std::size_t first = field_of(operands, 0);
  return std::any_of(fields_.begin() + static_cast<std::ptrdiff_t>(first),
                     fields_.begin() + static_cast<std::ptrdiff_t>(first + kFirstNarrowField),
                     [](const ResidualField& field) { return field.size() > 0; });
}

// Returns the dtype whose samples correct a GEMM. A dtype of 8 bits or less with too few samples
// uses the samples of a similar dtype, else those of bf16, whose GEMMs have the same tiles and
// waves.
DType MatmulModel::samples_for(DType operands, unsigned layout) const {
  while (is_narrow(operands) && fields_[field_of(operands, layout)].size() < kEnoughSamples) {
    operands = next_of_kind(operands);
  }
  // Profiles of CPUs only have fp32 samples; the CPU converts all operands to fp32.
  const bool is_half = operands == DType::kBFloat16 || operands == DType::kFloat16;
  return is_half && !has_samples(operands) ? DType::kFloat32 : operands;
}

// The samples' residuals refer to bounds with the memory bandwidth of the GPU that was measured. A
// GEMM near samples therefore keeps its ratio to them, and faster memory makes no GEMM slower: the
// profile's bandwidth only enters the bound that applies far from samples.
MatmulEstimate MatmulModel::estimate_alone(const OpKey& key) const {
  const MatmulShape shape = matmul_shape(key);
  const unsigned layout = key.variant & kLayoutBits;
  MatmulEstimate estimate;
  estimate.samples_of = samples_for(key.dtype, layout);
  std::size_t field = field_of(estimate.samples_of, layout);
  const DType kind = is_narrow(estimate.samples_of) ? DType::kBFloat16 : estimate.samples_of;
  const std::size_t forward = field_of(kind, kForwardLayout);
  const bool is_fp32_alone = kind == DType::kFloat32 && !has_samples(kind);
  if (fields_[field].size() < kEnoughSamples && (fields_[forward].size() > 0 || is_fp32_alone)) {
    estimate.layout_factor = layout_factor(layout);
    field = forward;
  }
  estimate.bound = bound(shape);
  const Seconds anchor = measured_bound(shape);
  const FieldValue around =
      fields_[field].at(point_of(shape), std::log(estimate.bound.time / anchor));
  estimate.correction = std::exp(around.log_ratio) * (anchor / estimate.bound.time);
  estimate.near_samples = around.weight >= ResidualField::kNearWeight;
  estimate.time = estimate.layout_factor *
                  std::max(fastest_possible(shape), estimate.bound.time * estimate.correction);
  return estimate;
}

Seconds MatmulModel::split_sum_time(const OpKey& key) const {
  if ((key.variant & kSplitSums) == 0) return {};
  const MatmulShape shape = matmul_shape(key);
  return model_.matmul.split_sum_cost * Flops(flops_of(shape)) /
         (model_.matmul_efficiency * peak_for(shape));
}

MatmulEstimate MatmulModel::estimate(const OpKey& key) const {
  MatmulEstimate estimate = estimate_alone(key);
  if (!is_narrow(key.dtype)) return estimate;
  estimate.split_sums = split_sum_time(key);
  estimate.time += estimate.split_sums;
  OpKey wider = key;
  wider.dtype = next_wider(key.dtype);
  if (is_narrow(wider.dtype) && matrix_peak(device_, wider.dtype) <= FlopsPerSecond()) {
    wider.dtype = next_wider(wider.dtype);
  }
  const Seconds of_wider = this->estimate(wider).time;
  const bool is_measured = estimate.near_samples && estimate.samples_of == key.dtype;
  if (is_measured) {
    if (estimate.time > of_wider) estimate.wider = of_wider;
  } else {
    estimate.time = std::min(estimate.time, of_wider);
  }
  return estimate;
}

MatmulEstimate MatmulModel::estimate_grouped(const OpKey& key) const {
  const MatmulShape each = matmul_shape(key);
  OpKey all = key;
  dim_of(all, GemmDim::kBatch) = 1;
  const bool sums_tokens = (key.variant & (kTransposeA | kSumsRows)) != 0;  // wgrad
  all.variant &= static_cast<std::uint8_t>(~kSumsRows);
  dim_of(all, sums_tokens ? GemmDim::kK : GemmDim::kM) *= each.batch;
  MatmulEstimate estimate = this->estimate(all);
  const double matrix = sums_tokens ? as_double(each.m * each.n) * each.output_bytes
                                    : as_double(each.n * each.k) * each.element_bytes;
  estimate.streamed = Bytes(as_double(each.batch - 1) * matrix) /
                      (model_.streaming_efficiency * device_.memory_bandwidth);
  estimate.time += estimate.streamed;
  return estimate;
}

std::size_t MatmulModel::samples() const {
  std::size_t count = 0;
  for (const ResidualField& field : fields_) count += field.size();
  return count;
}

}  // namespace tpsim
