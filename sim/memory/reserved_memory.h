// The memory that a rank of the reference model takes where it runs, known without running it: the
// allocations of its trace, replayed by the allocator of the device.
#pragma once

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/software/stack_spec.h"

namespace tpsim {

// Segments of tensors, of what the device keeps for its ops (stack.library_workspace, tables of
// rotary angles) and, where the rank has neighbours, of the copies that its messages leave from,
// once a few steps have been made; neither the context nor NCCL's buffers.
Bytes reserved_memory(const ModelSpec& model, const Plan& plan, const StackSpec& stack,
                      std::int64_t rank, bool has_neighbours);

// All that the driver then says is in use: with the context, and with the buffers of the rank's
// communicators where it has neighbours.
Bytes driver_memory_of(const ModelSpec& model, const Plan& plan, const StackSpec& stack,
                       std::int64_t rank, bool has_neighbours);

// On a CPU: tensors, the offloaded optimizer's too, and what the CPU device keeps of freed ones and
// widens narrow operands of GEMMs into.
Bytes host_memory_of(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
                     std::int64_t rank);

// The plan with the fewest micro-batches that reach the peak of its memory: short to trace.
Plan with_few_micro_batches(Plan plan);

}  // namespace tpsim
