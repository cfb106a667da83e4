// Ops that the GPU has no kernels for yet. Training asks Device::computes_all() first, so that none
// of them is reached.
#include "core/check.h"
#include "kernels/cuda/cuda_ops.h"

namespace tpsim {

#define TPSIM_LATER_OP(AnyOp)                                                          \
  void compute(const AnyOp& op, CudaState& /*state*/) {                                \
    TPSIM_CHECK(false, std::string(op.label.text) + ": the GPU has no kernel for it"); \
  }
TPSIM_LATER_OP(HeadNormForward)
TPSIM_LATER_OP(HeadNormBackward)
TPSIM_LATER_OP(SoftCapForward)
TPSIM_LATER_OP(SoftCapBackward)
TPSIM_LATER_OP(PositionScale)
TPSIM_LATER_OP(HeadSum)
TPSIM_LATER_OP(ColumnBias)
TPSIM_LATER_OP(ColumnBiasGradient)
#undef TPSIM_LATER_OP

}  // namespace tpsim
