// GEMMs as strided batches, with as few calls as the operands' layout allows.
#include <algorithm>

#include "kernels/cuda/linear/matmul_8_bits.h"
#include "kernels/cuda/runtime/cuda_ops.h"

namespace tpsim {
namespace {

constexpr std::int64_t kLargestBatch = 65535;  // per launch

// The batches of a GEMM as two nested loops: `calls` calls of cuBLASLt with `in_call` batches each.
struct Batches {
  std::int64_t calls = 1, in_call = 1;
  // Strides of a, b and c between calls and inside one call.
  std::array<std::int64_t, 3> call_strides{}, strides{};
};

Batches batches_of(const Matmul& op) {
  const std::array<const Matrix*, 3> operands = {&op.a, &op.b, &op.c};
  const bool merges =
      op.outer * op.inner <= kLargestBatch &&
      std::all_of(operands.begin(), operands.end(), [&](const Matrix* m) {
        return op.outer == 1 || op.inner == 1 || m->outer_stride == op.inner * m->inner_stride;
      });
  const bool inner_in_call = op.inner > 1 && (merges || op.inner >= op.outer);
  Batches batches;
  batches.in_call = merges ? op.outer * op.inner : (inner_in_call ? op.inner : op.outer);
  batches.calls = op.outer * op.inner / batches.in_call;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Matrix& m = *operands[i];
    batches.strides[i] = inner_in_call ? m.inner_stride : m.outer_stride;
    batches.call_strides[i] = inner_in_call ? m.outer_stride : m.inner_stride;
  }
  return batches;
}

MatmulKey key_of(const Matmul& op, const Batches& batches) {
  const std::int64_t k = op.a.transposed ? op.a.rows : op.a.cols;
  MatmulKey key;
  key.dtype = op.a.tensor.dtype();
  key.output = op.c.tensor.dtype();
  key.transpose_a = op.a.transposed;
  key.transpose_b = op.b.transposed;
  key.accumulates = op.beta != 0.0F;
  key.sizes = {batches.in_call, op.c.rows, op.c.cols, k};
  key.row_strides = {op.a.row_stride, op.b.row_stride, op.c.row_stride};
  if (batches.in_call > 1) key.batch_strides = batches.strides;
  return key;
}

std::byte* address(const Matrix& m, std::int64_t element) {
  return static_cast<std::byte*>(m.tensor.raw()) + (m.offset + element) * size_of(m.tensor.dtype());
}

// Returns the GEMM of batch (outer, inner) as an op without batches.
Matmul one_of(const Matmul& op, std::int64_t outer, std::int64_t inner) {
  Matmul one = op;
  one.outer = one.inner = 1;
  one.rounding.keeps_a = one.rounding.keeps_a && op.outer * op.inner == 1;
  for (Matrix* m : {&one.a, &one.b, &one.c}) {
    m->offset += outer * m->outer_stride + inner * m->inner_stride;
  }
  return one;
}

void multiply_each_in_8_bits(const Matmul& op, CudaState& state) {
  for (std::int64_t i = 0; i < op.outer; ++i) {
    for (std::int64_t j = 0; j < op.inner; ++j) multiply_in_8_bits(one_of(op, i, j), state);
  }
}

}  // namespace

void compute(const Matmul& op, CudaState& state) {
  if (op.rounding.recipe != Precision::kNone) return multiply_each_in_8_bits(op, state);
  const Batches batches = batches_of(op);
  MatmulCall call{key_of(op, batches), nullptr, nullptr, nullptr, op.alpha, op.beta};
  call.key.multiprocessors = state.product_multiprocessors();
  void* const workspace = state.scratch.bytes(kMatmulWorkspace);
  for (std::int64_t i = 0; i < batches.calls; ++i) {
    call.a = address(op.a, i * batches.call_strides[0]);
    call.b = address(op.b, i * batches.call_strides[1]);
    call.c = address(op.c, i * batches.call_strides[2]);
    call.key.alignment =
        std::min({alignment_of(call.a), alignment_of(call.b), alignment_of(call.c)});
    state.matmuls.run(call, workspace, state.stream);
  }
}

}  // namespace tpsim
