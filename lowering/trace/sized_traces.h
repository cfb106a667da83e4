// Traces of one layer for any number of micro-batch sizes.
//
// The ops and tensors of a layer do not depend on the size of the micro-batch. Their sizes are
// linear in it and, with experts, in the slots of an expert, whose number is rounded. Two or three
// traces therefore give every other one, without running the reference model.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lowering/trace/trace.h"

namespace tpsim {

class SizedTraces {
 public:
  // Returns the trace for plan.micro_batch, equal to that of trace_layers(). All calls must have
  // equal arguments except for the sizes of the micro-batch and the global batch. The reference is
  // valid until the next call.
  const LayerTrace& at(LayerKind kind, const ModelSpec& model, const Plan& plan,
                       const TrainingOptions& options);

 private:
  struct Sample {
    std::int64_t micro_batch = 0;
    std::int64_t slots = 0;  // of an expert, for the tokens of this rank
    LayerTrace trace;
  };
  const LayerTrace* known(std::int64_t micro_batch, std::int64_t slots);
  void add(Sample sample);

  std::vector<Sample> samples_;  // at most three, which differ in sizes alone
  // A trace with other ops than the samples: a micro-batch of one may need fewer copies.
  std::optional<Sample> other_;
  LayerTrace sized_;
};

}  // namespace tpsim
