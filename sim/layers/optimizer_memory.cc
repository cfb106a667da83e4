#include "sim/layers/optimizer_memory.h"

#include <string_view>

namespace tpsim {

void narrow_optimizer(Program& program, LayerKind kind, const StackSpec& stack) {
  const bool has_one_moment =
      kind == LayerKind::kBlock && stack.parts.optimizer_kind == OptimizerKind::kMuon;
  const bool has_copy = stack.parts.master_weights != MasterWeights::kNone;
  for (AllocationRecord& allocation : program.allocations) {
    if (allocation.category != MemoryCategory::kOptimizer) continue;
    const std::string_view label = allocation.label;
    const bool is_moment = label == "momentum" || label == "variance";
    if (is_moment) allocation.bytes = allocation.bytes / 4 * size_of(stack.parts.optimizer_dtype);
    if (label == "variance" && has_one_moment) allocation.bytes = 0;
    if (label == "master_weights" && !has_copy) allocation.bytes = 0;
  }
}

}  // namespace tpsim
