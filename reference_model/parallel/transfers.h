// What travels between ranks outside the layers: tokens inside a tensor group, activations and
// their gradients between pipeline stages.
//
// With scatter_gather_transfers each tensor-parallel rank sends its part and the receivers gather
// it inside their tensor group: less over the network, more over the links of the node.
#pragma once

#include <vector>

#include "reference_model/parallel/rank_context.h"

namespace tpsim {

void send_to_stage(const RankContext& context, Communicator& pipeline, const Tensor& x, int stage,
                   const char* label);
// A tensor of residual_shape(context).
Tensor receive_from_stage(const RankContext& context, Communicator& pipeline, int stage,
                          const char* label);

// Tokens shift .. shift + seq of every sample (seq + 1 tokens each, sample by sample), of these the
// positions of this rank: [seq / cp, batch] int32 on every rank of the tensor group. Its first rank
// has the samples; the others pass none.
Tensor share_tokens(const RankContext& context, const std::vector<std::int32_t>& samples,
                    std::int64_t shift, const char* label);

}  // namespace tpsim
