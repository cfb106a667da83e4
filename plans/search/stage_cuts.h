// The ways in which the search cuts a model into stages.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/stage_cut.h"

namespace tpsim {

struct CutRange {
  std::int64_t stages = 1;
  std::int64_t virtual_stages = 1;
  // Blocks that the first and the last chunk of the model may each hold less than an even share;
  // the chunks between them take them over evenly.
  std::int64_t uneven_ends = 0;
};

// All cuts of a model's blocks, each once: even with embedding and head counted as a block each and
// without, then the uneven ones.
std::vector<StageCut> stage_cuts(const ModelSpec& model, const CutRange& range);

}  // namespace tpsim
