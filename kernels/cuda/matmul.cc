// Matrix products as strided batches, as few as the operands' layout allows.
#include <algorithm>

#include "core/check.h"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/low_precision.h"

namespace tpsim {
namespace {

constexpr std::int64_t kLargestBatch = 65535;  // of one launch

// One of two loops over batches is left to cuBLASLt; the other, if any, is ours.
struct Batches {
  std::int64_t calls = 1, in_call = 1;
  // Of a, b and c, between calls and inside one.
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

std::int64_t alignment_of(const void* address, std::int64_t at_most) {
  const auto bits = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address));
  const std::int64_t lowest = bits & -bits;
  return std::min(lowest, at_most);
}

// What such a product keeps in scratch memory, each on 256 bytes.
struct NarrowScratch {
  std::byte* next;

  template <class T>
  T* take(std::int64_t count) {
    constexpr std::int64_t kAligned = 256;
    std::byte* const here = next;
    next += (count * static_cast<std::int64_t>(sizeof(T)) + kAligned - 1) / kAligned * kAligned;
    return reinterpret_cast<T*>(here);
  }
};

// op(a) and op(b) transposed, in 8 bits; cuBLASLt wants what is added up side by side (sm_89 and
// sm_90 have no other layout). Rows of the first may be any number.
struct NarrowOperands {
  NarrowMatrix a, b;
  float* work = nullptr;
  float* sums = nullptr;  // where cuBLASLt does not write c itself
  std::byte* end = nullptr;
};

NarrowOperands operands_in(NarrowScratch scratch, const Matmul& op, bool writes_c) {
  NarrowOperands x;
  const std::int64_t depth = narrow_multiple(op.a.transposed ? op.a.rows : op.a.cols);
  x.a = {nullptr, op.c.rows, depth, scratch.take<float>(1)};
  x.b = {nullptr, narrow_multiple(op.c.cols), depth, scratch.take<float>(1)};
  x.work = scratch.take<float>(kNarrowWork);
  x.a.data = scratch.take<std::uint8_t>(x.a.rows * depth);
  x.b.data = scratch.take<std::uint8_t>(x.b.rows * depth);
  if (!writes_c) x.sums = scratch.take<float>(x.a.rows * x.b.rows);
  x.end = scratch.next;
  return x;
}

// Columns that cuBLASLt has no 8-bit products for are added from a result of its own.
bool writes_itself(const Matrix& c) {
  const std::int64_t size = size_of(c.tensor.dtype());
  return c.cols % kNarrowMultiple == 0 && c.row_stride * size % kNarrowMultiple == 0 &&
         alignment_of(address(c, 0), kNarrowMultiple) == kNarrowMultiple;
}

// One scale a matrix, found on the GPU (Precision::kFp8Current).
void multiply_in_8_bits(const Matmul& op, CudaState& state) {
  TPSIM_CHECK(op.rounding.recipe == Precision::kFp8Current, "a recipe that CUDA does not run");
  TPSIM_CHECK(op.outer * op.inner == 1 && op.alpha == 1.0F, "one product in 8 bits at a time");
  const bool writes_c = writes_itself(op.c);
  std::byte* workspace = static_cast<std::byte*>(state.scratch.bytes(kMatmulWorkspace));
  const std::int64_t bytes =
      operands_in({workspace + kMatmulWorkspace}, op, writes_c).end - workspace;
  workspace = static_cast<std::byte*>(state.scratch.bytes(bytes));
  const NarrowOperands x = operands_in({workspace + kMatmulWorkspace}, op, writes_c);
  narrow({op.a, op.a.transposed, op.rounding.a_is_gradient, x.a, x.work}, state);
  narrow({op.b, !op.b.transposed, false, x.b, x.work}, state);

  MatmulKey key;
  key.dtype = DType::kFloat8;
  key.a_is_e5m2 = op.rounding.a_is_gradient;
  key.output = writes_c ? op.c.tensor.dtype() : DType::kFloat32;
  key.transpose_b = true;
  key.accumulates = writes_c && op.beta != 0.0F;
  key.sizes = {1, op.c.rows, x.b.rows, x.a.depth};
  key.row_strides = {x.a.depth, x.b.depth, writes_c ? op.c.row_stride : x.b.rows};
  void* const c = writes_c ? static_cast<void*>(address(op.c, 0)) : x.sums;
  key.alignment = alignment_of(c, 256);
  MatmulCall call{key, x.a.data, x.b.data, c, 1.0F, writes_c ? op.beta : 0.0F};
  call.scale_a = x.a.scale;
  call.scale_b = x.b.scale;
  state.matmuls.run(call, workspace, state.stream);
  if (!writes_c) add_sums(x.sums, x.b.rows, op.beta, op.c, state);
}

}  // namespace

void compute(const Matmul& op, CudaState& state) {
  if (op.rounding.recipe != Precision::kNone) return multiply_in_8_bits(op, state);
  const Batches batches = batches_of(op);
  MatmulCall call{key_of(op, batches), nullptr, nullptr, nullptr, op.alpha, op.beta};
  void* const workspace = state.scratch.bytes(kMatmulWorkspace);
  for (std::int64_t i = 0; i < batches.calls; ++i) {
    call.a = address(op.a, i * batches.call_strides[0]);
    call.b = address(op.b, i * batches.call_strides[1]);
    call.c = address(op.c, i * batches.call_strides[2]);
    call.key.alignment = alignment_of(call.a, alignment_of(call.b, alignment_of(call.c, 256)));
    state.matmuls.run(call, workspace, state.stream);
  }
}

}  // namespace tpsim
