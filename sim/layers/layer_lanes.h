// Kernels and collectives of a layer for one micro-batch, each on its stream and in its time.
#pragma once

#include <array>
#include <vector>

#include "lowering/passes/lowered_layer.h"

namespace tpsim {

struct LaneSpan {
  Stream stream{};
  LoweredEvent::Kind kind{};  // kOp, kCopy, kCollective: the compute stream waits; or kStart
  std::uint32_t index = 0;    // into the program's vector of this kind
  Seconds begin, end;         // device time since the start of the phase
  // Calls: time that they add to the phase.
  Seconds exposed = {};
  // Started calls: when the compute stream starts them and when it needs them. A carried call is
  // started in the layer before. Negative: not in this phase.
  Seconds issued = Seconds(-1), needed = Seconds(-1);
};

struct PhaseLanes {
  std::vector<LaneSpan> spans;
  Seconds end;  // device time of the phase, as priced
};

struct LayerLanes {
  LoweredLayer program;
  std::array<PhaseLanes, kPhaseCount> phases;

  const PhaseLanes& phase(Phase which) const { return phases[static_cast<std::size_t>(which)]; }
};

}  // namespace tpsim
