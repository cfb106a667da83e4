// Time and memory of a layer, of what it adds to the end of a step, and of a transfer.
#pragma once

#include "costs/host_device_time.h"
#include "costs/op_cost.h"
#include "sim/layers/memory_change.h"
#include "sim/layers/priced_parts.h"

namespace tpsim {

struct PhaseCost {
  HostDeviceTime time;
  SecondsBy<kWorkTerms.back()> work;         // adds up to time.device
  SecondsBy<PriceSource::kModel> by_source;  // collectives left out
  MemoryChange memory;
  double load = 1;           // of the busiest rank's experts (sim/layers/expert_prices.h)
  std::int64_t experts = 1;  // of a block that one rank holds
};
PhaseCost then(const PhaseCost& first, const PhaseCost& second);
PhaseCost repeat(const PhaseCost& once, std::int64_t n);

// What one micro-batch costs.
struct LayerCost {
  PhaseCost forward, backward;
  PhaseCost accumulate;  // after the chunk's backward: gradients join the accumulation buffer
};

// The same, memory alone: known from the trace before anything is priced.
struct LayerMemory {
  MemoryChange forward, backward, accumulate;
  double gradients = 0;  // bytes of those that backward holds whole beside what is kept
};

// What every step costs, whatever the number of micro-batches.
struct FixedCost {
  BytesByCategory held{};    // weights, gradients, optimizer state
  BytesByCategory update{};  // allocated while the step ends, all layers at once
  StepEndCost end;
  Bytes host;  // held in the host's memory, where the host is not the device
  // Of a block: a gradient in the weights' dtype for each distinct shape of its weights.
  Bytes stand_ins = {};
};

// An activation on its way to the next stage.
struct TransferCost {
  Seconds wire;      // from stage to stage
  Seconds gather;    // inside the receiving tensor group
  double bytes = 0;  // of the whole activation
};

}  // namespace tpsim
