// Records of planned ops (core/model/planned_op.h): FLOPs and bytes of a rank's share. The ops are
// traced and priced (Device::note), but no device executes them.
#pragma once

#include <cstdint>

#include "core/model/planned_op.h"
#include "core/program/program.h"

namespace tpsim {

// A rank's share of an op over one micro-batch.
struct PlannedWork {
  std::int64_t batch = 0;    // sequences
  std::int64_t queries = 0;  // positions of a sequence on this rank
  std::int64_t keys = 0;     // positions of a sequence on all ranks
  double pairs = 0;          // visible query-key pairs of the micro-batch, per head
  std::int64_t ranks = 1;    // ranks that shard the heads or the width
};

// Returns the record of a kPairs op. With value_dim > 0 it is flash attention, with a window of the
// mean number of keys that a query sees. With value_dim = 0 it is the scores of an indexer, which
// are not stored.
OpRecord planned_pairs_record(const PlannedOp& op, const PlannedWork& work, bool backward,
                              DType dtype, const Label& label);
// Returns the record of an elementwise op. Forward moves `elements` elements (reads plus writes),
// backward twice as many.
OpRecord planned_pass_record(double elements, bool backward, DType dtype, const Label& label);

}  // namespace tpsim
