#include "costs/kernel_table.h"

#include <algorithm>
#include <cmath>

#include "core/program/op_dims.h"

namespace tpsim {
namespace {

OpKey family_of(const OpKey& key) { return {key.kind, key.dtype, key.variant, {}}; }

}  // namespace

double elements_of(const OpKey& key) {
  switch (key.kind) {
    case OpKind::kRouteForward:
    case OpKind::kRouteBackward: return product_of(key, RowDim::kRows, RowDim::kCols);  // logits
    case OpKind::kPermuteTokens: return slot_elements(key);
    case OpKind::kUnpermuteTokens:
    case OpKind::kRouteWeightGradient:  // outputs of the chosen experts
      return product_of(key, PermuteDim::kTokens, PermuteDim::kHidden, PermuteDim::kChosen);
    default: break;
  }
  const bool looks_up =
      key.kind == OpKind::kEmbeddingForward || key.kind == OpKind::kEmbeddingBackward;
  // A lookup reads one table row per token, whatever the vocabulary size.
  const std::size_t counted = looks_up ? 2 : key.dims.size();  // excludes the vocabulary
  double elements = 1;
  for (std::size_t i = 0; i < counted; ++i) {
    if (key.dims[i] > 0) elements *= static_cast<double>(key.dims[i]);
  }
  return elements;
}

KernelTable::KernelTable(const std::vector<OpSample>& samples) {
  for (const OpSample& sample : samples) {
    if (sample.median.value() <= 0) continue;
    curves_[family_of(sample.key)].push_back({elements_of(sample.key), sample.median.value()});
  }
  for (auto& [family, points] : curves_) {
    std::sort(points.begin(), points.end(),
              [](const Point& a, const Point& b) { return a.elements < b.elements; });
  }
}

std::optional<Seconds> KernelTable::time(const OpKey& key) const {
  const auto found = curves_.find(family_of(key));
  if (found == curves_.end()) return std::nullopt;
  const std::vector<Point>& points = found->second;
  const double elements = elements_of(key);
  // The time of a small kernel is its launch time, which does not depend on the size.
  if (elements <= points.front().elements) return Seconds(points.front().seconds);
  if (elements >= points.back().elements) {
    return Seconds(points.back().seconds * elements / points.back().elements);
  }
  const auto above = std::upper_bound(points.begin(), points.end(), elements,
                                      [](double e, const Point& p) { return e < p.elements; });
  const auto below = above - 1;
  const double share =
      std::log(elements / below->elements) / std::log(above->elements / below->elements);
  return Seconds(below->seconds * std::pow(above->seconds / below->seconds, share));
}

}  // namespace tpsim
