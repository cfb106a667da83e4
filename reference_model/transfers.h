// Activations and their gradients on the way between pipeline stages.
//
// With scatter_gather_transfers each tensor-parallel rank sends its part and the receivers gather it
// inside their tensor group: less over the network, more over the links of the node.
#pragma once

#include "reference_model/rank_context.h"

namespace tpsim {

void send_to_stage(const RankContext& context, Communicator& pipeline, const Tensor& x, int stage,
                   const char* label);
// A tensor of residual_shape(context).
Tensor receive_from_stage(const RankContext& context, Communicator& pipeline, int stage,
                          const char* label);

}  // namespace tpsim
