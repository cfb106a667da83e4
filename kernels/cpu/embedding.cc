// Token and position embeddings, rotary embedding, and position-dependent scales.
#include <cmath>
#include <cstring>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/floats.h"

namespace tpsim {
namespace {

// Returns the table row of a token, or -1 if another rank has it.
std::int64_t local_row(std::int32_t token, std::int64_t vocab_begin, std::int64_t rows) {
  const std::int64_t row = token - vocab_begin;
  return row >= 0 && row < rows ? row : -1;
}

void add_into(const float* x, std::int64_t count, float* into) {
#pragma omp simd
  for (std::int64_t c = 0; c < count; ++c) into[c] += x[c];
}

// Returns the table [position][pair][cos, sin] for all positions up to the op's last. Angles are
// computed in double, because fp32 leaves large angles few digits after the point.
const std::vector<float>& rotary_table(const Rotary& op, CpuState& state) {
  const std::int64_t dim = op.dims.head_dim;
  std::vector<float>& table = state.rotary_tables[{op.theta, dim}];
  for (auto s = static_cast<std::int64_t>(table.size()) / dim; s < op.first_position + op.dims.seq;
       ++s) {
    for (std::int64_t d = 0; d < dim / 2; ++d) {
      const double exponent = 2.0 * static_cast<double>(d) / static_cast<double>(dim);
      const double angle =
          static_cast<double>(s) / std::pow(static_cast<double>(op.theta), exponent);
      table.push_back(static_cast<float>(std::cos(angle)));
      table.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return table;
}

// (a, b) -> (a cos - b sin, b cos + a sin) for the pairs (d, d + dim/2) of one head.
void rotate(float* x, std::int64_t dim, const float* table, float sign) {
  const std::int64_t half = dim / 2;
#pragma omp simd
  for (std::int64_t d = 0; d < half; ++d) {
    const float cosine = table[2 * d];
    const float sine = sign * table[2 * d + 1];
    const float a = x[d];
    const float b = x[d + half];
    x[d] = a * cosine - b * sine;
    x[d + half] = b * cosine + a * sine;
  }
}

// Writes cosine and sine of every pair at one position, for op.frequencies or op.theta.
void turn_table(const Rotary& op, std::int64_t position, float* table) {
  const std::int64_t half = op.dims.head_dim / 2;
  for (std::int64_t d = 0; d < half; ++d) {
    const double exponent = 2.0 * static_cast<double>(d) / static_cast<double>(op.dims.head_dim);
    const double frequency = op.frequencies.defined()
                                 ? static_cast<double>(op.frequencies.data<float>()[d])
                                 : std::pow(static_cast<double>(op.theta), -exponent);
    const double angle = static_cast<double>(position) * frequency;
    table[2 * d] = op.magnitude * static_cast<float>(std::cos(angle));
    table[2 * d + 1] = op.magnitude * static_cast<float>(std::sin(angle));
  }
}

// As rotate(), for the pairs (2d, 2d + 1).
void rotate_neighbours(float* x, std::int64_t dim, const float* table, float sign) {
  for (std::int64_t d = 0; d < dim; d += 2) {
    const float cosine = table[d], sine = sign * table[d + 1];
    const float a = x[d], b = x[d + 1];
    x[d] = a * cosine - b * sine;
    x[d + 1] = b * cosine + a * sine;
  }
}

}  // namespace

void compute(const PositionScale& op, CpuState& state) {
  const std::int64_t dim = op.dims.head_dim;
  const FloatWindow x(op.x.tensor, dim, state.scratch);
  for_each_head(op.dims, [&](std::int64_t position, std::int64_t sample, std::int64_t head) {
    const std::int64_t first = op.x.first(position, sample, head);
    const std::int64_t floors = (op.first_position + position + 1) / op.floor;
    const auto reached = static_cast<double>(floors);
    const auto factor =
        static_cast<float>(1 + static_cast<double>(op.strength) * std::log1p(reached));
    float* values = x.load(first, dim);
    for (std::int64_t d = 0; d < dim; ++d) values[d] *= factor;
    x.store(first, dim);
  });
}

void compute(const HeadSum& op, CpuState& state) {
  const std::int64_t dim = op.dims.head_dim;
  const FloatWindow x(op.x.tensor, dim, state.scratch), y(op.y.tensor, dim, state.scratch);
  AttentionDims one = op.dims;
  one.heads = 1;
  for_each_head(one, [&](std::int64_t position, std::int64_t sample, std::int64_t) {
    const std::int64_t first = op.y.first(position, sample, 0);
    float* sum = y.blank(first);
    std::fill_n(sum, dim, 0.0F);
    for (std::int64_t h = 0; h < op.dims.heads; ++h) {
      const float* head = x.load(op.x.first(position, sample, h), dim);
      for (std::int64_t d = 0; d < dim; ++d) sum[d] += head[d];
    }
    y.store(first, dim);
  });
}

void compute(const EmbeddingForward& op, CpuState& state) {
  const std::int64_t cols = op.y.cols();
  const FloatWindow table(op.table, cols, state.scratch), y(op.y, cols, state.scratch);
  const auto* tokens = op.tokens.data<std::int32_t>();
  for (std::int64_t t = 0; t < op.y.rows(); ++t) {
    const std::int64_t row = local_row(tokens[t], op.vocab_begin, op.table.rows());
    float* y_row = y.blank(t * cols);
    if (row >= 0) {
      std::memcpy(y_row, table.load(row * cols, cols), static_cast<std::size_t>(cols) * 4);
    } else {
      std::fill_n(y_row, cols, 0.0F);
    }
    y.store(t * cols, cols);
  }
}

void compute(const EmbeddingBackward& op, CpuState& state) {
  const std::int64_t cols = op.dy.cols();
  const FloatWindow dy(op.dy, cols, state.scratch), dtable(op.dtable, cols, state.scratch);
  const auto* tokens = op.tokens.data<std::int32_t>();
  for (std::int64_t t = 0; t < op.dy.rows(); ++t) {
    const std::int64_t row = local_row(tokens[t], op.vocab_begin, op.dtable.rows());
    if (row < 0) continue;
    add_into(dy.load(t * cols, cols), cols, dtable.load(row * cols, cols));
    dtable.store(row * cols, cols);
  }
}

void compute(const PositionForward& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  const std::int64_t samples = op.x.shape()[1];
  const FloatWindow x(op.x, cols, state.scratch), table(op.table, cols, state.scratch);
  for (std::int64_t row = 0; row < op.x.rows(); ++row) {
    add_into(table.load(row / samples * cols, cols), cols, x.load(row * cols, cols));
    x.store(row * cols, cols);
  }
}

void compute(const PositionBackward& op, CpuState& state) {
  const std::int64_t cols = op.dy.cols();
  const std::int64_t samples = op.dy.shape()[1];
  const FloatWindow dy(op.dy, cols, state.scratch), dtable(op.dtable, cols, state.scratch);
  for (std::int64_t position = 0; position < op.dy.shape()[0]; ++position) {
    float* sums = dtable.load(position * cols, cols);
    for (std::int64_t b = 0; b < samples; ++b) {
      add_into(dy.load((position * samples + b) * cols, cols), cols, sums);
    }
    dtable.store(position * cols, cols);
  }
}

void compute(const Rotary& op, CpuState& state) {
  const std::int64_t dim = op.dims.head_dim;
  const FloatWindow x(op.x.tensor, dim, state.scratch);
  const float sign = op.inverse ? -1.0F : 1.0F;
  const bool is_plain = !op.frequencies.defined() && !op.neighbours && op.magnitude == 1;
  const float* table = is_plain ? rotary_table(op, state).data() : nullptr;
  float* turns = is_plain ? nullptr : state.scratch.floats(dim);
  for_each_head(op.dims, [&](std::int64_t s, std::int64_t b, std::int64_t h) {
    const std::int64_t position = op.first_position + s;
    if (!is_plain && b == 0 && h == 0) turn_table(op, position, turns);
    const std::int64_t first = op.x.first(s, b, h);
    float* values = x.load(first, dim);
    (op.neighbours ? rotate_neighbours : rotate)(values, dim,
                                                 is_plain ? table + position * dim : turns, sign);
    x.store(first, dim);
  });
}

}  // namespace tpsim
