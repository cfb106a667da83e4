#include "sim/bounds/cut_floors.h"

#include <algorithm>

namespace tpsim {
namespace {

// Returns the number of blocks of each kind in a chunk.
std::vector<std::int64_t> kinds_of(const ModelSpec& model, const ChunkKind& chunk) {
  std::vector<std::int64_t> count(static_cast<std::size_t>(block_kind_count(model)), 0);
  for (std::int64_t i = 0; i < chunk.blocks; ++i) {
    ++count[static_cast<std::size_t>(block_kind(model, chunk.first_layer + i))];
  }
  return count;
}

struct Ahead {
  CutFloor floor;
  std::vector<double> mean;
};

Ahead ahead_of(const StageCut& cut, const ModelSpec& model) {
  const auto kinds = static_cast<std::size_t>(block_kind_count(model));
  Ahead result;
  result.mean.assign(kinds, 0);
  std::int64_t stages = 0, most = -1;
  for (const StageRun& run : cut.runs) stages += run.count;
  std::vector<std::int64_t> ahead(kinds, 0);
  std::int64_t stage = 0;
  for (const StageRun& run : cut.runs) {
    const StageKind& kind = cut.stages[static_cast<std::size_t>(run.kind)];
    const std::vector<std::int64_t> first_chunk =
        kinds_of(model, cut.chunks[static_cast<std::size_t>(kind.chunks.front())]);
    for (std::int64_t i = 0; i < run.count; ++i, ++stage) {
      if (stage == 0) result.floor.first = kind.of_kind;
      if (kind.blocks >= most) {
        most = kind.blocks;
        result.floor.fullest = kind.of_kind;
        result.floor.stages_ahead = stage;
        result.floor.ahead = ahead;
      }
      const double share = static_cast<double>(stages - 1 - stage) / static_cast<double>(stages);
      for (std::size_t k = 0; k < kinds; ++k) {
        ahead[k] += first_chunk[k];
        result.mean[k] += share * static_cast<double>(first_chunk[k]);
      }
    }
  }
  return result;
}

}  // namespace

CutFloors cut_floors(std::span<const StageCut> cuts, const ModelSpec& model) {
  CutFloors floors;
  for (const StageCut& cut : cuts) {
    Ahead one = ahead_of(cut, model);
    if (floors.mean_ahead.empty()) floors.mean_ahead = one.mean;
    for (std::size_t k = 0; k < one.mean.size(); ++k) {
      floors.mean_ahead[k] = std::min(floors.mean_ahead[k], one.mean[k]);
    }
    const bool is_known =
        std::find(floors.each.begin(), floors.each.end(), one.floor) != floors.each.end();
    if (!is_known) floors.each.push_back(std::move(one.floor));
  }
  return floors;
}

}  // namespace tpsim
