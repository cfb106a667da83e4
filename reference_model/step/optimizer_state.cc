#include "reference_model/step/optimizer_state.h"

#include <algorithm>

namespace tpsim {
namespace {

void add_range(std::vector<UpdatedRange>& ranges, const UpdatedRange& range) {
  if (range.count > 0) ranges.push_back(range);
}

}  // namespace

Tensor StateValues::slice(std::int64_t begin, std::int64_t count) const {
  const auto after = std::upper_bound(
      pieces.begin(), pieces.end(), begin,
      [](std::int64_t element, const StatePiece& piece) { return element < piece.begin; });
  TPSIM_CHECK(after != pieces.begin(), "the state has the element");
  const StatePiece& piece = *(after - 1);
  TPSIM_CHECK(begin + count <= piece.begin + piece.count, "the range is in one piece");
  return values.slice(piece.at + begin - piece.begin, count);
}

const StateValues& OptimizerState::of(StateTensor tensor) const {
  switch (tensor) {
    case StateTensor::kMaster: return master;
    case StateTensor::kMomentum: return momentum;
    case StateTensor::kVariance: break;
  }
  return variance;
}

std::vector<UpdatedRange> updated_ranges(const ParameterStore& store, const ParameterUnit& unit) {
  std::vector<UpdatedRange> ranges;
  if (unit.has_owners()) {
    for (const Parameter& p : unit.parameters()) {
      if (!store.owns(unit, p)) continue;
      add_range(ranges, {p.offset, p.spec.shape.elements(), p.updater, p.is_matrix()});
    }
    return ranges;
  }
  const std::int64_t first = store.share_begin(unit), last = first + store.share_size(unit);
  for (const Segment& segment : unit.segments()) {
    const std::int64_t begin = std::max(segment.begin, first), end = std::min(segment.end, last);
    add_range(ranges, {begin, end - begin, segment.updater, segment.decay});
  }
  return ranges;
}

bool is_whole_share(const ParameterUnit& unit, StateTensor tensor) {
  return !unit.has_owners() &&
         std::all_of(unit.segments().begin(), unit.segments().end(),
                     [&](const Segment& segment) { return keeps(segment.updater, tensor); });
}

std::vector<StatePiece> state_pieces(const ParameterStore& store, const ParameterUnit& unit,
                                     StateTensor tensor) {
  if (is_whole_share(unit, tensor)) return {{store.share_begin(unit), store.share_size(unit), 0}};
  std::vector<StatePiece> pieces;
  std::int64_t at = 0;
  for (const UpdatedRange& range : updated_ranges(store, unit)) {
    if (!keeps(range.updater, tensor)) continue;
    pieces.push_back({range.begin, range.count, at});
    at += range.count;
  }
  return pieces;
}

}  // namespace tpsim
