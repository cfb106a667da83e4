// What the time of an op or a collective counts as, by the part of the model that it belongs to.
#pragma once

#include "core/plan/report.h"
#include "sim/layers/seconds_by.h"

namespace tpsim {

// In a layer's forward or backward: one of kWorkTerms.
StepTerm work_term(const OpRecord& op);
StepTerm work_term(const CollectiveRecord& collective);

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
using StepEndCost = SecondsBy<StepEndPart::kParameterGather>;

// Of an op or collective outside the pipeline.
StepEndPart end_part(const Label& label);

// Whether a collective gathers updated weights from the ranks that own them.
inline bool gathers_weights(const CollectiveRecord& record) {
  return record.label.part == ModelPart::kParameterGather;
}

}  // namespace tpsim
