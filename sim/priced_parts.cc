#include "sim/priced_parts.h"

#include <string>

#include "core/check.h"

namespace tpsim {

WorkKind work_of(const OpRecord& op) {
  switch (op.label.part) {
    case ModelPart::kAttentionCore: return WorkKind::kAttention;
    case ModelPart::kLinear:
    case ModelPart::kRouter:
    case ModelPart::kExperts:
    case ModelPart::kHead:
      return op.key.kind == OpKind::kMatmul ? WorkKind::kMatmul : WorkKind::kElementwise;
    case ModelPart::kEmbedding:
    case ModelPart::kNorm:
    case ModelPart::kRotary:
    case ModelPart::kContextParallel:
    case ModelPart::kActivation:
    case ModelPart::kResidual:
    case ModelPart::kLoss:
    case ModelPart::kMicroBatchGradients:
    case ModelPart::kGradientAccumulation: return WorkKind::kElementwise;
    case ModelPart::kTensorParallel:
    case ModelPart::kPipeline:
    case ModelPart::kData:
    case ModelPart::kZeroGrad:
    case ModelPart::kSequenceParallelGradients:
    case ModelPart::kEmbeddingGradients:
    case ModelPart::kDataParallelReduction:
    case ModelPart::kGradNorm:
    case ModelPart::kOptimizer:
    case ModelPart::kGradientsToHost:
    case ModelPart::kHostOptimizer:
    case ModelPart::kWeightsToDevice:
    case ModelPart::kParameterGather:
    case ModelPart::kReporting:
    case ModelPart::kInitialization:
    case ModelPart::kCoordination:
    case ModelPart::kMeasurement: break;
  }
  TPSIM_CHECK(false, std::string("layers run no op of ") + op.label.text);
}

WorkKind work_of(const CollectiveRecord& collective) {
  switch (collective.group) {
    case GroupKind::kTensor: return WorkKind::kTensorCommunication;
    case GroupKind::kContext: return WorkKind::kContextCommunication;
    case GroupKind::kExpert: return WorkKind::kExpertCommunication;
    case GroupKind::kData:
    case GroupKind::kExpertData: return WorkKind::kZeroCommunication;
    case GroupKind::kPipeline:
    case GroupKind::kEmbedding:
    case GroupKind::kModel:
    case GroupKind::kWorld: break;
  }
  TPSIM_CHECK(false, std::string("layers run no collective of ") + collective.label.text);
}

StepEndPart end_part(const Label& label) {
  switch (label.part) {
    case ModelPart::kZeroGrad: return StepEndPart::kZeroGrad;
    case ModelPart::kSequenceParallelGradients: return StepEndPart::kSequenceParallelGradients;
    case ModelPart::kEmbeddingGradients: return StepEndPart::kEmbeddingGradients;
    case ModelPart::kDataParallelReduction: return StepEndPart::kDataParallelReduction;
    case ModelPart::kGradNorm: return StepEndPart::kGradNorm;
    case ModelPart::kOptimizer:
    case ModelPart::kGradientsToHost:
    case ModelPart::kHostOptimizer:
    case ModelPart::kWeightsToDevice: return StepEndPart::kOptimizer;
    case ModelPart::kParameterGather: return StepEndPart::kParameterGather;
    case ModelPart::kEmbedding:
    case ModelPart::kNorm:
    case ModelPart::kLinear:
    case ModelPart::kRotary:
    case ModelPart::kAttentionCore:
    case ModelPart::kContextParallel:
    case ModelPart::kActivation:
    case ModelPart::kResidual:
    case ModelPart::kRouter:
    case ModelPart::kExperts:
    case ModelPart::kHead:
    case ModelPart::kLoss:
    case ModelPart::kTensorParallel:
    case ModelPart::kPipeline:
    case ModelPart::kData:
    case ModelPart::kMicroBatchGradients:
    case ModelPart::kGradientAccumulation:
    case ModelPart::kReporting:
    case ModelPart::kInitialization:
    case ModelPart::kCoordination:
    case ModelPart::kMeasurement: break;
  }
  TPSIM_CHECK(false, std::string("a step does not end with ") + label.text);
}

}  // namespace tpsim
