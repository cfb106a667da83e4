// CUDA's implementation of each op; CudaDevice::execute() visits an op with these.
//
// They issue work to the state's stream and return. Operands may alias where kernels/ops.h says so,
// element for element.
#pragma once

#include "kernels/cuda/cuda_state.h"
#include "kernels/ops.h"

namespace tpsim {

void compute(const Matmul&, CudaState&);
void compute(const NormForward&, CudaState&);
void compute(const NormBackward&, CudaState&);
void compute(const SoftmaxForward&, CudaState&);
void compute(const SoftmaxBackward&, CudaState&);
void compute(const FlashForward&, CudaState&);
void compute(const FlashBackward&, CudaState&);
void compute(const Rotary&, CudaState&);
void compute(const BiasGeluForward&, CudaState&);
void compute(const BiasGeluBackward&, CudaState&);
void compute(const SwigluForward&, CudaState&);
void compute(const SwigluBackward&, CudaState&);
void compute(const BiasResidual&, CudaState&);
void compute(const DropoutForward&, CudaState&);
void compute(const DropoutBackward&, CudaState&);
void compute(const ColumnSum&, CudaState&);
void compute(const EmbeddingForward&, CudaState&);
void compute(const EmbeddingBackward&, CudaState&);
void compute(const PositionForward&, CudaState&);
void compute(const PositionBackward&, CudaState&);
void compute(const RouteForward&, CudaState&);
void compute(const RouteBackward&, CudaState&);
void compute(const DispatchTokens&, CudaState&);
void compute(const CombineTokens&, CudaState&);
void compute(const RouteWeightGradient&, CudaState&);
void compute(const VocabMax&, CudaState&);
void compute(const VocabSums&, CudaState&);
void compute(const CrossEntropyLoss&, CudaState&);
void compute(const CrossEntropyBackward&, CudaState&);
void compute(const Add&, CudaState&);
void compute(const Scale&, CudaState&);
void compute(const Fill&, CudaState&);
void compute(const Copy&, CudaState&);
void compute(const CopyMatrices&, CudaState&);
void compute(const Cast&, CudaState&);
void compute(const SumSquares&, CudaState&);
void compute(const AdamW&, CudaState&);
void compute(const InitNormal&, CudaState&);

}  // namespace tpsim
