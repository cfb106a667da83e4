#include "core/plan/term_class.h"

namespace tpsim {

TermClass class_of(StepTerm term) {
  switch (term) {
    case StepTerm::kMatmul:
    case StepTerm::kAttention:
    case StepTerm::kRecurrence:
    case StepTerm::kElementwise:
    case StepTerm::kGroupedProducts:
    case StepTerm::kPermute: return TermClass::kCompute;
    case StepTerm::kTensorCommunication:
    case StepTerm::kZeroCommunication:
    case StepTerm::kContextCommunication:
    case StepTerm::kExpertCommunication:
    case StepTerm::kTransfer:
    case StepTerm::kGradientReduction:
    case StepTerm::kTiedEmbedding:
    case StepTerm::kWeightGather: return TermClass::kCommunication;
    case StepTerm::kHostWait:
    case StepTerm::kImbalance:
    case StepTerm::kBubble:
    case StepTerm::kHostStep:
    case StepTerm::kStragglers:
    case StepTerm::kUncalibratedOverhead: return TermClass::kWaiting;
    case StepTerm::kClipping:
    case StepTerm::kOptimizer: return TermClass::kUpdate;
  }
  return TermClass::kCompute;
}

}  // namespace tpsim
