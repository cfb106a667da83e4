// Memory of one stage: permanent tensors, micro-batches in flight, and overheads of device,
// libraries and allocator.
#pragma once

#include <vector>

#include "core/plan/report.h"
#include "core/software/stack_spec.h"
#include "sim/memory/peak_moments.h"
#include "sim/schedule/stage_costs.h"

namespace tpsim {

// Adds P2P buffers to a chunk's tasks. A task's input is received into a new tensor; its output is
// freed after the send. Backward frees what forward saved. `transfer` is the size of an activation
// in bytes.
ChunkMemory with_transfers(const ChunkMemory& chunk, const ChunkKind& kind, double transfer);

// Number of communicators of a rank; each has buffers.
std::int64_t communicators(const Plan& plan);

// Tensors at the peak of a step, and the peak of each category by itself.
struct TensorPeak {
  BytesByCategory highest{};
  BytesByCategory each{};
};
// How the training loop handles tensors other than activations.
struct StepHabits {
  // Gradients exist only from backward to the end of a step: autograd allocates them, and
  // zero_grad() frees them (set_to_none). They do not exist at the activation peak; at the end of
  // backward, activations are freed. Software with a copy of the weights has permanent gradient
  // buffers across micro-batches.
  bool frees_gradients = false;
  // Share of the optimizer state that its update allocates again. Plain ops over lists of tensors
  // (torch._foreach_sqrt in torch/optim/adamw.py) compute the root of the second moment for all
  // weights.
  double optimizer_copy = 0;
};
StepHabits step_habits(const StackSpec& stack, const Plan& plan);

// `kinds`: one entry per StageKind::kinds.
TensorPeak tensor_peak(const FixedCost& stage, const std::vector<const ChunkMemory*>& kinds,
                       const PeakMoments& moments, const StepHabits& habits);

// Memory that a rank needs besides its tensors, independent of the stage.
struct MemoryOverheads {
  Bytes workspace, buffers, bucket;  // bucket: upper limit, see stage_memory()
};
MemoryOverheads memory_overheads(const StackMemory& stack, const Plan& plan, Bytes stand_ins);

// Memory that the device reports as used.
StageMemory stage_memory(const StackSpec& stack, const MemoryOverheads& overheads,
                         const BytesByCategory& held, const TensorPeak& peak);

}  // namespace tpsim
