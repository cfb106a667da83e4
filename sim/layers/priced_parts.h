// Maps an op or collective to the term of the step in which its time counts.
#pragma once

#include "core/plan/report.h"
#include "sim/layers/seconds_by.h"

namespace tpsim {

// Return the term of an op or collective in forward or backward of a layer: one of kWorkTerms.
StepTerm work_term(const OpRecord& op);
StepTerm work_term(const CollectiveRecord& collective);
// Returns the term of a copy or cast for a model part.
StepTerm work_term_of_copy(const Label& label);

// Parts of a rank's work once per step, outside the pipeline.
enum class StepEndPart : std::uint8_t {
  kZeroGrad,
  kSequenceParallelGradients,
  kEmbeddingGradients,  // all-reduce for the embedding that first and last stage share
  kDataParallelReduction,
  kGradNorm,   // sum of squares, without the all-reduce of that sum
  kOptimizer,  // with offload: includes the copies between device and host
  kParameterGather,
};
using StepEndCost = SecondsBy<StepEndPart::kParameterGather>;

// Returns the part of an op or collective outside the pipeline.
StepEndPart end_part(const Label& label);

}  // namespace tpsim
