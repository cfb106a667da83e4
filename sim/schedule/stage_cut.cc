#include "sim/schedule/stage_cut.h"

#include <algorithm>
#include <numeric>

namespace tpsim {
namespace {

template <class T>
std::int32_t index_of(std::vector<T>& kinds, const T& kind) {
  auto found = std::find(kinds.begin(), kinds.end(), kind);
  if (found == kinds.end()) found = kinds.insert(kinds.end(), kind);
  return static_cast<std::int32_t>(found - kinds.begin());
}

std::int32_t index_of_stage(std::vector<StageKind>& kinds, StageKind kind) {
  auto found = std::find_if(kinds.begin(), kinds.end(),
                            [&](const StageKind& other) { return other.chunks == kind.chunks; });
  if (found == kinds.end()) found = kinds.insert(kinds.end(), std::move(kind));
  return static_cast<std::int32_t>(found - kinds.begin());
}

// Returns ChunkKind::first_layer of a chunk with `count` blocks from layer `first`.
std::int64_t first_alike(const ModelSpec& model, std::int64_t first, std::int64_t count) {
  if (model.block_kinds.empty()) return 0;
  const auto kinds = model.block_kinds.begin();
  for (std::int64_t other = 0; other < first; ++other) {
    if (std::equal(kinds + other, kinds + other + count, kinds + first)) return other;
  }
  return first;
}

// Returns the index of the first layer of every chunk.
std::vector<std::int64_t> first_layers(const std::vector<std::int64_t>& layers) {
  std::vector<std::int64_t> first(layers.size(), 0);
  std::partial_sum(layers.begin(), layers.end() - 1, first.begin() + 1);
  return first;
}

}  // namespace

StageCut stage_cut(std::vector<std::int64_t> layers, std::int64_t stages, const ModelSpec& model) {
  const std::vector<std::int64_t> begins = first_layers(layers);
  const auto chunk_count = static_cast<std::int64_t>(layers.size());
  StageCut cut;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    StageKind kind;
    kind.first_stage = stage;
    kind.is_first = stage == 0;
    kind.is_last = stage + 1 == stages;
    kind.of_kind.assign(static_cast<std::size_t>(block_kind_count(model)), 0);
    for (std::int64_t chunk = stage; chunk < chunk_count; chunk += stages) {
      const std::int64_t blocks = layers[static_cast<std::size_t>(chunk)];
      const std::int64_t begin = begins[static_cast<std::size_t>(chunk)];
      kind.blocks += blocks;
      for (std::int64_t layer = begin; layer < begin + blocks; ++layer) {
        ++kind.of_kind[static_cast<std::size_t>(block_kind(model, layer))];
      }
      kind.chunks.push_back(
          index_of(cut.chunks, ChunkKind{blocks, chunk == 0, chunk + 1 == chunk_count,
                                         first_alike(model, begin, blocks)}));
      kind.kind_of.push_back(index_of(kind.kinds, kind.chunks.back()));
    }
    const std::int32_t index = index_of_stage(cut.stages, std::move(kind));
    if (cut.runs.empty() || cut.runs.back().kind != index) cut.runs.push_back({index, 0});
    ++cut.runs.back().count;
  }
  cut.layers = std::move(layers);
  return cut;
}

}  // namespace tpsim
