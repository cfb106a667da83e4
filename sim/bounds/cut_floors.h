// Numbers of blocks in stages, bounded over several stage cuts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/schedule/stage_cut.h"

namespace tpsim {

// Numbers of blocks, by kind of block, from which memory and work of one stage cut are bounded.
struct CutFloor {
  std::vector<std::int64_t> fullest;  // in the stage with the most blocks, the last such stage
  std::int64_t stages_ahead = 0;      // number of stages before the fullest stage
  std::vector<std::int64_t> ahead;    // in the first chunks of the stages before the fullest stage
  std::vector<std::int64_t> first;    // in the first stage
  friend bool operator==(const CutFloor&, const CutFloor&) = default;
};
// Floors of several cuts with the same numbers of stages and chunks.
struct CutFloors {
  std::vector<CutFloor> each;  // distinct floors of the cuts
  // Blocks in the first chunks of all stages before a stage, mean over the stages, by kind of
  // block. The minimum over all cuts.
  std::vector<double> mean_ahead;
};
CutFloors cut_floors(std::span<const StageCut> cuts, const ModelSpec& model);

}  // namespace tpsim
