// Each op by its definition, on doubles; no thought for speed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "kernels/ops.h"

namespace tpsim {

// The memory of a SlowDevice: a double behind every element.
class SlowMemory {
 public:
  // The tensor's elements; null for an undefined tensor.
  double* at(const Tensor& tensor) const;

  void* acquire(std::int64_t bytes);
  void give_back(void* data);

 private:
  std::map<std::uintptr_t, std::unique_ptr<double[]>> blocks_;
};

void compute_slowly(const Matmul&, const SlowMemory&);
void compute_slowly(const NormForward&, const SlowMemory&);
void compute_slowly(const NormBackward&, const SlowMemory&);
void compute_slowly(const SoftmaxForward&, const SlowMemory&);
void compute_slowly(const SoftmaxBackward&, const SlowMemory&);
void compute_slowly(const FlashForward&, const SlowMemory&);
void compute_slowly(const FlashBackward&, const SlowMemory&);
void compute_slowly(const Rotary&, const SlowMemory&);
void compute_slowly(const BiasGeluForward&, const SlowMemory&);
void compute_slowly(const BiasGeluBackward&, const SlowMemory&);
void compute_slowly(const SwigluForward&, const SlowMemory&);
void compute_slowly(const SwigluBackward&, const SlowMemory&);
void compute_slowly(const BiasResidual&, const SlowMemory&);
void compute_slowly(const DropoutForward&, const SlowMemory&);
void compute_slowly(const DropoutBackward&, const SlowMemory&);
void compute_slowly(const ColumnSum&, const SlowMemory&);
void compute_slowly(const EmbeddingForward&, const SlowMemory&);
void compute_slowly(const EmbeddingBackward&, const SlowMemory&);
void compute_slowly(const PositionForward&, const SlowMemory&);
void compute_slowly(const PositionBackward&, const SlowMemory&);
void compute_slowly(const RouteForward&, const SlowMemory&);
void compute_slowly(const RouteBackward&, const SlowMemory&);
void compute_slowly(const DispatchTokens&, const SlowMemory&);
void compute_slowly(const CombineTokens&, const SlowMemory&);
void compute_slowly(const RouteWeightGradient&, const SlowMemory&);
void compute_slowly(const VocabMax&, const SlowMemory&);
void compute_slowly(const VocabSums&, const SlowMemory&);
void compute_slowly(const CrossEntropyLoss&, const SlowMemory&);
void compute_slowly(const CrossEntropyBackward&, const SlowMemory&);
void compute_slowly(const Add&, const SlowMemory&);
void compute_slowly(const Scale&, const SlowMemory&);
void compute_slowly(const Fill&, const SlowMemory&);
void compute_slowly(const Copy&, const SlowMemory&);
void compute_slowly(const CopyMatrices&, const SlowMemory&);
void compute_slowly(const Cast&, const SlowMemory&);
void compute_slowly(const SumSquares&, const SlowMemory&);
void compute_slowly(const AdamW&, const SlowMemory&);
void compute_slowly(const InitNormal&, const SlowMemory&);

}  // namespace tpsim
