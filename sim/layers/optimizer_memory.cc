#include "sim/layers/optimizer_memory.h"

#include "core/software/optimizer_kinds.h"

namespace tpsim {

void narrow_optimizer(Program& program, const StackSpec& stack) {
  const bool has_copy = stack.parts.master_weights != MasterWeights::kNone;
  for (AllocationRecord& allocation : program.allocations) {
    if (allocation.category != MemoryCategory::kOptimizer) continue;
    if (allocation.label == name_of(StateTensor::kMaster)) {
      if (!has_copy) allocation.bytes = 0;
      continue;
    }
    allocation.bytes =
        allocation.bytes / size_of(DType::kFloat32) * size_of(stack.parts.optimizer_dtype);
  }
}

}  // namespace tpsim
