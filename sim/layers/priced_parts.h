// Maps the model part of an op or collective to the term that its time counts in.
#pragma once

#include "core/plan/report.h"
#include "sim/layers/seconds_by.h"

namespace tpsim {

// In forward or backward of a layer: one of kWorkTerms.
StepTerm work_term(const OpRecord& op);
StepTerm work_term(const CollectiveRecord& collective);

// Work of a rank once per step, outside the pipeline.
enum class StepEndPart : std::uint8_t {
  kZeroGrad,
  kSequenceParallelGradients,
  kEmbeddingGradients,  // of the table shared by first and last stage
  kDataParallelReduction,
  kGradNorm,   // sum of squares, without the all-reduce of the sum
  kOptimizer,  // with offload: including the copies between device and host
  kParameterGather,
};
using StepEndCost = SecondsBy<StepEndPart::kParameterGather>;

// For an op or collective outside the pipeline.
StepEndPart end_part(const Label& label);

// Whether the collective gathers updated weights from their owners.
inline bool gathers_weights(const CollectiveRecord& record) {
  return record.label.part == ModelPart::kParameterGather;
}

}  // namespace tpsim
