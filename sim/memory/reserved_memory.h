// Memory that a rank of the reference model reserves when it runs, computed without running:
// replays the allocations of its trace with the device's allocator.
#pragma once

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/software/stack_spec.h"

namespace tpsim {

// Reserved after a few steps: tensors, and buffers of the device's ops (stack.library_workspace,
// rotary tables). If the rank has neighbours, also the send copies of messages. Excludes the
// context and NCCL's buffers.
Bytes reserved_memory(const ModelSpec& model, const Plan& plan, const StackSpec& stack,
                      std::int64_t rank, bool has_neighbours);

// Memory in use as the driver reports it: adds the context and, if the rank has neighbours, the
// buffers of its communicators.
Bytes driver_memory_of(const ModelSpec& model, const Plan& plan, const StackSpec& stack,
                       std::int64_t rank, bool has_neighbours);

// The same on a CPU: tensors including an offloaded optimizer, freed memory that the CPU device
// caches, and fp32 copies of narrow GEMM operands.
Bytes host_memory_of(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
                     std::int64_t rank);

// Returns the plan with the fewest micro-batches that reach the same peak memory, for short traces.
Plan with_few_micro_batches(Plan plan);

}  // namespace tpsim
