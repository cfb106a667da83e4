// Attention by its definition: the whole row of probabilities, for one query at a time.
#include <cmath>
#include <vector>

#include "kernels/slow/slow_ops.h"

namespace tpsim {
namespace {

using Index = std::int64_t;

// Softmax of one query's scores, of which the last `later` are of keys after it; `log_sum` receives
// the logarithm of the exponentials' sum.
std::vector<double> causal_softmax(std::vector<double> scores, Index later, double* log_sum) {
  double sum = 0, max = scores[0];
  const std::size_t visible = scores.size() - static_cast<std::size_t>(later);
  for (std::size_t k = 0; k < visible; ++k) max = std::fmax(max, scores[k]);
  for (std::size_t k = 0; k < scores.size(); ++k) {
    scores[k] = k < visible ? std::exp(scores[k] - max) : 0.0;
    sum += scores[k];
  }
  for (double& p : scores) p /= sum;
  if (log_sum != nullptr) *log_sum = max + std::log(sum);
  return scores;
}

struct HeadView {
  double* data;
  const Heads& heads;
  double& at(Index s, Index b, Index h, Index d) const {
    return data[heads.offset + s * heads.position_stride + b * heads.sample_stride +
                h * heads.head_stride + d];
  }
};

HeadView view(const Heads& heads, const SlowMemory& memory) {
  return {memory.at(heads.tensor), heads};
}

struct Query {
  Index sample, head, position;
};

template <class Visit>
void for_each_query(const AttentionDims& dims, Visit visit) {
  for (Index b = 0; b < dims.batch; ++b) {
    for (Index h = 0; h < dims.heads; ++h) {
      for (Index s = 0; s < dims.seq; ++s) visit(Query{b, h, s});
    }
  }
}

// The probabilities of one query of a FlashForward or FlashBackward.
template <class Flash>
std::vector<double> probabilities(const Flash& op, Query at, const SlowMemory& memory,
                                  double* log_sum) {
  const HeadView q = view(op.q, memory), k = view(op.k, memory);
  const double slope = op.slopes.defined() ? memory.at(op.slopes)[at.head] : 0.0;
  const Index kv_head = at.head / (op.dims.heads / op.dims.kv_heads);
  std::vector<double> scores;
  for (Index key = 0; key < key_count(op.dims); ++key) {
    double product = 0;
    for (Index d = 0; d < op.dims.head_dim; ++d) {
      product += q.at(at.position, at.sample, at.head, d) * k.at(key, at.sample, kv_head, d);
    }
    scores.push_back(static_cast<double>(op.scale) * product + slope * static_cast<double>(key));
  }
  return causal_softmax(std::move(scores), op.dims.seq - 1 - at.position, log_sum);
}

void clear(const HeadView& x, const AttentionDims& dims, Index positions, Index heads) {
  for (Index i = 0; i < positions * dims.batch * heads * dims.head_dim; ++i) {
    const Index d = i % dims.head_dim, row = i / dims.head_dim;
    x.at(row / heads / dims.batch, row / heads % dims.batch, row % heads, d) = 0.0;
  }
}

}  // namespace

void compute_slowly(const SoftmaxForward& op, const SlowMemory& memory) {
  double* scores = memory.at(op.scores);
  const Index queries = op.scores.shape()[1], keys = op.scores.shape()[2];
  for (Index row = 0; row < op.scores.rows(); ++row, scores += keys) {
    const Index head = row / queries % op.heads;
    const double slope = op.slopes.defined() ? memory.at(op.slopes)[head] : 0.0;
    std::vector<double> biased;
    for (Index k = 0; k < keys; ++k) {
      biased.push_back(static_cast<double>(op.scale) * scores[k] + slope * static_cast<double>(k));
    }
    const std::vector<double> p =
        causal_softmax(std::move(biased), queries - 1 - row % queries, nullptr);
    for (Index k = 0; k < keys; ++k) scores[k] = p[static_cast<std::size_t>(k)];
  }
}

void compute_slowly(const SoftmaxBackward& op, const SlowMemory& memory) {
  const double* p = memory.at(op.probs);
  double* d = memory.at(op.dprobs);
  const Index keys = op.probs.shape()[2];
  for (Index row = 0; row < op.probs.rows(); ++row, p += keys, d += keys) {
    double along = 0;
    for (Index k = 0; k < keys; ++k) along += p[k] * d[k];
    for (Index k = 0; k < keys; ++k) d[k] = static_cast<double>(op.scale) * p[k] * (d[k] - along);
  }
}

void compute_slowly(const FlashForward& op, const SlowMemory& memory) {
  const HeadView v = view(op.v, memory), o = view(op.o, memory);
  double* log_sum = memory.at(op.log_sum);
  for_each_query(op.dims, [&](Query at) {
    const std::vector<double> p = probabilities(op, at, memory, log_sum++);
    const Index kv_head = at.head / (op.dims.heads / op.dims.kv_heads);
    for (Index d = 0; d < op.dims.head_dim; ++d) {
      double sum = 0;
      for (Index key = 0; key < key_count(op.dims); ++key) {
        sum += p[static_cast<std::size_t>(key)] * v.at(key, at.sample, kv_head, d);
      }
      o.at(at.position, at.sample, at.head, d) = sum;
    }
  });
}

void compute_slowly(const FlashBackward& op, const SlowMemory& memory) {
  const AttentionDims& dims = op.dims;
  const HeadView q = view(op.q, memory), k = view(op.k, memory), v = view(op.v, memory);
  const HeadView d_o = view(op.d_o, memory);
  const HeadView dq = view(op.dq, memory), dk = view(op.dk, memory), dv = view(op.dv, memory);
  clear(dq, dims, dims.seq, dims.heads);
  clear(dk, dims, key_count(dims), dims.kv_heads);
  clear(dv, dims, key_count(dims), dims.kv_heads);
  for_each_query(dims, [&](Query at) {
    const auto& [b, h, s] = at;
    const Index kv_head = h / (dims.heads / dims.kv_heads);
    const std::vector<double> p = probabilities(op, at, memory, nullptr);
    std::vector<double> dp(p.size());
    double along = 0;
    for (Index key = 0; key < key_count(dims); ++key) {
      const auto i = static_cast<std::size_t>(key);
      for (Index d = 0; d < dims.head_dim; ++d) {
        dp[i] += d_o.at(s, b, h, d) * v.at(key, b, kv_head, d);
      }
      along += p[i] * dp[i];
    }
    for (Index key = 0; key < key_count(dims); ++key) {
      const auto i = static_cast<std::size_t>(key);
      const double ds = static_cast<double>(op.scale) * p[i] * (dp[i] - along);
      for (Index d = 0; d < dims.head_dim; ++d) {
        dq.at(s, b, h, d) += ds * k.at(key, b, kv_head, d);
        dk.at(key, b, kv_head, d) += ds * q.at(s, b, h, d);
        dv.at(key, b, kv_head, d) += p[i] * d_o.at(s, b, h, d);
      }
    }
  });
}

void compute_slowly(const Rotary& op, const SlowMemory& memory) {
  const HeadView x = view(op.x, memory);
  const Index half = op.dims.head_dim / 2;
  for_each_query(op.dims, [&](Query at) {
    const auto position = static_cast<double>(op.first_position + at.position);
    for (Index d = 0; d < half; ++d) {
      const double exponent = 2.0 * static_cast<double>(d) / static_cast<double>(op.dims.head_dim);
      const double frequency = std::pow(static_cast<double>(op.theta), -exponent);
      const double angle = (op.inverse ? -1.0 : 1.0) * position * frequency;
      double& first = x.at(at.position, at.sample, at.head, d);
      double& second = x.at(at.position, at.sample, at.head, d + half);
      const double a = first, b = second;
      first = a * std::cos(angle) - b * std::sin(angle);
      second = b * std::cos(angle) + a * std::sin(angle);
    }
  });
}

}  // namespace tpsim
