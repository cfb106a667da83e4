// What one block's device time goes into: its ops and collectives by their share, each with the
// formula and the inputs of its price.
#pragma once

#include <string>
#include <vector>

#include "sim/layers/layer_pricer.h"

namespace tpsim {

struct TopOp {
  std::string label;       // "mlp.up"
  std::string how;         // what its price is made of, and where that comes from
  std::int64_t calls = 0;  // of one block and micro-batch, forward and backward
  Seconds time;            // of all calls
  double share = 0;        // of the block's device time
};

// The `most` heaviest, equal calls put together. Products in 8 bits are shown with their casts.
std::vector<TopOp> top_ops(const LayerPricer& pricer, const Plan& plan, std::size_t most);

}  // namespace tpsim
