// GEMMs, norms, activations, tables, the loss and the optimizer.
#include "kernels/slow/slow_ops.h"

#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "kernels/normal_stream.h"

namespace tpsim {
namespace {

using Index = std::int64_t;

double element(const double* data, const Matrix& m, Index batch, Index row, Index col) {
  return m.transposed ? data[m.offset + batch + col * m.row_stride + row]
                      : data[m.offset + batch + row * m.row_stride + col];
}

Index local(double token, Index begin, Index count) {
  const Index row = std::lround(token) - begin;
  return row >= 0 && row < count ? row : -1;
}

}  // namespace

void compute_slowly(const Matmul& op, const SlowMemory& memory) {
  TPSIM_CHECK(op.rounding.recipe == Precision::kNone,
              "the reference device does not quantize operands");
  const double *a = memory.at(op.a.tensor), *b = memory.at(op.b.tensor);
  double* c = memory.at(op.c.tensor);
  const Index depth = op.a.transposed ? op.a.rows : op.a.cols;
  for (Index batch = 0; batch < op.outer * op.inner; ++batch) {
    const auto at = [&](const Matrix& m) {
      return batch / op.inner * m.outer_stride + batch % op.inner * m.inner_stride;
    };
    for (Index i = 0; i < op.c.rows; ++i) {
      for (Index j = 0; j < op.c.cols; ++j) {
        double sum = 0;
        for (Index k = 0; k < depth; ++k) {
          sum += element(a, op.a, at(op.a), i, k) * element(b, op.b, at(op.b), k, j);
        }
        double& out = c[op.c.offset + at(op.c) + i * op.c.row_stride + j];
        const double before = op.beta == 0.0F ? 0.0 : static_cast<double>(op.beta) * out;
        out = static_cast<double>(op.alpha) * sum + before;
      }
    }
  }
}

void compute_slowly(const NormForward& op, const SlowMemory& memory) {
  const double *x = memory.at(op.x), *gain = memory.at(op.gain), *bias = memory.at(op.bias);
  double *y = memory.at(op.y), *mean = memory.at(op.mean), *rstd = memory.at(op.rstd);
  const Index n = op.x.cols();
  for (Index row = 0; row < op.x.rows(); ++row, x += n, y += n) {
    double average = 0, squares = 0;
    if (op.kind == NormKind::kLayerNorm) {
      for (Index c = 0; c < n; ++c) average += x[c] / static_cast<double>(n);
    }
    for (Index c = 0; c < n; ++c) squares += (x[c] - average) * (x[c] - average);
    const double r =
        1.0 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(op.epsilon));
    for (Index c = 0; c < n; ++c) {
      y[c] = (x[c] - average) * r * (gain[c] + static_cast<double>(op.offset)) +
             (bias != nullptr ? bias[c] : 0.0);
    }
    rstd[row] = r;
    if (mean != nullptr) mean[row] = average;
  }
}

void compute_slowly(const NormBackward& op, const SlowMemory& memory) {
  const double *x = memory.at(op.x), *dy = memory.at(op.dy), *gain = memory.at(op.gain);
  const double *mean = memory.at(op.mean), *rstd = memory.at(op.rstd);
  const double* residual = memory.at(op.residual);
  double *dx = memory.at(op.dx), *dgain = memory.at(op.dgain), *dbias = memory.at(op.dbias);
  const bool centred = op.kind == NormKind::kLayerNorm;
  const auto offset = static_cast<double>(op.offset);
  const Index n = op.x.cols();
  for (Index row = 0; row < op.x.rows(); ++row) {
    const double centre = centred ? mean[row] : 0.0;
    const auto xhat = [&](Index c) { return (x[row * n + c] - centre) * rstd[row]; };
    double g = 0, g_xhat = 0;
    for (Index c = 0; c < n; ++c) {
      const double slope = dy[row * n + c] * (gain[c] + offset) / static_cast<double>(n);
      if (centred) g += slope;
      g_xhat += slope * xhat(c);
    }
    for (Index c = 0; c < n; ++c) {
      const double slope = dy[row * n + c];
      if (dgain != nullptr) dgain[c] += slope * xhat(c);
      if (dbias != nullptr) dbias[c] += slope;
      dx[row * n + c] = rstd[row] * (slope * (gain[c] + offset) - g - xhat(c) * g_xhat) +
                        (residual != nullptr ? residual[row * n + c] : 0.0);
    }
  }
}

void compute_slowly(const ColumnBias& op, const SlowMemory& memory) {
  double* x = memory.at(op.x.tensor);
  for (Index i = 0; i < op.x.rows * op.x.cols; ++i) {
    const Index row = i / op.x.cols, col = i % op.x.cols;
    x[op.x.offset + row * op.x.row_stride + col] += memory.at(op.bias)[col];
  }
}

void compute_slowly(const ColumnBiasGradient& op, const SlowMemory& memory) {
  const double* dy = memory.at(op.dy.tensor);
  for (Index i = 0; i < op.dy.rows * op.dy.cols; ++i) {
    const Index row = i / op.dy.cols, col = i % op.dy.cols;
    memory.at(op.sums)[col] += dy[op.dy.offset + row * op.dy.row_stride + col];
  }
}

void compute_slowly(const SoftCapForward& op, const SlowMemory& memory) {
  const double* x = memory.at(op.x);
  double* y = memory.at(op.y);
  const auto cap = static_cast<double>(op.cap);
  for (Index i = 0; i < op.x.elements(); ++i) {
    y[i] = cap * std::tanh(static_cast<double>(op.scale) * x[i] / cap);
  }
}

void compute_slowly(const SoftCapBackward& op, const SlowMemory& memory) {
  const double* y = memory.at(op.y);
  double* dy = memory.at(op.dy);
  for (Index i = 0; i < op.y.elements(); ++i) {
    const double t = y[i] / static_cast<double>(op.cap);
    dy[i] *= static_cast<double>(op.scale) * (1.0 - t * t);
  }
}

void compute_slowly(const BiasResidual& op, const SlowMemory& memory) {
  const double *x = memory.at(op.x), *bias = memory.at(op.bias);
  const double* residual = memory.at(op.residual);
  double* y = memory.at(op.y);
  for (Index i = 0; i < op.x.elements(); ++i) {
    y[i] = x[i] + (bias != nullptr ? bias[i % op.x.cols()] : 0.0) +
           (residual != nullptr ? residual[i] : 0.0);
  }
}

void compute_slowly(const DropoutForward& op, const SlowMemory& memory) {
  const double *x = memory.at(op.x), *bias = memory.at(op.bias);
  const double* residual = memory.at(op.residual);
  double *y = memory.at(op.y), *mask = memory.at(op.mask);
  for (Index i = 0; i < op.x.elements(); ++i) {
    mask[i] = dropout_keeps(op.seed, static_cast<std::uint64_t>(i), op.rate) ? 1.0 : 0.0;
    const double branch = x[i] + (bias != nullptr ? bias[i % op.x.cols()] : 0.0);
    y[i] = mask[i] * branch / (1.0 - static_cast<double>(op.rate)) +
           (residual != nullptr ? residual[i] : 0.0);
  }
}

void compute_slowly(const DropoutBackward& op, const SlowMemory& memory) {
  const double *dy = memory.at(op.dy), *mask = memory.at(op.mask);
  double* dx = memory.at(op.dx);
  for (Index i = 0; i < op.dy.elements(); ++i) {
    dx[i] = mask[i] * dy[i] / (1.0 - static_cast<double>(op.rate));
  }
}

void compute_slowly(const ColumnSum& op, const SlowMemory& memory) {
  const double* x = memory.at(op.x);
  double* sums = memory.at(op.sums);
  for (Index i = 0; i < op.x.elements(); ++i) sums[i % op.x.cols()] += x[i];
}

void compute_slowly(const EmbeddingForward& op, const SlowMemory& memory) {
  const double *tokens = memory.at(op.tokens), *table = memory.at(op.table);
  double* y = memory.at(op.y);
  const Index n = op.y.cols();
  for (Index i = 0; i < op.y.elements(); ++i) {
    const Index row = local(tokens[i / n], op.vocab_begin, op.table.rows());
    y[i] = row < 0 ? 0.0 : table[row * n + i % n];
  }
}

void compute_slowly(const EmbeddingBackward& op, const SlowMemory& memory) {
  const double *tokens = memory.at(op.tokens), *dy = memory.at(op.dy);
  double* dtable = memory.at(op.dtable);
  const Index n = op.dy.cols();
  for (Index i = 0; i < op.dy.elements(); ++i) {
    const Index row = local(tokens[i / n], op.vocab_begin, op.dtable.rows());
    if (row >= 0) dtable[row * n + i % n] += dy[i];
  }
}

void compute_slowly(const PositionForward& op, const SlowMemory& memory) {
  const double* table = memory.at(op.table);
  double* x = memory.at(op.x);
  const Index n = op.x.cols(), samples = op.x.shape()[1];
  for (Index i = 0; i < op.x.elements(); ++i) x[i] += table[i / n / samples * n + i % n];
}

void compute_slowly(const PositionBackward& op, const SlowMemory& memory) {
  const double* dy = memory.at(op.dy);
  double* dtable = memory.at(op.dtable);
  const Index n = op.dy.cols(), samples = op.dy.shape()[1];
  for (Index i = 0; i < op.dy.elements(); ++i) dtable[i / n / samples * n + i % n] += dy[i];
}

void compute_slowly(const VocabMax& op, const SlowMemory& memory) {
  const double* logits = memory.at(op.logits);
  double* max = memory.at(op.max);
  for (Index t = 0; t < op.logits.rows(); ++t) {
    max[t] = -std::numeric_limits<double>::infinity();
    for (Index c = 0; c < op.columns; ++c) {
      max[t] = std::fmax(max[t], logits[t * op.logits.cols() + c]);
    }
  }
  if (!op.sums.defined()) return;
  compute_slowly(
      VocabSums{op.logits, op.max, op.labels, op.sums, op.vocab_begin, op.columns, op.label},
      memory);
}

void compute_slowly(const VocabRescale& op, const SlowMemory& memory) {
  const double *own = memory.at(op.own), *max = memory.at(op.max), *labels = memory.at(op.labels);
  double* sums = memory.at(op.sums);
  const Index rows = op.max.elements();
  for (Index t = 0; t < rows; ++t) {
    sums[t] *= std::exp(own[t] - max[t]);
    if (local(labels[t], op.vocab_begin, op.columns) >= 0) sums[rows + t] += own[t] - max[t];
  }
}

void compute_slowly(const VocabSums& op, const SlowMemory& memory) {
  const double *logits = memory.at(op.logits), *max = memory.at(op.max);
  const double* labels = memory.at(op.labels);
  double* sums = memory.at(op.sums);
  const Index rows = op.logits.rows(), cols = op.logits.cols();
  for (Index t = 0; t < rows; ++t) {
    sums[t] = 0;
    for (Index c = 0; c < op.columns; ++c) sums[t] += std::exp(logits[t * cols + c] - max[t]);
    const Index label = local(labels[t], op.vocab_begin, op.columns);
    sums[rows + t] = label < 0 ? 0.0 : logits[t * cols + label] - max[t];
  }
}

void compute_slowly(const CrossEntropyLoss& op, const SlowMemory& memory) {
  const double* sums = memory.at(op.sums);
  double* loss = memory.at(op.loss);
  const Index rows = op.loss.elements();
  for (Index t = 0; t < rows; ++t) loss[t] = std::log(sums[t]) - sums[rows + t];
}

void compute_slowly(const CrossEntropyBackward& op, const SlowMemory& memory) {
  const double *max = memory.at(op.max), *sums = memory.at(op.sums);
  const double* labels = memory.at(op.labels);
  double* logits = memory.at(op.logits);
  const Index cols = op.logits.cols();
  for (Index i = 0; i < op.logits.elements(); ++i) {
    const Index t = i / cols, c = i % cols;
    const bool is_label = local(labels[t], op.vocab_begin, op.columns) == c;
    const double slope = std::exp(logits[i] - max[t]) / sums[t] - (is_label ? 1.0 : 0.0);
    logits[i] = c < op.columns ? static_cast<double>(op.scale) * slope : 0.0;
  }
}

void compute_slowly(const Add& op, const SlowMemory& memory) {
  const double* x = memory.at(op.x);
  double* into = memory.at(op.into);
  for (Index i = 0; i < op.x.elements(); ++i) into[i] += x[i];
}

void compute_slowly(const Scale& op, const SlowMemory& memory) {
  double* x = memory.at(op.x);
  for (Index i = 0; i < op.x.elements(); ++i) x[i] *= static_cast<double>(op.factor);
}

void compute_slowly(const Fill& op, const SlowMemory& memory) {
  double* x = memory.at(op.x);
  for (Index i = 0; i < op.x.elements(); ++i) x[i] = static_cast<double>(op.value);
}

void compute_slowly(const Copy& op, const SlowMemory& memory) {
  const double* from = memory.at(op.from);
  double* to = memory.at(op.to);
  for (Index i = 0; i < op.from.elements(); ++i) to[i] = from[i];
}

void compute_slowly(const CopyMatrices& op, const SlowMemory& memory) {
  const double* from = memory.at(op.from.tensor);
  double* to = memory.at(op.to.tensor);
  for (Index batch = 0; batch < op.outer * op.inner; ++batch) {
    const auto at = [&](const Matrix& m) {
      return batch / op.inner * m.outer_stride + batch % op.inner * m.inner_stride;
    };
    for (Index row = 0; row < op.from.rows; ++row) {
      for (Index col = 0; col < op.from.cols; ++col) {
        to[op.to.offset + at(op.to) + row * op.to.row_stride + col] =
            element(from, op.from, at(op.from), row, col);
      }
    }
  }
}

void compute_slowly(const Cast& op, const SlowMemory& memory) {
  compute_slowly(Copy{op.from, op.to, op.label}, memory);
}

void compute_slowly(const SumSquares& op, const SlowMemory& memory) {
  const double* x = memory.at(op.x);
  double* sum = memory.at(op.sum);
  for (Index i = 0; i < op.x.elements(); ++i) *sum += x[i] * x[i];
}

void compute_slowly(const Axpby& op, const SlowMemory& memory) {
  const double* x = memory.at(op.x);
  double* y = memory.at(op.y);
  double alpha = static_cast<double>(op.alpha);
  if (op.squares.defined()) {
    alpha /= std::fmax(std::sqrt(*memory.at(op.squares)), static_cast<double>(op.epsilon));
  }
  const double beta = static_cast<double>(op.beta);
  for (Index i = 0; i < op.x.elements(); ++i) {
    y[i] = alpha * x[i] + (op.beta == 0.0F ? 0.0 : beta * y[i]);
  }
}

void compute_slowly(const AdamW& op, const SlowMemory& memory) {
  double *x = memory.at(op.master), *m = memory.at(op.momentum), *v = memory.at(op.variance);
  double* weights = memory.at(op.weights);
  const double* gradient = memory.at(op.gradient);
  const double beta1 = static_cast<double>(op.beta1), beta2 = static_cast<double>(op.beta2);
  const double step = static_cast<double>(op.step);
  for (Index i = 0; i < op.master.elements(); ++i) {
    const double g = static_cast<double>(op.gradient_scale) * gradient[i];
    m[i] = beta1 * m[i] + (1.0 - beta1) * g;
    v[i] = beta2 * v[i] + (1.0 - beta2) * g * g;
    const double m_hat = m[i] / (1.0 - std::pow(beta1, step));
    const double v_hat = v[i] / (1.0 - std::pow(beta2, step));
    x[i] -= static_cast<double>(op.rate) *
            (m_hat / (std::sqrt(v_hat) + static_cast<double>(op.epsilon)) +
             static_cast<double>(op.decay) * x[i]);
    weights[i] = x[i];
  }
}

void compute_slowly(const InitNormal& op, const SlowMemory& memory) {
  double* x = memory.at(op.x);
  const std::uint64_t key = stream_key(op.seed, op.tensor_id);
  for (Index i = 0; i < op.x.elements(); ++i) {
    const Index row = op.row_begin + i / op.x.cols(), col = op.col_begin + i % op.x.cols();
    x[i] = static_cast<double>(op.deviation) *
           normal_at(key, static_cast<std::uint64_t>(row * op.global_cols + col));
  }
}

}  // namespace tpsim
