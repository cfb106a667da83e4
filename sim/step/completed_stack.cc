#include "sim/step/completed_stack.h"

#include "costs/machine_cluster.h"

namespace tpsim {

StackSpec completed_stack(StackSpec stack, const PartValues& parts, const Scenario& scenario) {
  stack = with_parts(std::move(stack), parts);
  stack = stack_as_measured(std::move(stack), scenario.profile);
  return scenario.cluster.name == kThisMachine
             ? stack_on_machine(std::move(stack), scenario.profile)
             : stack;
}

}  // namespace tpsim
