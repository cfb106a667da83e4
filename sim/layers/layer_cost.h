// Time and memory of a layer, its costs at the end of a step, and the cost of a P2P transfer.
#pragma once

#include "costs/host_device_time.h"
#include "costs/op_cost.h"
#include "sim/layers/by_task.h"
#include "sim/layers/memory_change.h"
#include "sim/layers/priced_parts.h"

namespace tpsim {

// Work that a layer has with any recompute and any ZeRO stage: GEMMs, attention, collectives that
// nothing overlaps, and host work. Without what recompute repeats and without accumulation.
struct CoreWork {
  Seconds device, host;
};

struct PhaseCost {
  HostDeviceTime time;
  SecondsBy<kWorkTerms.back()> work;         // sums to time.device
  SecondsBy<PriceSource::kModel> by_source;  // device time without collectives
  CoreWork core = {};
};
PhaseCost then(const PhaseCost& first, const PhaseCost& second);
PhaseCost repeat(const PhaseCost& once, std::int64_t n);

// Costs of a layer for one micro-batch.
struct LayerCost : LayerTasks<PhaseCost> {
  double clock = 1;  // of the GPU, relative to its clock in short work (costs/step_clock.h)
};

// Memory of a layer, known from the trace without pricing.
struct LayerMemory : LayerTasks<MemoryChange> {
  double gradients =
      0;  // bytes of unsharded gradients that backward allocates besides the persistent ones
};

// Costs of a layer that do not depend on the number of micro-batches.
struct FixedCost {
  BytesByCategory held{};    // weights, gradients, optimizer state
  BytesByCategory update{};  // peak of the allocations at the end of the step
  StepEndCost end;
  Bytes host;  // bytes in host memory; zero if the device is the host
  // For a block: bytes of one gradient in the weights' dtype for each distinct weight shape.
  Bytes stand_ins = {};
};

// P2P transfer of one activation to the next stage.
struct TransferCost {
  Seconds wire;      // time of the transfer between stages
  Seconds gather;    // time of the all-gather in the receiving tensor group
  double bytes = 0;  // bytes of the activation before it is sliced
};

}  // namespace tpsim
