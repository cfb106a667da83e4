// Peak memory of one stage: persistent tensors, micro-batches in flight, and overheads of device,
// libraries and allocator.
#pragma once

#include <vector>

#include "core/plan/report.h"
#include "core/software/stack_spec.h"
#include "sim/memory/peak_moments.h"
#include "sim/schedule/stage_costs.h"

namespace tpsim {

// Returns the chunk's memory with P2P buffers. Each task allocates a tensor for its received input
// and frees its output after the send. `transfer`: bytes of the activation between two stages.
ChunkMemory with_transfers(const ChunkMemory& chunk, const ChunkKind& kind, double transfer);

// Returns the number of communicators of a rank, each of which has buffers.
std::int64_t communicators(const Plan& plan);

// Bytes by category at the peak of a step, and the peak of each category by itself.
struct TensorPeak {
  BytesByCategory highest{};
  BytesByCategory each{};
  double cached = 0;  // bytes that the allocator keeps for other streams at the peak
};
// Lifetimes of gradients and optimizer temporaries in the training loop.
struct StepHabits {
  // Gradients exist only from backward to the end of a step: autograd allocates them, and
  // zero_grad() frees them (set_to_none). They do not exist at the peak of the activations, and the
  // activations are freed when backward ends. Only with one micro-batch, one stage, and software
  // without a copy of the weights; otherwise gradient buffers are persistent.
  bool frees_gradients = false;
  // Bytes of 16-bit gradients that exist during backward, as a share of the fp32 gradients.
  // torch.compile makes the backward of a whole model under autocast one function: the function
  // holds all that forward saved until it returns the fp32 copies of all gradients.
  double narrow_gradients = 0;
  // FSDP allocates gradients on the stream that reduces them. PyTorch's caching allocator does not
  // reuse freed memory of one stream on another, so gradients and activations share no memory.
  bool separate_pools = false;
  // Bytes of temporaries during the update, as a share of the optimizer state. Unfused ops over
  // lists of tensors compute the root of the second moment for all weights at once
  // (torch._foreach_sqrt in torch/optim/adamw.py).
  double optimizer_copy = 0;
};
StepHabits step_habits(const StackSpec& stack, const Plan& plan);

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
StageMemory stage_memory(const StackSpec& stack, const MemoryOverheads& overheads,
                         const BytesByCategory& held, const TensorPeak& peak);

}  // namespace tpsim
