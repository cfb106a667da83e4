#include "profiler/reduced_key.h"

#include <algorithm>
#include <vector>

#include "core/program/op_dims.h"

namespace tpsim {
namespace {

constexpr double kMostProducts = 1 << 21;  // multiply-adds of a GEMM
constexpr double kMostElements = 1 << 17;

template <class... Dims>
std::vector<std::size_t> indices_of(Dims... dims) {
  return {static_cast<std::size_t>(dims)...};
}

// Returns the extents that may be halved, as indices of OpKey::dims.
std::vector<std::size_t> free_extents(OpKind kind) {
  if (is_flash(kind)) return indices_of(FlashDim::kBatch, FlashDim::kQueries, FlashDim::kKeys);
  if (kind == OpKind::kRotary) return indices_of(HeadDim::kRows, HeadDim::kHeads);
  if (kind == OpKind::kMatmul)
    return indices_of(GemmDim::kBatch, GemmDim::kM, GemmDim::kN, GemmDim::kK);
  const bool routes = kind == OpKind::kRouteForward || kind == OpKind::kRouteBackward;
  if (routes) return indices_of(RowDim::kRows);  // the number of experts is kept
  if (has_dims(kind, PermuteDim()))
    return indices_of(PermuteDim::kTokens, PermuteDim::kHidden, PermuteDim::kCapacity);
  return {0, 1, 2};  // all others have at most three
}

double work_of(const OpKey& key) {
  double work = 1;
  for (const std::int64_t extent : key.dims) {
    if (extent > 0) work *= static_cast<double>(extent);
  }
  const bool square = is_flash(key.kind) && dim_of(key, FlashDim::kKeys) == 0;
  return square ? work * static_cast<double>(dim_of(key, FlashDim::kQueries)) : work;
}

// Corrects the key so that it has at least as many keys as queries.
void keep_queries_among_keys(OpKey& key) {
  if (is_softmax(key.kind)) {
    std::int64_t& keys = dim_of(key, ScoreDim::kKeys);
    keys = std::max(keys, dim_of(key, ScoreDim::kQueries));
  }
  if (!is_flash(key.kind)) return;
  const std::int64_t queries = dim_of(key, FlashDim::kQueries);
  std::int64_t& keys = dim_of(key, FlashDim::kKeys);
  if (keys <= queries) keys = dim_of(key, FlashDim::kReach) > 0 ? queries : 0;
}

}  // namespace

OpKey reduced_key(const OpKey& key) {
  OpKey small = key;
  if (is_flash(key.kind)) {
    std::int64_t& key_heads = dim_of(small, FlashDim::kKeyHeads);
    dim_of(small, FlashDim::kHeads) /= key_heads;  // query heads per key/value head
    key_heads = 1;
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
