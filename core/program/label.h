// What an op or a collective belongs to. Prices and reports go by the part, people read the text.
#pragma once

#include <cstdint>

namespace tpsim {

enum class ModelPart : std::uint8_t {
  // Layers, forward and backward.
  kEmbedding,        // of words and learned positions
  kNorm,             // before or after a branch of the block
  kAttentionNorm,    // of queries, keys and latents
  kAttentionLinear,  // products with a block's weights, and their biases
  kLatentUp,         // of these, latent attention's projections up
  kRecurrentLinear,  // of a recurrence's mixer
  kRecurrence,       // its convolution, scan, norm and gate
  kMlpLinear,
  kBiasGradient,
  kRotary,
  kAttentionCore,    // scores, softmax, values; flash attention
  kContextParallel,  // keys, values and their gradients between the ranks that share a sequence
  kActivation,       // GELU, SwiGLU of the dense part or of shared experts
  kResidual,         // bias, dropout and residual at the end of a branch
  kRouter,           // of experts, and the choices that it makes
  kLatentExperts,    // products with the projections around experts that work on a latent
  kExperts,          // products with their weights
  kExpertActivation,
  kPermute,   // tokens put in their experts' order and back
  kDispatch,  // their way to the ranks of their experts and back
  kHead,      // logits
  kLoss,
  kTensorParallel,          // at the borders of the tensor-parallel region
                            // (reference_model/parallel/mappings.h)
  kColumnParallelBackward,  // there: the input gradient of a layer whose columns are split, and its
                            // input once more for its weight gradient; products can run beside
  kPipeline,                // activations and their gradients between stages
  kData,                    // tokens of a micro-batch

  // Gradients and weights.
  kZeroGrad,                   // before the first micro-batch
  kMicroBatchGradients,        // a buffer of their own, cleared where no product overwrites it
  kGradientAccumulation,       // from that buffer to the step's gradients
  kSequenceParallelGradients,  // of weights that every tensor-parallel rank repeats
  kEmbeddingGradients,         // of the table that first and last stage share
  kDataParallelReduction,
  kGradNorm,
  kOptimizer,
  kGradientsToHost,  // these three with the optimizer offloaded
  kHostOptimizer,
  kWeightsToDevice,
  kParameterGather,

  // Around the steps.
  kReporting,       // the loss that a step reports
  kInitialization,  // of weights and optimizer state
  kCoordination,    // what ranks agree on: to stop, to start together
  kMeasurement,     // ops that are timed, or stand for others
};

// Products with the weights of a block's linear layers.
constexpr bool is_linear(ModelPart part) {
  return part == ModelPart::kAttentionLinear || part == ModelPart::kLatentUp ||
         part == ModelPart::kRecurrentLinear || part == ModelPart::kMlpLinear ||
         part == ModelPart::kLatentExperts || part == ModelPart::kExperts;
}

// There is none without its part.
struct Label {
  constexpr Label(ModelPart of, const char* words) : part(of), text(words) {}

  ModelPart part;
  const char* text;  // where in the model: "attention.qkv"; static storage
};

}  // namespace tpsim
