#include "costs/kernel_table.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace tpsim {
namespace {

OpKey family_of(const OpKey& key) { return {key.kind, key.dtype, key.variant, {}}; }

}  // namespace

double elements_of(const OpKey& key) {
  const auto product = [&](std::initializer_list<std::size_t> extents) {
    double elements = 1;
    for (const std::size_t i : extents) elements *= static_cast<double>(key.dims[i]);
    return elements;
  };
  switch (key.kind) {
    case OpKind::kRouteForward:
    case OpKind::kRouteBackward: return product({0, 1});     // logits
    case OpKind::kPermuteTokens: return product({1, 2, 3});  // elements of the slots
    case OpKind::kUnpermuteTokens:
    case OpKind::kRouteWeightGradient: return product({0, 1, 4});  // chosen experts' outputs
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
