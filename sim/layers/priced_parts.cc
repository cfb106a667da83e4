#include "sim/layers/priced_parts.h"

#include <optional>

namespace tpsim {
namespace {

// The term of a model part's ops in a layer, and their part at the end of a step. Collectives in
// layers count by their group instead.
struct Counted {
  // kMatmul applies to GEMMs only; other ops of the part count as elementwise.
  std::optional<StepTerm> in_layer;
  std::optional<StepEndPart> at_end;
};

Counted counted(ModelPart part) {
  constexpr Counted kNowhere;
  switch (part) {
    case ModelPart::kAttentionCore: return {StepTerm::kAttention, {}};
    case ModelPart::kRecurrence: return {StepTerm::kRecurrence, {}};
    case ModelPart::kAttentionLinear:
    case ModelPart::kLatentUp:
    case ModelPart::kRecurrentLinear:
    case ModelPart::kMlpLinear:
    case ModelPart::kAdapter:
    case ModelPart::kLatentExperts:
    case ModelPart::kHead: return {StepTerm::kMatmul, {}};
    case ModelPart::kExperts: return {StepTerm::kGroupedProducts, {}};
    case ModelPart::kRouter:
    case ModelPart::kPermute:
    case ModelPart::kDispatch: return {StepTerm::kPermute, {}};
    case ModelPart::kEmbedding:
    case ModelPart::kNorm:
    case ModelPart::kAttentionNorm:
    case ModelPart::kBiasGradient:
    case ModelPart::kRotary:
    case ModelPart::kContextParallel:
    case ModelPart::kActivation:
    case ModelPart::kExpertActivation:
    case ModelPart::kResidual:
    case ModelPart::kLoss:
    case ModelPart::kMicroBatchGradients: return {StepTerm::kElementwise, {}};
    // At the end of the step, these ops cast gradient shards for the optimizer.
    case ModelPart::kGradientAccumulation: return {StepTerm::kElementwise, StepEndPart::kOptimizer};
    case ModelPart::kZeroGrad: return {{}, StepEndPart::kZeroGrad};
    case ModelPart::kSequenceParallelGradients:
      return {{}, StepEndPart::kSequenceParallelGradients};
    case ModelPart::kEmbeddingGradients: return {{}, StepEndPart::kEmbeddingGradients};
    case ModelPart::kDataParallelReduction: return {{}, StepEndPart::kDataParallelReduction};
    case ModelPart::kGradNorm: return {{}, StepEndPart::kGradNorm};
    case ModelPart::kOptimizer:
    case ModelPart::kGradientsToHost:
    case ModelPart::kHostOptimizer:
    case ModelPart::kWeightsToDevice: return {{}, StepEndPart::kOptimizer};
    case ModelPart::kParameterGather: return {{}, StepEndPart::kParameterGather};
    case ModelPart::kTensorParallel:
    case ModelPart::kColumnParallelBackward:
    case ModelPart::kPipeline:
    case ModelPart::kPipelineGradients:
    case ModelPart::kData:
    case ModelPart::kReporting:
    case ModelPart::kInitialization:
    case ModelPart::kCoordination:
    case ModelPart::kMeasurement: return kNowhere;
  }
  return kNowhere;
}

}  // namespace

StepTerm work_term_of_copy(const Label& label) {
  const std::optional<StepTerm> term = counted(label.part).in_layer;
  TPSIM_CHECK(term.has_value(), std::string("layers do no work of ") + label.text);
  return *term == StepTerm::kMatmul ? StepTerm::kElementwise : *term;
}

StepTerm work_term(const OpRecord& op) {
  const bool is_linear =
      op.key.kind == OpKind::kMatmul && counted(op.label.part).in_layer == StepTerm::kMatmul;
  return is_linear ? StepTerm::kMatmul : work_term_of_copy(op.label);
}

StepTerm work_term(const CollectiveRecord& collective) {
  switch (collective.group) {
    case GroupKind::kTensor:
    case GroupKind::kExpertTensor: return StepTerm::kTensorCommunication;
    case GroupKind::kContext: return StepTerm::kContextCommunication;
    case GroupKind::kExpert: return StepTerm::kExpertCommunication;
    case GroupKind::kData:
    case GroupKind::kExpertData: return StepTerm::kZeroCommunication;
    case GroupKind::kPipeline:
    case GroupKind::kEmbedding:
    case GroupKind::kModel:
    case GroupKind::kWorld: break;
  }
  TPSIM_CHECK(false, std::string("layers run no collective of ") + collective.label.text);
}

StepEndPart end_part(const Label& label) {
  const std::optional<StepEndPart> part = counted(label.part).at_end;
  TPSIM_CHECK(part.has_value(), std::string("a step does not end with ") + label.text);
  return *part;
}

}  // namespace tpsim
