#include "sim/op_cost.h"

#include <fmt/format.h>

#include <algorithm>

namespace tpsim {
namespace {

// Norms, softmax, sums over rows or columns and scattered additions reach less of the memory
// bandwidth than kernels that stream.
bool is_reduction(OpKind kind) {
  switch (kind) {
    case OpKind::kNormForward:
    case OpKind::kNormBackward:
    case OpKind::kSoftmaxForward:
    case OpKind::kSoftmaxBackward:
    case OpKind::kColumnSum:
    case OpKind::kEmbeddingBackward:
    case OpKind::kPositionBackward:
    case OpKind::kVocabMax:
    case OpKind::kVocabSums: return true;
    default: return false;
  }
}

bool is_flash(OpKind kind) {
  return kind == OpKind::kFlashForward || kind == OpKind::kFlashBackward;
}

}  // namespace

std::string_view name_of(PriceSource source) {
  switch (source) {
    case PriceSource::kExact: return "exact";
    case PriceSource::kInterpolated: return "interpolated";
    case PriceSource::kModel: return "model";
  }
  return "?";
}

OpCostModel::OpCostModel(const Profile& profile)
    : profile_name_(profile.name),
      source_(profile.source),
      device_(profile.device),
      model_(profile.model),
      burst_clocks_(profile.burst_clocks),
      matmul_(profile) {
  exact_.reserve(profile.ops.size());
  for (const OpSample& sample : profile.ops) exact_.emplace(sample.key, sample.median);
}

// What turns a burst time into a sustained one: only the share that computes runs slower.
double OpCostModel::sustained(double compute_share) const {
  return burst_clocks_ ? 1 + (1 / model_.sustained_clock - 1) * compute_share : 1.0;
}

OpPrice OpCostModel::price(const OpRecord& op) const {
  if (op.key.kind == OpKind::kMatmul) return price_matmul(op.key);
  if (is_flash(op.key.kind)) return price_flash(op);
  return price_kernel(op);
}

OpPrice OpCostModel::price_matmul(const OpKey& key) const {
  const MatmulBound bound = matmul_.bound(matmul_shape(key));
  const double clock = sustained(bound.compute / (bound.compute + bound.memory));
  const auto exact = exact_.find(key);
  if (exact != exact_.end()) return {exact->second * clock, PriceSource::kExact};
  return {bound.time * (1 / model_.sustained_clock), PriceSource::kModel};
}

OpPrice OpCostModel::price_flash(const OpRecord& op) const {
  const auto exact = exact_.find(op.key);
  if (exact != exact_.end()) return {exact->second * sustained(1), PriceSource::kExact};
  const double efficiency = op.key.kind == OpKind::kFlashForward ? model_.flash_forward_efficiency
                                                                 : model_.flash_backward_efficiency;
  const Seconds compute = Flops(op.flops) / (efficiency * device_.matmul_peak);
  return {compute + model_.kernel_latency, PriceSource::kModel};
}

OpPrice OpCostModel::price_kernel(const OpRecord& op) const {
  const auto exact = exact_.find(op.key);
  if (exact != exact_.end()) return {exact->second, PriceSource::kExact};
  const double efficiency =
      is_reduction(op.key.kind) ? model_.reduction_efficiency : model_.streaming_efficiency;
  const Seconds memory = Bytes(op.bytes) / (efficiency * device_.memory_bandwidth);
  const Seconds compute = device_.vector_peak.value() > 0 ? Flops(op.flops) / device_.vector_peak
                                                          : Seconds();
  return {std::max(memory, compute) + model_.kernel_latency, PriceSource::kModel};
}

std::string OpCostModel::explain(const OpRecord& op) const {
  const OpPrice paid = price(op);
  return fmt::format("{}: {} ({}, profile {}: {})", to_string(op.key), to_string(paid.time),
                     name_of(paid.source), profile_name_, source_);
}

}  // namespace tpsim
