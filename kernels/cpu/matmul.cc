// Batched GEMM. fp32 operands are used in place; 16-bit operands are widened into scratch memory,
// one batch at a time.
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/floats.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/narrow_floats.h"

namespace tpsim {
namespace {

// One operand of a batched GEMM, with access to its matrices in fp32.
class Operand {
 public:
  Operand(const Matrix& matrix, Scratch& scratch, bool is_changed = false) : matrix_(matrix) {
    if (matrix.tensor.dtype() != DType::kFloat32 || is_changed) {
      buffer_ = scratch.floats(matrix.rows * matrix.cols);
    }
  }

  FloatMatrix widened(std::int64_t batch_offset) const {
    FloatMatrix result{buffer_, matrix_.rows, matrix_.cols, matrix_.cols, matrix_.transposed};
    if (buffer_ == nullptr) {
      result.data = matrix_.tensor.data<float>() + matrix_.offset + batch_offset;
      result.stride = matrix_.row_stride;
    } else {
      load(batch_offset);
    }
    return result;
  }

  // Returns one matrix of the batch, quantized. `sums_over_rows`: the GEMM sums over the rows of
  // the matrix as stored.
  FloatMatrix rounded(std::int64_t batch_offset, const RoundedAs& as, bool sums_over_rows) const {
    const FloatMatrix result = widened(batch_offset);
    if (as.recipe != Precision::kNone) {
      round_operand({buffer_, matrix_.rows, matrix_.cols, sums_over_rows}, as);
    }
    return result;
  }

  float* output(std::int64_t batch_offset, bool read_first) const {
    if (buffer_ == nullptr) return matrix_.tensor.data<float>() + matrix_.offset + batch_offset;
    if (read_first) load(batch_offset);
    return buffer_;
  }
  std::int64_t output_stride() const {
    return buffer_ == nullptr ? matrix_.row_stride : matrix_.cols;
  }

  void commit_output(std::int64_t batch_offset) const {
    if (buffer_ == nullptr) return;
    for (std::int64_t row = 0; row < matrix_.rows; ++row) {
      store_floats(buffer_ + row * matrix_.cols, matrix_.cols, matrix_.tensor.dtype(),
                   row_address(batch_offset, row));
    }
  }

 private:
  void load(std::int64_t batch_offset) const {
    for (std::int64_t row = 0; row < matrix_.rows; ++row) {
      load_floats(row_address(batch_offset, row), matrix_.tensor.dtype(), matrix_.cols,
                  buffer_ + row * matrix_.cols);
    }
  }
  void* row_address(std::int64_t batch_offset, std::int64_t row) const {
    return element_address(matrix_.tensor.raw(), matrix_.tensor.dtype(),
                           matrix_.offset + batch_offset + row * matrix_.row_stride);
  }

  const Matrix& matrix_;
  float* buffer_ = nullptr;
};

TensorScaling scaling_of(const OperandRounding& rounding, const Tensor& scale) {
  if (rounding.recipe != Precision::kFp8) return {};
  TPSIM_CHECK(scale.defined(), "the GEMM has no scale for its operand");
  auto* const of_steps = scale.data<float>();
  return {rounding.finds_scales ? 0 : of_steps[0], of_steps + 1};
}

}  // namespace

void compute(const Matmul& op, CpuState& state) {
  const bool rounds = op.rounding.recipe != Precision::kNone;
  const Operand a(op.a, state.scratch, rounds);
  const Operand b(op.b, state.scratch, rounds);
  const Operand c(op.c, state.scratch);
  const OperandRounding& by = op.rounding;
  const RoundedAs a_as{by.recipe, by.a_is_gradient, false, scaling_of(by, by.a_scale)};
  const RoundedAs b_as{by.recipe, false, by.b_is_weight, scaling_of(by, by.b_scale)};
  for (std::int64_t i = 0; i < op.outer; ++i) {
    for (std::int64_t j = 0; j < op.inner; ++j) {
      const auto offset = [&](const Matrix& x) { return i * x.outer_stride + j * x.inner_stride; };
      const std::int64_t c_offset = offset(op.c);
      gemm(a.rounded(offset(op.a), a_as, op.a.transposed),
           b.rounded(offset(op.b), b_as, !op.b.transposed), c.output(c_offset, op.beta != 0.0F),
           c.output_stride(), op.alpha, op.beta);
      c.commit_output(c_offset);
    }
  }
}

}  // namespace tpsim
