#include "costs/flash_model.h"

#include <algorithm>
#include <cmath>

#include "core/program/op_dims.h"

namespace tpsim {
namespace {

constexpr double kRampTokens = 600;
constexpr double kHeadDimExponent = 0.35;
constexpr double kReferenceHeadDim = 128;
constexpr std::int64_t kBlockQueries = 128;
constexpr double kBlockRate = 1.25;  // FLOP rate of one busy SM over peak / number of SMs
constexpr Seconds kFlashLatency(20e-6);

// GEMMs in the two passes: QK', PV; and QK', dV, dP, dQ, dK.
constexpr double kForwardProducts = 2;
constexpr double kBackwardProducts = 5;

struct AttentionExtents {
  double batch, queries, heads, kv_heads, head_dim, keys;
  // Length of a causal sequence with keys = queries whose queries see as many keys on average as
  // the queries of this op.
  double length() const { return 2 * keys - queries; }
};

AttentionExtents extents_of(const OpKey& key) {
  const auto [batch, queries, heads, kv_heads, head_dim, keys, reach, value_dim] = key.dims;
  const double q = static_cast<double>(queries), k = static_cast<double>(std::max(keys, queries));
  // Mean of head_dim and the width of values.
  const double width = static_cast<double>(value_dim > 0 ? head_dim + value_dim : 2 * head_dim) / 2;
  AttentionExtents extents{static_cast<double>(batch),    q,     static_cast<double>(heads),
                           static_cast<double>(kv_heads), width, k};
  if (reach > 0 && reach < keys) {
    const bool chunked = (key.variant & kChunked) != 0;
    const auto r = static_cast<double>(reach);
    // Sets `keys` so that (length() + 1) / 2 is the mean number of visible keys per query. The
    // first queries of a sequence see less than a full window.
    extents.keys = (q - 1) / 2 + (chunked ? (r + 1) / 2 : r - (k > q ? 0 : r * (r - 1) / (2 * q)));
  }
  return extents;
}

// Two FLOPs per element of head_dim and visible query-key pair. A causal query sees (2 keys -
// queries + 1) / 2 keys on average.
double forward_flops(const AttentionExtents& a) {
  return kForwardProducts * a.batch * a.heads * a.queries * (a.length() + 1) * a.head_dim;
}

double blocks_of(const AttentionExtents& a) {
  return a.batch * a.heads * std::ceil(a.queries / static_cast<double>(kBlockQueries));
}

// Returns the coordinates of an op in the residual field. The divisors are the length scales
// of the axes, fitted by leave-one-out cross-validation on the A100 and H200 tables.
FieldPoint point_of(const OpKey& key, std::int64_t processors) {
  const AttentionExtents a = extents_of(key);
  const double waves = blocks_of(a) / static_cast<double>(processors);
  return {static_cast<float>(std::log2(a.batch * a.heads * a.queries) / 1.5),
          static_cast<float>(std::log2(a.length()) / 1.4),
          static_cast<float>(std::log2(a.heads / a.kv_heads) / 0.8),
          static_cast<float>(std::log2(a.head_dim) / 0.5),
          static_cast<float>(std::log2(waves / std::ceil(waves)) / 1.6),
          static_cast<float>(std::log2(a.heads) / 1.7)};
}

bool is_backward(const OpKey& key) { return key.kind == OpKind::kFlashBackward; }

constexpr std::size_t kBackward = 1, kOwnWidth = 2;

std::size_t field_of(const OpKey& key) {
  const bool own_width = dim_of(key, FlashDim::kValueWidth) > 0;
  return (is_backward(key) ? kBackward : 0) + (own_width ? kOwnWidth : 0);
}

}  // namespace

FlashModel::FlashModel(const Profile& profile) : device_(profile.device), model_(profile.model) {
  std::array<std::vector<FieldSample>, std::tuple_size_v<decltype(fields_)>> samples;
  for (const OpSample& sample : profile.ops) {
    const OpKey& key = sample.key;
    if (!is_flash(key.kind) || sample.median.value() <= 0) continue;
    samples[field_of(key)].push_back({point_of(key, device_.processors),
                                      static_cast<float>(std::log(sample.median / bound(key)))});
    if (is_backward(key)) continue;
    const Seconds at_peak = Flops(forward_flops(extents_of(key))) / device_.matmul_peak;
    best_flops_share_ = std::max(best_flops_share_, at_peak / sample.median);
  }
  for (std::size_t i = 0; i < fields_.size(); ++i)
    fields_[i] = ResidualField(std::move(samples[i]));
}

Seconds FlashModel::forward_bound(const OpKey& key) const {
  const AttentionExtents a = extents_of(key);
  const double rate = model_.flash_forward_efficiency *
                      std::pow(a.head_dim / kReferenceHeadDim, kHeadDimExponent) * a.length() /
                      (a.length() + kRampTokens);
  const Seconds compute = Flops(forward_flops(a)) / (rate * device_.matmul_peak);
  // The last block of a head sees all keys and runs on a single SM.
  const double longest =
      2 * kForwardProducts * static_cast<double>(kBlockQueries) * a.keys * a.head_dim;
  const Seconds block =
      Flops(longest) * static_cast<double>(device_.processors) / (kBlockRate * device_.matmul_peak);
  const Bytes traffic(2 * a.batch * a.head_dim * (a.queries * a.heads + a.keys * a.kv_heads) *
                      static_cast<double>(size_of(key.dtype)));
  const Seconds memory = traffic / (model_.streaming_efficiency * device_.memory_bandwidth);
  return kFlashLatency + std::max({compute, block, memory});
}

Seconds FlashModel::bound(const OpKey& key) const {
  const Seconds forward = forward_bound(key);
  if (!is_backward(key)) return forward;
  return kBackwardProducts / kForwardProducts * model_.flash_forward_efficiency /
         model_.flash_backward_efficiency * forward;
}

// Returns the samples that correct an op. First choice: the same pass (forward or backward) and the
// same kind of value width (equal to head_dim or not). Second choice: the forward pass with the
// same kind of value width. Third choice: the same pass with value_dim = head_dim.
const ResidualField& FlashModel::field_for(const OpKey& key) const {
  const std::size_t own = field_of(key);
  for (const std::size_t field : {own, own & kOwnWidth, own & kBackward}) {
    if (fields_[field].size() > 0) return fields_[field];
  }
  return fields_[0];
}

FlashEstimate FlashModel::estimate(const OpRecord& op) const {
  const FieldValue around = field_for(op.key).at(point_of(op.key, device_.processors));
  FlashEstimate estimate;
  estimate.bound = bound(op.key);
  estimate.correction = std::exp(around.log_ratio);
  estimate.near_samples = around.weight >= ResidualField::kNearWeight;
  // Caps the FLOP rate of the corrected estimate at the rate of the fastest sample, or at
  // flash_forward_efficiency if this is higher.
  const double share = std::max(model_.flash_forward_efficiency, best_flops_share_);
  estimate.time = std::max(estimate.bound * estimate.correction,
                           Flops(op.flops) / (share * device_.matmul_peak));
  return estimate;
}

}  // namespace tpsim
