// Cuts of a model into stages that the search tries.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/stage_cut.h"

namespace tpsim {

struct CutRange {
  std::int64_t stages = 1;
  std::int64_t virtual_stages = 1;
  // Maximum number of blocks that the first and the last chunk may lack compared with an even
  // share. The other chunks share these blocks evenly.
  std::int64_t uneven_ends = 0;
};

// Returns all distinct cuts of a model's blocks. Even cuts with embedding and head counted as one
// block each and without come first, then uneven cuts.
std::vector<StageCut> stage_cuts(const ModelSpec& model, const CutRange& range);

}  // namespace tpsim
