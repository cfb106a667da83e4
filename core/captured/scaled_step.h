// Other numbers of ranks and of micro-batches for a captured step.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "core/captured/captured_step.h"

namespace tpsim {

// Returns the step of a program on `ranks` ranks. The ranks that are added or removed are
// data-parallel: groups that span the outermost dimension of the ranks grow or shrink. If forward
// gathers parameters over such a group, then parameters, gradients and optimizer state are its
// shards. Error if no group spans the outermost dimension or `ranks` does not fit the others.
Result<CapturedStep> with_ranks(CapturedStep step, std::int64_t ranks);

// Returns the step with `count` micro-batches between two updates. Gradients of the second one and
// of later ones are added to those of the first. All-reduces of gradients run in the last
// micro-batch, as within no_sync(); reduce-scatters run in each. Error if the step has several
// micro-batches already.
Result<CapturedStep> with_accumulation(CapturedStep step, std::int64_t count);

}  // namespace tpsim
