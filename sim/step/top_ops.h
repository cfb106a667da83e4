// The ops and collectives of one block by device time, each with formula and inputs of its price.
#pragma once

#include <string>
#include <vector>

#include "sim/layers/layer_pricer.h"

namespace tpsim {

struct TopOp {
  std::string label;       // "mlp.up"
  std::string how;         // formula and inputs of the price
  std::int64_t calls = 0;  // per block and micro-batch, forward and backward
  Seconds time;            // of all calls
  double share = 0;        // of the block's device time
};

// Returns the `most` longest, with equal calls merged. 8-bit GEMMs are listed with their casts.
std::vector<TopOp> top_ops(const LayerPricer& pricer, const Plan& plan, std::size_t most);

}  // namespace tpsim
