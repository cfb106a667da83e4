// The ops and collectives of one block with the largest device time, with formula and inputs of
// each price.
#pragma once

#include <string>
#include <vector>

#include "sim/layers/layer_pricer.h"

namespace tpsim::app {

// Returns the name of a pass that a recipe adds over an operand, such as "quantized to nvfp4 by
// rows"; empty for other ops.
std::string name_of_pass(const OpRecord& op);

struct TopOp {
  std::string label;       // "mlp.up"
  std::string how;         // formula and inputs of the price
  std::int64_t calls = 0;  // per block and micro-batch, forward and backward
  Seconds time;            // device time of all calls
  double share = 0;        // share of the block's device time
};

// Returns the `most` ops and collectives with the largest time; equal calls are merged.
// Low-precision GEMMs and their quantization passes are separate entries.
std::vector<TopOp> top_ops(LayerPricer& pricer, const Plan& plan, std::size_t most);

}  // namespace tpsim::app
