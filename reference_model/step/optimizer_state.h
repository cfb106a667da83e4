// The state of an optimizer on one rank: for each unit the fp32 weights and the moments of the
// elements that this rank updates (core/software/optimizer_kinds.h has the tensors of each kind).
#pragma once

#include <vector>

#include "reference_model/parallel/parameters.h"

namespace tpsim {

// A range of a unit, and its place in a state tensor.
struct StatePiece {
  std::int64_t begin = 0, count = 0;
  std::int64_t at = 0;
};

// One state tensor of a unit. It has the elements of its pieces, which are in ascending order.
struct StateValues {
  Tensor values;  // undefined if this rank has no elements of the unit
  std::vector<StatePiece> pieces;

  // Returns the elements [begin, begin + count) of the unit, which are in one piece.
  Tensor slice(std::int64_t begin, std::int64_t count) const;
};

struct OptimizerState {
  StateValues master;  // fp32 weights; in fp32 training the weights themselves
  StateValues momentum;
  StateValues variance;
  // Copies of gradients and weights in host memory if the optimizer is offloaded, else undefined.
  Tensor host_gradients, host_weights;

  const StateValues& of(StateTensor tensor) const;
};

// A range of a unit that this rank updates at once.
struct UpdatedRange {
  std::int64_t begin = 0, count = 0;
  OptimizerKind updater{};
  bool decay = false;
};

// Returns the ranges of the unit that this rank updates, in ascending order: its share of each
// segment, or the tensors that it owns. No range is empty.
std::vector<UpdatedRange> updated_ranges(const ParameterStore& store, const ParameterUnit& unit);

// Returns the pieces of a state tensor on this rank, packed in ascending order.
std::vector<StatePiece> state_pieces(const ParameterStore& store, const ParameterUnit& unit,
                                     StateTensor tensor);
// Whether every rank's piece is its whole share of the unit, as with AdamW.
bool is_whole_share(const ParameterUnit& unit, StateTensor tensor);

}  // namespace tpsim
