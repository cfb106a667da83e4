// Cuts of a model into pipeline stages that the search tries.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/stage_cut.h"

namespace tpsim {

struct CutRange {
  std::int64_t stages = 1;
  std::int64_t virtual_stages = 1;
  // The first and the last chunk may each have up to this many fewer blocks than an even share. The
  // other chunks share these blocks evenly.
  std::int64_t uneven_ends = 0;
};

// Returns all distinct cuts of a model's blocks. Even cuts come first: with embedding and head
// counted as one block each, then without them. Uneven cuts follow.
std::vector<StageCut> stage_cuts(const ModelSpec& model, const CutRange& range);

}  // namespace tpsim
