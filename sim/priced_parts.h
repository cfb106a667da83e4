// What the time of an op or a collective counts as, by the part of the model that it belongs to.
#pragma once

#include "core/program.h"
#include "sim/seconds_by.h"

namespace tpsim {

// What a device is busy with in forward and backward.
enum class WorkKind : std::uint8_t {
  kMatmul,                // linear layers
  kAttention,             // scores, softmax, values
  kElementwise,           // norms, activations, residuals, embedding, loss
  kTensorCommunication,   // inside the tensor group
  kZeroCommunication,     // gathers and reductions of ZeRO 2 and 3 around every layer
  kContextCommunication,  // keys and values over the context group
  kExpertCommunication,   // tokens on their way to experts and back
};
inline constexpr int kWorkKindCount = 7;

// Of a layer, forward or backward.
WorkKind work_of(const OpRecord& op);
WorkKind work_of(const CollectiveRecord& collective);

// What a rank does once per step, outside the pipeline.
enum class StepEndPart : std::uint8_t {
  kZeroGrad,
  kSequenceParallelGradients,
  kEmbeddingGradients,  // shared by first and last stage
  kDataParallelReduction,
  kGradNorm,   // sum of squares, without the all-reduce of the one number
  kOptimizer,  // offloaded: with the copies between device and host
  kParameterGather,
};
inline constexpr int kStepEndPartCount = static_cast<int>(StepEndPart::kParameterGather) + 1;
using StepEndCost = SecondsBy<StepEndPart, kStepEndPartCount>;

// Of an op or collective outside the pipeline.
StepEndPart end_part(const Label& label);

}  // namespace tpsim
