// Time and memory of a layer, of its share of the step's end, and of a P2P transfer.
#pragma once

#include "costs/host_device_time.h"
#include "costs/op_cost.h"
#include "sim/layers/memory_change.h"
#include "sim/layers/priced_parts.h"

namespace tpsim {

struct PhaseCost {
  HostDeviceTime time;
  SecondsBy<kWorkTerms.back()> work;         // sums to time.device
  SecondsBy<PriceSource::kModel> by_source;  // without collectives
  MemoryChange memory;
  double load = 1;           // of the busiest rank's experts (sim/layers/expert_prices.h)
  std::int64_t experts = 1;  // per rank in a block
};
PhaseCost then(const PhaseCost& first, const PhaseCost& second);
PhaseCost repeat(const PhaseCost& once, std::int64_t n);

// Costs per micro-batch.
struct LayerCost {
  PhaseCost forward, backward;
  PhaseCost
      accumulate;  // after the chunk's backward: gradients are added to the accumulation buffer
};

// Memory only; known from the trace without pricing.
struct LayerMemory {
  MemoryChange forward, backward, accumulate;
  double gradients =
      0;  // bytes of whole gradients that backward holds in addition to the kept ones
};

// Costs per step, independent of the number of micro-batches.
struct FixedCost {
  BytesByCategory held{};    // weights, gradients, optimizer state
  BytesByCategory update{};  // allocated during the step's end, for all layers at once
  StepEndCost end;
  Bytes host;  // in host memory, if host and device memory are separate
  // For a block: one gradient in the weights' dtype per distinct weight shape.
  Bytes stand_ins = {};
};

// P2P transfer of an activation to the next stage.
struct TransferCost {
  Seconds wire;      // between stages
  Seconds gather;    // inside the receiving tensor group
  double bytes = 0;  // of the whole activation
};

}  // namespace tpsim
