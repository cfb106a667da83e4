// Lower bounds of the end of a step in closed form. sim/step/step_end.h has the times.
#pragma once

#include <algorithm>

#include "core/software/cpu_optimizers.h"
#include "lowering/passes/step_habits.h"
#include "sim/layers/layer_cost.h"

namespace tpsim {

// Returns a lower bound of the time that calls add to kernels that may run at the same time: the
// overlap is at most the shorter of both, without the calls of `alone`, and slows each.
inline Seconds least_time_beside(Seconds calls, Seconds alone, Seconds kernels, double slowdown) {
  return calls - std::max(0.0, 2 - slowdown) * std::min(calls - alone, kernels);
}

// Kernels that may run at the same time as work at the end of a step.
struct OverlappingTasks {
  Seconds last_backward;  // tasks that compute the last weight gradients
  Seconds first_forward;
  Seconds beside_update;  // part of last_backward
};
// Lower bounds of the time from a stage's last task to the global norm, and of its update.
struct LeastEnd {
  Seconds before_norm, update;
};
// `first`: part of `end`, of the layer that runs first. Nothing runs beside its collectives.
inline LeastEnd least_end(const StackSpec& stack, const Plan& plan, const StepEndCost& end,
                          const StepEndCost& first, const OverlappingTasks& tasks) {
  const auto least = [&](StepEndPart part, bool overlaps, Seconds kernels, double slowdown) {
    return least_time_beside(end[part], first[part], overlaps ? kernels : Seconds(), slowdown);
  };
  const double slowdown = stack.overlap_slowdown;
  const bool updates_in_backward =
      offloads_optimizer(plan) && row_of(cpu_optimizer(stack)).overlaps_backward;
  return {end[StepEndPart::kEmbeddingGradients] + end[StepEndPart::kSequenceParallelGradients] +
              end[StepEndPart::kGradNorm] +
              least(StepEndPart::kDataParallelReduction, overlaps_reduction(stack),
                    tasks.last_backward, slowdown),
          end[StepEndPart::kZeroGrad] +
              least(StepEndPart::kOptimizer, updates_in_backward, tasks.beside_update, 1) +
              least(StepEndPart::kParameterGather, overlaps_gather(stack), tasks.first_forward,
                    slowdown)};
}

}  // namespace tpsim
