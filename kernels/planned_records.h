// Records of planned ops (core/model/planned_op.h): what a rank's share computes and moves. No
// device computes them; they are traced and priced (Device::note).
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
  double pairs = 0;          // of all queries of the micro-batch and the keys that they see
  std::int64_t ranks = 1;    // that share heads, or the width
};

// Scores, with the sum of values where value_dim > 0: then a flash kernel that sees `keys`, or the
// mean of what the queries see. Else the scores of an indexer, which are not stored.
OpRecord planned_pairs_record(const PlannedOp& op, const PlannedWork& work, bool backward,
                              DType dtype, const Label& label);
// Elementwise: reads and writes `elements`; backward twice as many.
OpRecord planned_pass_record(double elements, bool backward, DType dtype, const Label& label);

}  // namespace tpsim
