#include "core/report.h"

#include <algorithm>

#include "core/check.h"

namespace tpsim {

Bytes StageMemory::total() const {
  Bytes sum = context + fragmentation;
  for (const Bytes bytes : by_category) sum += bytes;
  return sum;
}

std::string_view name_of(StepTerm term) {
  switch (term) {
    case StepTerm::kMatmul: return "matmul";
    case StepTerm::kAttention: return "attention";
    case StepTerm::kRecurrence: return "recurrence";
    case StepTerm::kElementwise: return "elementwise";
    case StepTerm::kTensorCommunication: return "tensor_communication";
    case StepTerm::kZeroCommunication: return "zero_communication";
    case StepTerm::kContextCommunication: return "context_communication";
    case StepTerm::kExpertCommunication: return "expert_communication";
    case StepTerm::kGroupedProducts: return "grouped_products";
    case StepTerm::kPermutation: return "permutation";
    case StepTerm::kImbalance: return "expert_imbalance";
    case StepTerm::kHostWait: return "host_wait";
    case StepTerm::kTransfer: return "pipeline_transfer";
    case StepTerm::kBubble: return "pipeline_bubble";
    case StepTerm::kGradientReduction: return "gradient_reduction";
    case StepTerm::kTiedEmbedding: return "tied_embedding";
    case StepTerm::kClipping: return "gradient_clipping";
    case StepTerm::kOptimizer: return "optimizer";
    case StepTerm::kWeightGather: return "weight_gather";
    case StepTerm::kHostStep: return "host_step";
    case StepTerm::kStragglers: return "stragglers";
    case StepTerm::kUnmodelled: return "unmodelled";
  }
  return "?";
}

Seconds time_of(const Prediction& predicted, StepTerm term) {
  const auto found = std::find_if(predicted.breakdown.begin(), predicted.breakdown.end(),
                                  [&](const Term& row) { return row.kind == term; });
  TPSIM_CHECK(found != predicted.breakdown.end(),
              "a breakdown without " + std::string(name_of(term)));
  return found->time;
}

std::string_view name_of(Provenance provenance) {
  switch (provenance) {
    case Provenance::kMeasuredHere: return "measured";
    case Provenance::kPublished: return "published";
    case Provenance::kDatasheet: return "datasheet";
  }
  return "?";
}

}  // namespace tpsim
