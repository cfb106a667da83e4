// Flash attention: processes a block of query rows at a time. The block's scores over all visible
// keys stay in cache (kQueryBlock x keys floats). Softmax runs row by row, then the GEMM with v.
// Backward recomputes the block's probabilities from log_sum.
//
// Masked scores are not computed, except the upper triangle of kQueryBlock x kQueryBlock scores per
// block.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/causal_row.h"
#include "kernels/cpu/column_sums.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/floats.h"
#include "kernels/cpu/gemm.h"

namespace tpsim {
namespace {

constexpr std::int64_t kQueryBlock = 64;

// One head of one sample as an fp32 matrix [positions, head_dim].
class HeadMatrix {
 public:
  HeadMatrix(const Heads& heads, std::int64_t positions, std::int64_t head_dim, Scratch& scratch)
      : heads_(heads), positions_(positions), dim_(head_dim) {
    if (heads.tensor.dtype() != DType::kFloat32) buffer_ = scratch.floats(positions_ * dim_);
  }

  // Selects a head. If `read`, converts its values to fp32.
  void select(std::int64_t sample, std::int64_t head, bool read) {
    first_ = heads_.first(0, sample, head);
    data_ = buffer_ != nullptr ? buffer_ : heads_.tensor.data<float>() + first_;
    if (buffer_ == nullptr || !read) return;
    for (std::int64_t s = 0; s < positions_; ++s) {
      load_floats(address(s), heads_.tensor.dtype(), dim_, buffer_ + s * dim_);
    }
  }
  void store() const {
    if (buffer_ == nullptr) return;
    for (std::int64_t s = 0; s < positions_; ++s) {
      store_floats(buffer_ + s * dim_, dim_, heads_.tensor.dtype(), address(s));
    }
  }

  std::int64_t stride() const { return buffer_ != nullptr ? dim_ : heads_.position_stride; }
  float* row(std::int64_t s) const { return data_ + s * stride(); }
  FloatMatrix rows(std::int64_t first, std::int64_t count, bool transposed = false) const {
    return {row(first), count, dim_, stride(), transposed};
  }

 private:
  void* address(std::int64_t s) const {
    return element_address(heads_.tensor.raw(), heads_.tensor.dtype(),
                           first_ + s * heads_.position_stride);
  }

  const Heads& heads_;
  std::int64_t positions_;
  std::int64_t dim_;
  std::int64_t first_ = 0;
  float* data_ = nullptr;
  float* buffer_ = nullptr;
};

struct QueryBlock {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t earlier = 0;  // keys before the first query
  // Returns the number of keys that some query of the block sees.
  std::int64_t keys() const { return earlier + begin + count; }
  std::int64_t visible(std::int64_t i) const { return earlier + begin + i + 1; }
};

template <class Visit>
void for_each_query_block(const AttentionDims& dims, Visit visit) {
  const std::int64_t earlier = key_count(dims) - dims.seq;
  for (std::int64_t begin = 0; begin < dims.seq; begin += kQueryBlock) {
    visit(QueryBlock{begin, std::min(kQueryBlock, dims.seq - begin), earlier});
  }
}

FloatMatrix block_matrix(const float* data, QueryBlock block, bool transposed = false) {
  return {data, block.count, block.keys(), block.keys(), transposed};
}

// Returns the ALiBi slope of a head; 0 without ALiBi.
float slope_of(const Tensor& slopes, std::int64_t head) {
  return slopes.defined() ? slopes.data<float>()[head] : 0.0F;
}

// Turns raw scores [block.count, block.keys()] into exponentials. The division by the sums is
// applied to the rows of o later, because these are shorter than the rows of scores.
void softmax_block(const FlashForward& op, QueryBlock block, float slope, float* scores,
                   RowSoftmax* rows) {
  for (std::int64_t i = 0; i < block.count; ++i) {
    float* row = scores + i * block.keys();
    const std::int64_t visible = block.visible(i);
    rows[i] = exponentiate(row, visible, block.keys(), op.scale, slope,
                           op.visibility.first_key(visible - 1), op.cap);
  }
}

// Returns the sinks as floats; null without sinks.
const float* sinks_of(const Tensor& sinks, std::int64_t heads, Scratch& scratch) {
  return FloatWindow(sinks, heads, scratch).load(0, heads);
}
const float* sink_of(const float* sinks, std::int64_t head) {
  return sinks != nullptr ? sinks + head : nullptr;
}

struct ForwardBuffers {
  float* scores;
  RowSoftmax rows[kQueryBlock];
};

// Operands of one query head in forward.
struct ForwardHead {
  const HeadMatrix &q, &k, &v, &o;
  float* log_sum;
  float slope;
  const float* sink;
};

void forward_head(const FlashForward& op, const ForwardHead& h, ForwardBuffers& buffers) {
  for_each_query_block(op.dims, [&](QueryBlock block) {
    gemm(h.q.rows(block.begin, block.count), h.k.rows(0, block.keys(), true), buffers.scores,
         block.keys(), 1.0F, 0.0F);
    softmax_block(op, block, h.slope, buffers.scores, buffers.rows);
    gemm(block_matrix(buffers.scores, block), h.v.rows(0, block.keys()), h.o.row(block.begin),
         h.o.stride(), 1.0F, 0.0F);
    for (std::int64_t i = 0; i < block.count; ++i) {
      const RowSoftmax& s = buffers.rows[i];
      const double sum = with_sink(s, h.sink);
      const float inverse = static_cast<float>(1.0 / sum);
      float* row = h.o.row(block.begin + i);
#pragma omp simd
      for (std::int64_t d = 0; d < value_width(op.dims); ++d) row[d] *= inverse;
      h.log_sum[block.begin + i] = static_cast<float>(static_cast<double>(s.max) + std::log(sum));
    }
  });
}

// Operands of one query head in backward.
struct BackwardHead {
  const HeadMatrix &q, &k, &v, &o, &d_o, &dq;
  const float* log_sum;
  float slope;
  const float* sink;
  double* dsink;
};
// Scores and score gradients of one block; gradients of k and v [keys, head_dim].
struct BackwardBuffers {
  float *scores, *dscores, *dk, *dv;
};

// In place: raw scores become probabilities P, and dP in dscores becomes scale * P * (dP - D), with
// D = dO . O per row.
void backward_rows(const FlashBackward& op, const BackwardHead& h, QueryBlock block,
                   const BackwardBuffers& buffers) {
  for (std::int64_t i = 0; i < block.count; ++i) {
    const std::int64_t query = block.begin + i;
    const std::int64_t visible = block.visible(i);
    float* p = buffers.scores + i * block.keys();
    float* ds = buffers.dscores + i * block.keys();
    const float* o = h.o.row(query);
    const float* d_o = h.d_o.row(query);
    const float along = static_cast<float>(
        sum_of(value_width(op.dims), [&](std::int64_t d) { return o[d] * d_o[d]; }));
    const float log_sum = h.log_sum[query];
    const std::int64_t first = op.visibility.first_key(visible - 1);
    std::fill(p, p + first, 0.0F);
    std::fill(ds, ds + first, 0.0F);
    if (op.cap > 0) {
      for (std::int64_t k = first; k < visible; ++k) {
        const float t = std::tanh(op.scale * p[k] / op.cap);
        const float position = static_cast<float>(static_cast<std::int32_t>(k));
        p[k] = fast_exp(op.cap * t + h.slope * position - log_sum);
        ds[k] = op.scale * (1 - t * t) * p[k] * (ds[k] - along);
      }
    } else {
#pragma omp simd
      for (std::int64_t k = first; k < visible; ++k) {
        const float position = static_cast<float>(static_cast<std::int32_t>(k));
        const float prob = fast_exp(op.scale * p[k] + h.slope * position - log_sum);
        p[k] = prob;
        ds[k] = op.scale * prob * (ds[k] - along);
      }
    }
    if (h.sink != nullptr) *h.dsink -= std::exp(*h.sink - log_sum) * along;
    std::fill(p + visible, p + block.keys(), 0.0F);
    std::fill(ds + visible, ds + block.keys(), 0.0F);
  }
}

// Backward of one query head: adds to dk and dv, overwrites dq.
void backward_head(const FlashBackward& op, const BackwardHead& h, const BackwardBuffers& buffers) {
  const std::int64_t dim = op.dims.head_dim, value_dim = value_width(op.dims);
  for_each_query_block(op.dims, [&](QueryBlock block) {
    const FloatMatrix q = h.q.rows(block.begin, block.count);
    const FloatMatrix d_o = h.d_o.rows(block.begin, block.count);
    gemm(q, h.k.rows(0, block.keys(), true), buffers.scores, block.keys(), 1.0F, 0.0F);
    gemm(d_o, h.v.rows(0, block.keys(), true), buffers.dscores, block.keys(), 1.0F, 0.0F);
    backward_rows(op, h, block, buffers);
    gemm(block_matrix(buffers.scores, block, true), d_o, buffers.dv, value_dim, 1.0F, 1.0F);
    gemm(block_matrix(buffers.dscores, block, true), q, buffers.dk, dim, 1.0F, 1.0F);
    gemm(block_matrix(buffers.dscores, block), h.k.rows(0, block.keys()), h.dq.row(block.begin),
         h.dq.stride(), 1.0F, 0.0F);
  });
}

void copy_rows(const float* from, std::int64_t rows, std::int64_t dim, const HeadMatrix& to) {
  for (std::int64_t s = 0; s < rows; ++s) std::copy_n(from + s * dim, dim, to.row(s));
  to.store();
}

}  // namespace

void compute(const FlashForward& op, CpuState& state) {
  const AttentionDims& dims = op.dims;
  Scratch& scratch = state.scratch;
  const std::int64_t keys = key_count(dims);
  const std::int64_t value_dim = value_width(dims);
  HeadMatrix q(op.q, dims.seq, dims.head_dim, scratch), o(op.o, dims.seq, value_dim, scratch);
  HeadMatrix k(op.k, keys, dims.head_dim, scratch), v(op.v, keys, value_dim, scratch);
  const float* sinks = sinks_of(op.sinks, dims.heads, scratch);
  ForwardBuffers buffers{scratch.floats(kQueryBlock * keys), {}};
  const std::int64_t group = dims.heads / dims.kv_heads;
  for (std::int64_t sample = 0; sample < dims.batch; ++sample) {
    for (std::int64_t head = 0; head < dims.heads; ++head) {
      q.select(sample, head, true);
      k.select(sample, head / group, head % group == 0);
      v.select(sample, head / group, head % group == 0);
      o.select(sample, head, false);
      float* log_sum = op.log_sum.data<float>() + (sample * dims.heads + head) * dims.seq;
      forward_head(op, {q, k, v, o, log_sum, slope_of(op.slopes, head), sink_of(sinks, head)},
                   buffers);
      o.store();
    }
  }
}

void compute(const FlashBackward& op, CpuState& state) {
  const AttentionDims& dims = op.dims;
  Scratch& scratch = state.scratch;
  const std::int64_t keys = key_count(dims), dim = dims.head_dim, value_dim = value_width(dims);
  HeadMatrix q(op.q, dims.seq, dim, scratch), dq(op.dq, dims.seq, dim, scratch);
  HeadMatrix o(op.o, dims.seq, value_dim, scratch), d_o(op.d_o, dims.seq, value_dim, scratch);
  HeadMatrix k(op.k, keys, dim, scratch), v(op.v, keys, value_dim, scratch);
  HeadMatrix dk(op.dk, keys, dim, scratch), dv(op.dv, keys, value_dim, scratch);
  const std::int64_t block = kQueryBlock * keys;
  const BackwardBuffers buffers{scratch.floats(block), scratch.floats(block),
                                scratch.floats(keys * dim), scratch.floats(keys * value_dim)};
  const float* sinks = sinks_of(op.sinks, dims.heads, scratch);
  std::vector<double> dsinks(static_cast<std::size_t>(dims.heads), 0.0);
  const std::int64_t group = dims.heads / dims.kv_heads;
  for (std::int64_t sample = 0; sample < dims.batch; ++sample) {
    for (std::int64_t kv_head = 0; kv_head < dims.kv_heads; ++kv_head) {
      for (HeadMatrix* matrix : {&k, &v}) matrix->select(sample, kv_head, true);
      for (HeadMatrix* matrix : {&dk, &dv}) matrix->select(sample, kv_head, false);
      std::fill_n(buffers.dk, keys * dim, 0.0F);
      std::fill_n(buffers.dv, keys * value_dim, 0.0F);
      for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        for (HeadMatrix* matrix : {&q, &o, &d_o}) matrix->select(sample, head, true);
        dq.select(sample, head, false);
        const float* log_sum = op.log_sum.data<float>() + (sample * dims.heads + head) * dims.seq;
        backward_head(op,
                      {q, k, v, o, d_o, dq, log_sum, slope_of(op.slopes, head),
                       sink_of(sinks, head), &dsinks[static_cast<std::size_t>(head)]},
                      buffers);
        dq.store();
      }
      copy_rows(buffers.dk, keys, dim, dk);
      copy_rows(buffers.dv, keys, value_dim, dv);
    }
  }
  add_doubles(dsinks, op.dsinks, scratch);
}

}  // namespace tpsim
