// The CPU's implementation of each op; CpuDevice::execute() visits an op with these.
//
// Operands may alias where kernels/ops.h says so, element for element.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "kernels/cpu/scratch.h"
#include "kernels/ops.h"

namespace tpsim {

// What outlives an op: working memory and tables.
struct CpuState {
  Scratch scratch;
  // Cosine and sine by (theta, head_dim): [position][pair][cos, sin], grown as positions are met.
  std::map<std::pair<float, std::int64_t>, std::vector<float>> rotary_tables;
};

void compute(const Matmul&, CpuState&);
void compute(const NormForward&, CpuState&);
void compute(const NormBackward&, CpuState&);
void compute(const SoftmaxForward&, CpuState&);
void compute(const SoftmaxBackward&, CpuState&);
void compute(const FlashForward&, CpuState&);
void compute(const FlashBackward&, CpuState&);
void compute(const Rotary&, CpuState&);
void compute(const BiasGeluForward&, CpuState&);
void compute(const BiasGeluBackward&, CpuState&);
void compute(const SwigluForward&, CpuState&);
void compute(const SwigluBackward&, CpuState&);
void compute(const BiasResidual&, CpuState&);
void compute(const DropoutForward&, CpuState&);
void compute(const DropoutBackward&, CpuState&);
void compute(const ColumnSum&, CpuState&);
void compute(const EmbeddingForward&, CpuState&);
void compute(const EmbeddingBackward&, CpuState&);
void compute(const PositionForward&, CpuState&);
void compute(const PositionBackward&, CpuState&);
void compute(const RouteForward&, CpuState&);
void compute(const RouteBackward&, CpuState&);
void compute(const DispatchTokens&, CpuState&);
void compute(const CombineTokens&, CpuState&);
void compute(const RouteWeightGradient&, CpuState&);
void compute(const VocabMax&, CpuState&);
void compute(const VocabSums&, CpuState&);
void compute(const CrossEntropyLoss&, CpuState&);
void compute(const CrossEntropyBackward&, CpuState&);
void compute(const Add&, CpuState&);
void compute(const Scale&, CpuState&);
void compute(const Fill&, CpuState&);
void compute(const Copy&, CpuState&);
void compute(const CopyMatrices&, CpuState&);
void compute(const Cast&, CpuState&);
void compute(const SumSquares&, CpuState&);
void compute(const AdamW&, CpuState&);
void compute(const InitNormal&, CpuState&);

}  // namespace tpsim
