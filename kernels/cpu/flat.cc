// Ops on flat arrays: copies, sums, the optimizer and initial values.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/adamw_factors.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/floats.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/normal_stream.h"

namespace tpsim {
namespace {

// Elements per window. Five fp32 windows take 20 KiB and fit in the L1 cache.
constexpr std::int64_t kWindow = 1024;

template <class Visit>
void for_each_window(std::int64_t elements, Visit visit) {
  for (std::int64_t first = 0; first < elements; first += kWindow) {
    visit(first, std::min(kWindow, elements - first));
  }
}

struct AdamWWindow {
  float *master, *momentum, *variance;
  const float* gradient;
};

void adamw_step(const AdamWFactors& f, std::int64_t count, const AdamWWindow& w) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = f.gradient_scale * w.gradient[i];
    const float m = f.beta1 * w.momentum[i] + f.one_minus_beta1 * g;
    const float v = f.beta2 * w.variance[i] + f.one_minus_beta2 * g * g;
    const float x = w.master[i];
    w.momentum[i] = m;
    w.variance[i] = v;
    const float root = std::sqrt(v) * f.inverse_root_correction2 + f.epsilon;
    w.master[i] = x - (f.rate * m / root + f.decayed * x);
  }
}

}  // namespace

void compute(const Add& op, CpuState& state) {
  const FloatWindow x(op.x, kWindow, state.scratch), into(op.into, kWindow, state.scratch);
  for_each_window(op.x.elements(), [&](std::int64_t first, std::int64_t count) {
    const float* from = x.load(first, count);
    float* to = into.load(first, count);
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
    into.store(first, count);
  });
}

void compute(const Scale& op, CpuState& state) {
  const FloatWindow x(op.x, kWindow, state.scratch);
  for_each_window(op.x.elements(), [&](std::int64_t first, std::int64_t count) {
    float* values = x.load(first, count);
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) values[i] *= op.factor;
    x.store(first, count);
  });
}

void compute(const Fill& op, CpuState& state) {
  const FloatWindow x(op.x, kWindow, state.scratch);
  for_each_window(op.x.elements(), [&](std::int64_t first, std::int64_t count) {
    std::fill_n(x.blank(first), count, op.value);
    x.store(first, count);
  });
}

void compute(const Copy& op, CpuState&) {
  std::memmove(op.to.raw(), op.from.raw(), static_cast<std::size_t>(op.from.bytes()));
}

void compute(const CopyMatrices& op, CpuState&) {
  const DType dtype = op.from.tensor.dtype();
  const auto row_bytes = static_cast<std::size_t>(op.from.cols * size_of(dtype));
  const auto row_of = [&](const Matrix& m, std::int64_t batch, std::int64_t row) {
    return element_address(m.tensor.raw(), dtype,
                           m.offset + batch / op.inner * m.outer_stride +
                               batch % op.inner * m.inner_stride + row * m.row_stride);
  };
  for (std::int64_t batch = 0; batch < op.outer * op.inner; ++batch) {
    for (std::int64_t row = 0; row < op.from.rows; ++row) {
      std::memcpy(row_of(op.to, batch, row), row_of(op.from, batch, row), row_bytes);
    }
  }
}

void compute(const Cast& op, CpuState& state) {
  const FloatWindow from(op.from, kWindow, state.scratch), to(op.to, kWindow, state.scratch);
  for_each_window(op.from.elements(), [&](std::int64_t first, std::int64_t count) {
    std::copy_n(from.load(first, count), count, to.blank(first));
    to.store(first, count);
  });
}

void compute(const SumSquares& op, CpuState& state) {
  const FloatWindow x(op.x, kWindow, state.scratch);
  double total = 0;
  for_each_window(op.x.elements(), [&](std::int64_t first, std::int64_t count) {
    const float* values = x.load(first, count);
    total += sum_of(count, [&](std::int64_t i) { return values[i] * values[i]; });
  });
  float* sum = op.sum.data<float>();
  *sum = static_cast<float>(static_cast<double>(*sum) + total);
}

void compute(const AdamW& op, CpuState& state) {
  const AdamWFactors factors = factors_of(op);
  const FloatWindow gradient(op.gradient, kWindow, state.scratch);
  const FloatWindow weights(op.weights, kWindow, state.scratch);
  const bool separate_weights = op.weights.raw() != op.master.raw();
  for_each_window(op.master.elements(), [&](std::int64_t first, std::int64_t count) {
    const AdamWWindow window{op.master.data<float>() + first, op.momentum.data<float>() + first,
                             op.variance.data<float>() + first, gradient.load(first, count)};
    adamw_step(factors, count, window);
    if (!separate_weights) return;
    std::copy_n(window.master, count, weights.blank(first));
    weights.store(first, count);
  });
}

void compute(const Axpby& op, CpuState& state) {
  const FloatWindow x(op.x, kWindow, state.scratch), y(op.y, kWindow, state.scratch);
  float alpha = op.alpha;
  if (op.squares.defined()) {
    alpha /= std::max(std::sqrt(*op.squares.data<float>()), op.epsilon);
  }
  for_each_window(op.x.elements(), [&](std::int64_t first, std::int64_t count) {
    const float* from = x.load(first, count);
    if (op.beta == 0.0F) {
      float* to = y.blank(first);
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) to[i] = alpha * from[i];
    } else {
      float* to = y.load(first, count);
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) to[i] = alpha * from[i] + op.beta * to[i];
    }
    y.store(first, count);
  });
}

void compute(const InitNormal& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  const FloatWindow x(op.x, cols, state.scratch);
  const std::uint64_t key = stream_key(op.seed, op.tensor_id);
  for (std::int64_t row = 0; row < op.x.rows(); ++row) {
    const std::int64_t index = (op.row_begin + row) * op.global_cols + op.col_begin;
    float* values = x.blank(row * cols);
    for (std::int64_t c = 0; c < cols; ++c) {
      values[c] = static_cast<float>(static_cast<double>(op.deviation) *
                                     normal_at(key, static_cast<std::uint64_t>(index + c)));
    }
    x.store(row * cols, cols);
  }
}

}  // namespace tpsim
