// Memory of one stage: what it holds for good, what its schedule keeps in flight, and what the
// device, its libraries and the allocator add.
#pragma once

#include <vector>

#include "core/plan/report.h"
#include "core/software/stack_spec.h"
#include "sim/memory/peak_moments.h"
#include "sim/schedule/stage_costs.h"

namespace tpsim {

// A chunk's tasks with what they receive and send: a task's input is received into a new tensor,
// its output freed once it is sent. What forward leaves behind, backward frees. `transfer` is the
// size of an activation.
ChunkMemory with_transfers(const ChunkMemory& chunk, const ChunkKind& kind, double transfer);

// Communicators that a rank takes part in: each holds buffers.
std::int64_t communicators(const Plan& plan);

// Tensors at the highest moment of a step, and the highest moment of each category by itself.
struct TensorPeak {
  BytesByCategory highest{};
  BytesByCategory each{};
};
// How the training loop handles tensors that are not activations.
struct StepHabits {
  // Gradients exist from backward to the end of a step alone: autograd allocates them, and
  // zero_grad() frees them (set_to_none). While activations are at their peak there are none yet,
  // and where backward ends nothing else is left. Software with a copy of the weights has buffers
  // for its gradients, and they last through the micro-batches of a step.
  bool frees_gradients = false;
  // Share of the optimizer's state that its update holds a second time: plain ops over lists of
  // tensors (torch._foreach_sqrt in torch/optim/adamw.py) make a second moment's root of all
  // weights.
  double optimizer_copy = 0;
};
StepHabits step_habits(const StackSpec& stack, const Plan& plan);

// `kinds`: one for each of StageKind::kinds.
TensorPeak tensor_peak(const FixedCost& stage, const std::vector<const ChunkMemory*>& kinds,
                       const PeakMoments& moments, const StepHabits& habits);

// What a rank of the plan adds to its tensors, whatever its stage.
struct MemoryOverheads {
  Bytes workspace, buffers, bucket;  // bucket: at most, see stage_memory()
};
MemoryOverheads memory_overheads(const StackMemory& stack, const Plan& plan, Bytes stand_ins);

// What the device reports as used.
StageMemory stage_memory(const StackSpec& stack, const MemoryOverheads& overheads,
                         const BytesByCategory& held, const TensorPeak& peak);

}  // namespace tpsim
