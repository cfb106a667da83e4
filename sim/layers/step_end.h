// The parts of a step around its pipeline that depend on the schedule.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/software/stack_spec.h"
#include "sim/layers/layer_cost.h"

namespace tpsim {

// End of a stage's step up to the global norm, where all ranks synchronize.
struct BeforeNorm {
  Seconds tied, reduction,
      local;  // local: reduction of sequence-parallel gradients, sums of squares
  Seconds total() const { return tied + reduction + local; }
};

// Exposed time of a reduction that overlaps with the last micro-batch's backward, including the
// slowdown of the overlapped compute.
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

// From the global norm on, without the weight gather.
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

// Without other stages to wait for, the host runs ahead over micro-batches: its work per
// micro-batch precedes the forward in the queue.
inline HostDeviceTime single_stage_forward(const StackSpec& stack, const HostDeviceTime& forward) {
  const Seconds fixed = stack.host.per_micro_batch;
  return then(HostDeviceTime{fixed, Seconds(), fixed}, forward);
}

// Time that forward and backward of a micro-batch through a chunk occupy a pipeline stage.
struct PassTimes {
  Seconds forward, backward;
};

// With overlapped P2P, interleaved chunks receive in separate calls: a stream waits for them while
// the host runs ahead.
inline bool runs_ahead(const StackSpec& stack, std::int64_t chunks) {
  return chunks > 1 && stack.parts.overlap_p2p;
}

// If the host runs ahead, host time counts only if the host is the slower queue over both passes.
// Otherwise the host waits for every receive, and every pass begins with empty queues.
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
