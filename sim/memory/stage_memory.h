// Peak memory of one stage: persistent tensors, micro-batches in flight, and overheads of device,
// libraries and allocator.
#pragma once

#include <vector>

#include "core/plan/report.h"
#include "core/software/stack_spec.h"
#include "lowering/passes/step_habits.h"
#include "sim/memory/peak_moments.h"
#include "sim/schedule/stage_costs.h"

namespace tpsim {

// Returns the chunk's memory with P2P buffers. Each task allocates a tensor for its received input
// and frees its output after the send. `transfer`: bytes of the activation between two stages.
ChunkMemory with_transfers(const ChunkMemory& chunk, const ChunkKind& kind, double transfer);

// Bytes by category at the peak of a step, and the peak of each category by itself.
struct TensorPeak {
  BytesByCategory highest{};
  BytesByCategory each{};
  double cached = 0;  // bytes that the allocator keeps for other streams at the peak
};
// `kinds`: memory of each entry of StageKind::kinds.
TensorPeak tensor_peak(const FixedCost& stage, const std::vector<const ChunkMemory*>& kinds,
                       const PeakMoments& moments, const StepHabits& habits);

// Memory that every rank needs in addition to its tensors; the same on all stages.
struct MemoryOverheads {
  Bytes workspace, buffers, bucket;  // bucket: upper limit, see stage_memory()
};
MemoryOverheads memory_overheads(const StackMemory& stack, const Plan& plan, Bytes stand_ins);

// Returns the memory in use as the device reports it. The bucket is at most the gradient bytes in
// `held`.
StageMemory stage_memory(const StackMemory& stack, const StepHabits& habits,
                         const MemoryOverheads& overheads, const BytesByCategory& held,
                         const TensorPeak& peak);

}  // namespace tpsim
