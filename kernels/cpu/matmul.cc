// Batched matrix products. fp32 operands are multiplied where they lie; narrower ones are widened
// into scratch, one batch at a time.
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/floats.h"
#include "kernels/cpu/gemm.h"

namespace tpsim {
namespace {

// One operand: hands out its batches as fp32 matrices.
class Operand {
 public:
  Operand(const Matrix& matrix, Scratch& scratch) : matrix_(matrix) {
    if (matrix.tensor.dtype() != DType::kFloat32) {
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

}  // namespace

void compute(const Matmul& op, CpuState& state) {
  const Operand a(op.a, state.scratch);
  const Operand b(op.b, state.scratch);
  const Operand c(op.c, state.scratch);
  for (std::int64_t i = 0; i < op.outer; ++i) {
    for (std::int64_t j = 0; j < op.inner; ++j) {
      const auto offset = [&](const Matrix& x) { return i * x.outer_stride + j * x.inner_stride; };
      const std::int64_t c_offset = offset(op.c);
      gemm(a.widened(offset(op.a)), b.widened(offset(op.b)), c.output(c_offset, op.beta != 0.0F),
           c.output_stride(), op.alpha, op.beta);
      c.commit_output(c_offset);
    }
  }
}

}  // namespace tpsim
