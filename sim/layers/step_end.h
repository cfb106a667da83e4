// The parts of a step around its pipeline, as far as the schedule decides them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/software/stack_spec.h"
#include "sim/layers/layer_cost.h"

namespace tpsim {

// A stage's end of step up to the point where all ranks meet for the global norm.
struct BeforeNorm {
  Seconds tied, reduction, local;  // local: sequence-parallel partial sums, sums of squares
  Seconds total() const { return tied + reduction + local; }
};

// Reduction that runs beside the last micro-batch's backward is hidden as far as that backward
// lasts; the compute beside it slows down.
inline Seconds exposed_reduction(const StackSpec& stack, Seconds reduction, Seconds last_backward) {
  if (!stack.training.overlap_gradient_reduction) return reduction;
  const Seconds hidden = std::min(reduction, last_backward);
  return reduction - hidden + (stack.overlap_slowdown - 1.0) * hidden;
}

inline Seconds exposed_gather(const StackSpec& stack, Seconds gather, Seconds first_forward) {
  if (!stack.training.overlap_parameter_gather) return gather;
  const Seconds hidden = std::min(gather, first_forward);
  return gather - hidden + (stack.overlap_slowdown - 1.0) * hidden;
}

// From the global norm on, without the gather of weights.
inline Seconds update_time(const StepEndCost& end) {
  return end[StepEndPart::kOptimizer] + end[StepEndPart::kZeroGrad];
}

// `last_backward`: of one micro-batch through all chunks of the stage.
inline BeforeNorm before_norm(const StackSpec& stack, const StepEndCost& end,
                              Seconds last_backward) {
  const Seconds reduction = end[StepEndPart::kDataParallelReduction];
  return {end[StepEndPart::kEmbeddingGradients], exposed_reduction(stack, reduction, last_backward),
          end[StepEndPart::kSequenceParallelGradients] + end[StepEndPart::kGradNorm]};
}

// Without stages to wait for, the host runs ahead over micro-batches: its work for one of them
// comes before the forward's in the queue.
inline HostDeviceTime single_stage_forward(const StackSpec& stack, const HostDeviceTime& forward) {
  const Seconds fixed = stack.host.per_micro_batch;
  return then(HostDeviceTime{fixed, Seconds(), fixed}, forward);
}

// What the passes of one micro-batch through a chunk keep a stage of a pipeline busy.
struct PassTimes {
  Seconds forward, backward;
};

// Chunks that are interleaved receive with calls of their own where p2p overlaps: a stream waits
// for them and the host runs on from pass to pass.
inline bool runs_ahead(const StackSpec& stack, std::int64_t chunks) {
  return chunks > 1 && stack.parts.overlap_p2p;
}

// What a host that runs ahead takes shows only where it is the slower queue over both passes.
// Elsewhere the host waits for what it receives, and every pass begins with both queues empty.
inline PassTimes pass_times(const StackSpec& stack, const HostDeviceTime& forward,
                            const HostDeviceTime& backward, std::int64_t chunks) {
  const Seconds alone = forward.alone() + stack.host.per_micro_batch;
  if (!runs_ahead(stack, chunks)) return {alone, backward.alone()};
  const Seconds forward_host = std::max(Seconds(), alone - forward.device);
  const Seconds backward_host = std::max(Seconds(), backward.alone() - backward.device);
  const Seconds both = forward_host + backward_host;
  if (both <= Seconds()) return {forward.device, backward.device};
  const HostDeviceTime once = then(single_stage_forward(stack, forward), backward);
  const double shown = std::max(0.0, (period(once) - once.device) / both);
  return {forward.device + shown * forward_host, backward.device + shown * backward_host};
}

}  // namespace tpsim
