// Predicts the memory that a rank of the reference model reserves when it runs. Replays the
// allocations of the rank's trace with the device's allocator.
#pragma once

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/software/stack_spec.h"

namespace tpsim::app {

// Returns the reserved bytes after a few steps: tensors, and buffers of the device's ops
// (stack.library_workspace, rotary tables). `has_neighbours`: the rank communicates, so send copies
// of P2P messages are included. Excludes the CUDA context and NCCL's buffers.
Bytes reserved_memory(const ModelSpec& model, const Plan& plan, const StackSpec& stack,
                      std::int64_t rank, bool has_neighbours);

// Returns the bytes in use as the driver reports them: reserved_memory() plus the CUDA context and,
// if the rank has neighbors, the buffers of its communicators.
Bytes driver_memory_of(const ModelSpec& model, const Plan& plan, const StackSpec& stack,
                       std::int64_t rank, bool has_neighbours);

// Returns the reserved bytes of a rank on a CPU: tensors including an offloaded optimizer, freed
// memory that the CPU device caches, and fp32 copies of narrow GEMM operands.
Bytes host_memory_of(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
                     std::int64_t rank);

// Returns the plan with fewer micro-batches but the same peak memory, for short traces.
Plan with_few_micro_batches(Plan plan);

}  // namespace tpsim::app
