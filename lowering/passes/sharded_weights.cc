// Gathers of sharded weights. DeepSpeed gathers the weights of experts that run in a loop matrix by
// matrix.
#include <cmath>

#include "lowering/passes/lower.h"

namespace tpsim {

void gather_sharded_weights(LoweredLayer& layer, const LayerInputs& inputs) {
  const StackSpec& stack = inputs.scenario.stack;
  const ModelSpec& model = inputs.scenario.model;
  const bool in_loop = stack.parts.expert_kernel == ExpertKernel::kLooped &&
                       stack.host.per_gather > Seconds() && has_experts(model);
  if (!in_loop) return;
  const auto modules = static_cast<double>(mlp_matrices(model) * local_experts(inputs));
  for (LoweredCollective& record : layer.collectives) {
    if (record.label.part != ModelPart::kParameterGather || record.bytes <= 0) continue;
    record.calls = modules;
    record.bytes = std::llround(static_cast<double>(record.bytes) / modules);
  }
}

}  // namespace tpsim
