// What a rank of the reference model takes from a GPU's driver, to the byte and without a GPU: the
// allocations of its trace, cut from segments by the allocator that the CUDA device has.
#pragma once

#include "core/model_spec.h"
#include "core/plan.h"
#include "core/stack_spec.h"

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

}  // namespace tpsim
