#include "profiler/reduced_key.h"

#include <algorithm>
#include <vector>

namespace tpsim {
namespace {

constexpr double kMostProducts = 1 << 21;  // multiply-adds of a GEMM
constexpr double kMostElements = 1 << 17;

// Returns the extents that may be halved, as indices of OpKey::dims.
std::vector<std::size_t> free_extents(OpKind kind) {
  if (is_flash(kind)) return {0, 1, 5};        // batch, queries and keys
  if (kind == OpKind::kRotary) return {0, 1};  // rows and heads
  if (kind == OpKind::kMatmul) return {0, 1, 2, 3};
  const bool routes = kind == OpKind::kRouteForward || kind == OpKind::kRouteBackward;
  if (routes) return {0};  // the number of experts is kept
  const bool moves = kind == OpKind::kPermuteTokens || kind == OpKind::kUnpermuteTokens ||
                     kind == OpKind::kRouteWeightGradient;
  if (moves) return {0, 1, 3};  // tokens, width and capacity
  return {0, 1, 2};
}

double work_of(const OpKey& key) {
  double work = 1;
  for (const std::int64_t extent : key.dims) {
    if (extent > 0) work *= static_cast<double>(extent);
  }
  const bool square = is_flash(key.kind) && key.dims[5] == 0;
  return square ? work * static_cast<double>(key.dims[1]) : work;
}

// Corrects the key so that it has at least as many keys as queries.
void keep_queries_among_keys(OpKey& key) {
  if (is_softmax(key.kind)) key.dims[2] = std::max(key.dims[1], key.dims[2]);
  if (is_flash(key.kind) && key.dims[5] <= key.dims[1]) {
    key.dims[5] = key.dims[6] > 0 ? key.dims[1] : 0;
  }
}

}  // namespace

OpKey reduced_key(const OpKey& key) {
  OpKey small = key;
  if (is_flash(key.kind)) {
    small.dims[2] = key.dims[2] / key.dims[3];  // query heads per key/value head
    small.dims[3] = 1;
  }
  const bool multiplies = runs_on_matrix_units(key.kind);
  const double most = multiplies ? kMostProducts : kMostElements;
  const std::vector<std::size_t> extents = free_extents(key.kind);
  while (work_of(small) > most) {
    const std::size_t longest = *std::max_element(
        extents.begin(), extents.end(),
        [&](std::size_t a, std::size_t b) { return small.dims[a] < small.dims[b]; });
    if (small.dims[longest] <= 1) break;
    small.dims[longest] /= 2;
    keep_queries_among_keys(small);
  }
  return small;
}

}  // namespace tpsim
