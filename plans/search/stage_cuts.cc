#include "plans/search/stage_cuts.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/plan/plan.h"
#include "core/software/launched_models.h"

namespace tpsim {
namespace {

// Returns a cut with `first` and `last` blocks at the ends and the others distributed evenly. Empty
// if this is impossible.
std::vector<std::int64_t> cut_with_ends(std::int64_t layers, std::int64_t stages,
                                        std::int64_t first, std::int64_t last) {
  const std::int64_t between = layers - first - last;
  if (first < 0 || last < 0 || between < 0 || (stages == 2 && between != 0)) return {};
  std::vector<std::int64_t> cut = {first};
  if (stages > 2) {
    const std::vector<std::int64_t> middle = even_stage_layers(between, stages - 2, false);
    cut.insert(cut.end(), middle.begin(), middle.end());
  }
  cut.push_back(last);
  return cut;
}

std::vector<std::vector<std::int64_t>> uneven_layers(std::int64_t layers, std::int64_t stages,
                                                     std::int64_t most) {
  std::vector<std::vector<std::int64_t>> cuts;
  const std::int64_t share = layers / stages;
  for (std::int64_t first = share; first >= share - most; --first) {
    // With two chunks, the blocks that one chunk loses go to the other.
    if (stages == 2) {
      cuts.push_back(cut_with_ends(layers, stages, first, layers - first));
      cuts.push_back(cut_with_ends(layers, stages, layers - first, first));
      continue;
    }
    for (std::int64_t last = share; last >= share - most; --last) {
      cuts.push_back(cut_with_ends(layers, stages, first, last));
    }
  }
  return cuts;
}

// Moves the start of each chunk to the nearest layer with an indexer, because a layer without one
// uses the indices of an earlier layer of its stage. Empty if a chunk would have no layers.
std::vector<std::int64_t> cut_at_indexers(const std::vector<std::int64_t>& cut,
                                          const IndexedLayers& indexed) {
  const std::int64_t layers = std::accumulate(cut.begin(), cut.end(), std::int64_t{0});
  std::vector<std::int64_t> moved;
  std::int64_t wanted = 0, before = 0;  // layers before the end of the chunk
  for (std::size_t i = 0; i < cut.size(); ++i) {
    wanted += cut[i];
    std::int64_t end = i + 1 == cut.size() ? layers : wanted;
    for (std::int64_t by = 1; end < layers && shares_indices(indexed, end + 1); ++by) {
      const bool is_earlier = wanted - by > before && !shares_indices(indexed, wanted - by + 1);
      end = is_earlier ? wanted - by : std::min(wanted + by, layers);
    }
    if (end <= before) return {};
    moved.push_back(end - before);
    before = end;
  }
  return moved;
}

}  // namespace

std::vector<StageCut> stage_cuts(const ModelSpec& model, const CutRange& range) {
  const std::int64_t layers = model.layers;
  const std::int64_t chunks = range.stages * range.virtual_stages;
  std::vector<std::vector<std::int64_t>> all = {even_stage_layers(layers, chunks, true),
                                                even_stage_layers(layers, chunks, false)};
  if (range.stages > 1) {
    for (auto& uneven : uneven_layers(layers, chunks, range.uneven_ends)) {
      all.push_back(std::move(uneven));
    }
  }
  const auto indexed = indexed_layers(model);
  std::vector<StageCut> cuts;
  for (std::vector<std::int64_t>& one : all) {
    if (indexed && indexed->frequency > 1 && !one.empty()) one = cut_at_indexers(one, *indexed);
    // The two even cuts often agree, and an uneven cut may equal an even one.
    const bool repeats = std::any_of(cuts.begin(), cuts.end(),
                                     [&](const StageCut& cut) { return cut.layers == one; });
    if (!one.empty() && !repeats) cuts.push_back(stage_cut(std::move(one), range.stages, model));
  }
  return cuts;
}

}  // namespace tpsim
