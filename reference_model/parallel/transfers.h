// Transfers outside the layers: tokens inside a tensor group (Megatron's broadcast_data), and
// activations and their gradients between pipeline stages (send_forward, recv_forward,
// send_backward, recv_backward in Megatron's p2p_communication).
//
// With PipelineSends::kScattered each tensor-parallel rank sends a 1 / tp slice, and the receivers
// all-gather the slices in their tensor group: less traffic between nodes, more inside a node.
#pragma once

#include <vector>

#include "reference_model/parallel/rank_context.h"

namespace tpsim {

inline constexpr Label kActivationMessage{ModelPart::kPipeline, "pipeline.activation"};
inline constexpr Label kGradientMessage{ModelPart::kPipelineGradients, "pipeline.gradient"};

// `label`: one of the two above.
void send_to_stage(const RankContext& context, Communicator& pipeline, const Tensor& x, int stage,
                   const Label& label);
// Returns a tensor of residual_shape(context).
Tensor receive_from_stage(const RankContext& context, Communicator& pipeline, int stage,
                          const Label& label);

// Broadcasts tokens over the tensor group. Returns [seq / cp, batch] int32: this rank's positions
// of tokens shift .. shift + seq of each sample. The first rank of the group passes `samples` (seq
// + 1 tokens for each sample, sample by sample), the others pass none.
Tensor share_tokens(const RankContext& context, const std::vector<std::int32_t>& samples,
                    std::int64_t shift, const char* label);

}  // namespace tpsim
