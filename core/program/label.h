// The model part to which an op or collective belongs. Prices and reports group by part; reports
// show the text.
#pragma once

#include <cstdint>

namespace tpsim {

enum class ModelPart : std::uint8_t {
  // Layers, forward and backward.
  kEmbedding,        // word embeddings and learned positions
  kNorm,             // before or after a branch of the block
  kAttentionNorm,    // of queries, keys and latents
  kAttentionLinear,  // GEMMs with weights of attention, and their biases
  kLatentUp,         // up-projections of latent attention
  kRecurrentLinear,  // GEMMs of a recurrence's projections
  kRecurrence,       // convolution, scan, norm and gate of a recurrence
  kMlpLinear,
  kAdapter,  // GEMMs and other ops of low-rank adapters
  kBiasGradient,
  kRotary,
  kAttentionCore,    // scores, softmax, values; flash attention
  kContextParallel,  // exchange of keys, values and their gradients in the context group
  kActivation,       // GELU, SwiGLU of the dense part or of shared experts
  kResidual,         // bias, dropout and residual at the end of a branch
  kRouter,           // of experts, including the top-k selection
  kLatentExperts,    // projections around experts that work on a latent
  kExperts,          // GEMMs of experts
  kExpertActivation,
  kPermute,   // permute and unpermute of tokens
  kDispatch,  // all-to-all to the experts' ranks and back
  kHead,      // logits
  kLoss,
  kTensorParallel,          // collectives on entering or leaving a tensor-parallel region
                            // (reference_model/parallel/mappings.h)
  kColumnParallelBackward,  // the same for a column-parallel layer in backward: reduction of the
                            // dgrad and re-gather of the input; can overlap with GEMMs
  kPipeline,                // activations between stages
  kPipelineGradients,       // their gradients
  kData,                    // tokens of a micro-batch

  // Gradients and weights.
  kZeroGrad,                   // clears gradients before the first micro-batch
  kMicroBatchGradients,        // clears a separate gradient buffer before backward, unless a GEMM
                               // overwrites it
  kGradientAccumulation,       // adds that buffer to the step's gradients
  kSequenceParallelGradients,  // reduces those of weights replicated in the tensor group
  kEmbeddingGradients,         // reduces those of tied embeddings over first and last stage
  kDataParallelReduction,
  kGradNorm,
  kOptimizer,
  kGradientsToHost,  // this and the next two only with optimizer offload
  kHostOptimizer,
  kWeightsToDevice,
  kParameterGather,

  // Outside the steps.
  kReporting,       // the loss that a step reports
  kInitialization,  // of weights and optimizer state
  kCoordination,    // small exchanges between ranks: stop flag, barrier, fp8 scales
  kMeasurement,     // ops of benchmarks, tests and modelled ranks
};

// Whether the part consists of the GEMMs of a block's linear layers.
constexpr bool is_linear(ModelPart part) {
  return part == ModelPart::kAttentionLinear || part == ModelPart::kLatentUp ||
         part == ModelPart::kRecurrentLinear || part == ModelPart::kMlpLinear ||
         part == ModelPart::kLatentExperts || part == ModelPart::kExperts;
}

// Model part and location of an op or collective.
struct Label {
  constexpr Label(ModelPart of, const char* words) : part(of), text(words) {}

  ModelPart part;
  const char* text;  // location in the model: "attention.qkv"; static storage
};

}  // namespace tpsim
