// Attention by its definition. For one query at a time, all probabilities are computed.
#include <cmath>
#include <vector>

#include "kernels/slow/slow_ops.h"

namespace tpsim {
namespace {

using Index = std::int64_t;

// Returns the softmax of one query's scores. The last `later` keys are masked, and so are keys
// before the query's window or chunk. `log_sum` receives the logarithm of the sum of exponentials,
// including the sink's.
std::vector<double> causal_softmax(std::vector<double> scores, Index later,
                                   const Visibility& visibility, const double* sink,
                                   double* log_sum) {
  const std::size_t visible = scores.size() - static_cast<std::size_t>(later);
  const auto first =
      static_cast<std::size_t>(visibility.first_key(static_cast<Index>(visible) - 1));
  double max = scores[first];
  for (std::size_t k = first; k < visible; ++k) max = std::fmax(max, scores[k]);
  double sum = sink != nullptr ? std::exp(*sink - max) : 0.0;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    scores[k] = k >= first && k < visible ? std::exp(scores[k] - max) : 0.0;
    sum += scores[k];
  }
  for (double& p : scores) p /= sum;
  if (log_sum != nullptr) *log_sum = max + std::log(sum);
  return scores;
}

struct HeadView {
  double* data;
  const Heads& heads;
  double& at(Index s, Index b, Index h, Index d) const { return data[heads.first(s, b, h) + d]; }
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

const double* sink_of(const Tensor& sinks, Index head, const SlowMemory& memory) {
  return sinks.defined() ? memory.at(sinks) + head : nullptr;
}

// Returns the probabilities of one query of a FlashForward or FlashBackward.
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
    product *= static_cast<double>(op.scale);
    const auto cap = static_cast<double>(op.cap);
    if (op.cap > 0) product = cap * std::tanh(product / cap);
    scores.push_back(product + slope * static_cast<double>(key));
  }
  return causal_softmax(std::move(scores), op.dims.seq - 1 - at.position, op.visibility,
                        sink_of(op.sinks, at.head, memory), log_sum);
}

void clear(const HeadView& x, const AttentionDims& dims, Index positions, Index heads,
           Index width) {
  for (Index i = 0; i < positions * dims.batch * heads * width; ++i) {
    const Index d = i % width, row = i / width;
    x.at(row / heads / dims.batch, row / heads % dims.batch, row % heads, d) = 0.0;
  }
}

struct Statistics {
  double mean = 0, rstd = 0;
};
template <class At>
Statistics statistics(NormKind kind, Index n, double epsilon, At at) {
  Statistics s;
  double squares = 0;
  for (Index d = 0; kind == NormKind::kLayerNorm && d < n; ++d) {
    s.mean += at(d) / static_cast<double>(n);
  }
  for (Index d = 0; d < n; ++d) squares += (at(d) - s.mean) * (at(d) - s.mean);
  s.rstd = 1.0 / std::sqrt(squares / static_cast<double>(n) + epsilon);
  return s;
}

// Returns the index of element d of a head in the gain; -1 without gain.
template <class Norm>
Index gain_at(const Norm& op, Index head, Index d) {
  if (!op.gain.defined()) return -1;
  return op.gain.elements() > op.dims.head_dim ? head * op.dims.head_dim + d : d;
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
        causal_softmax(std::move(biased), queries - 1 - row % queries, op.visibility,
                       sink_of(op.sinks, head, memory), nullptr);
    for (Index k = 0; k < keys; ++k) scores[k] = p[static_cast<std::size_t>(k)];
  }
}

void compute_slowly(const SoftmaxBackward& op, const SlowMemory& memory) {
  const double* p = memory.at(op.probs);
  double* d = memory.at(op.dprobs);
  const Index keys = op.probs.shape()[2];
  for (Index row = 0; row < op.probs.rows(); ++row, p += keys, d += keys) {
    double along = 0;
    double seen = 0;
    for (Index k = 0; k < keys; ++k) {
      along += p[k] * d[k];
      seen += p[k];
    }
    const Index head = row / op.probs.shape()[1] % op.heads;
    if (op.dsinks.defined()) memory.at(op.dsinks)[head] -= (1.0 - seen) * along;
    for (Index k = 0; k < keys; ++k) d[k] = static_cast<double>(op.scale) * p[k] * (d[k] - along);
  }
}

void compute_slowly(const FlashForward& op, const SlowMemory& memory) {
  const HeadView v = view(op.v, memory), o = view(op.o, memory);
  double* log_sum = memory.at(op.log_sum);
  for_each_query(op.dims, [&](Query at) {
    const std::vector<double> p = probabilities(op, at, memory, log_sum++);
    const Index kv_head = at.head / (op.dims.heads / op.dims.kv_heads);
    for (Index d = 0; d < value_width(op.dims); ++d) {
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
  clear(dq, dims, dims.seq, dims.heads, dims.head_dim);
  clear(dk, dims, key_count(dims), dims.kv_heads, dims.head_dim);
  clear(dv, dims, key_count(dims), dims.kv_heads, value_width(dims));
  for_each_query(dims, [&](Query at) {
    const auto& [b, h, s] = at;
    const Index kv_head = h / (dims.heads / dims.kv_heads);
    const std::vector<double> p = probabilities(op, at, memory, nullptr);
    std::vector<double> dp(p.size());
    double along = 0, seen = 0;
    for (Index key = 0; key < key_count(dims); ++key) {
      const auto i = static_cast<std::size_t>(key);
      seen += p[i];
      for (Index d = 0; d < value_width(dims); ++d) {
        dp[i] += d_o.at(s, b, h, d) * v.at(key, b, kv_head, d);
      }
      along += p[i] * dp[i];
    }
    for (Index key = 0; key < key_count(dims); ++key) {
      const auto i = static_cast<std::size_t>(key);
      double ds = static_cast<double>(op.scale) * p[i] * (dp[i] - along);
      if (op.cap > 0) {
        double product = 0;
        for (Index d = 0; d < dims.head_dim; ++d) {
          product += q.at(s, b, h, d) * k.at(key, b, kv_head, d);
        }
        const double t =
            std::tanh(static_cast<double>(op.scale) * product / static_cast<double>(op.cap));
        ds *= 1.0 - t * t;
      }
      for (Index d = 0; d < dims.head_dim; ++d) {
        dq.at(s, b, h, d) += ds * k.at(key, b, kv_head, d);
        dk.at(key, b, kv_head, d) += ds * q.at(s, b, h, d);
      }
      for (Index d = 0; d < value_width(dims); ++d) {
        dv.at(key, b, kv_head, d) += p[i] * d_o.at(s, b, h, d);
      }
    }
    if (op.dsinks.defined()) memory.at(op.dsinks)[h] -= (1.0 - seen) * along;
  });
}

void compute_slowly(const Rotary& op, const SlowMemory& memory) {
  const HeadView x = view(op.x, memory);
  const Index half = op.dims.head_dim / 2;
  const double* frequencies = memory.at(op.frequencies);
  const auto magnitude = static_cast<double>(op.magnitude);
  for_each_query(op.dims, [&](Query at) {
    const auto position = static_cast<double>(op.first_position + at.position);
    for (Index d = 0; d < half; ++d) {
      const double exponent = 2.0 * static_cast<double>(d) / static_cast<double>(op.dims.head_dim);
      const double frequency = frequencies != nullptr
                                   ? frequencies[d]
                                   : std::pow(static_cast<double>(op.theta), -exponent);
      const double angle = (op.inverse ? -1.0 : 1.0) * position * frequency;
      double& first = x.at(at.position, at.sample, at.head, op.neighbours ? 2 * d : d);
      double& second = x.at(at.position, at.sample, at.head, op.neighbours ? 2 * d + 1 : d + half);
      const double a = first, b = second;
      first = magnitude * (a * std::cos(angle) - b * std::sin(angle));
      second = magnitude * (b * std::cos(angle) + a * std::sin(angle));
    }
  });
}

void compute_slowly(const PositionScale& op, const SlowMemory& memory) {
  const HeadView x = view(op.x, memory);
  for_each_query(op.dims, [&](Query at) {
    const Index reached = (op.first_position + at.position + 1) / op.floor;
    const double factor =
        1.0 + static_cast<double>(op.strength) * std::log(1.0 + static_cast<double>(reached));
    for (Index d = 0; d < op.dims.head_dim; ++d) x.at(at.position, at.sample, at.head, d) *= factor;
  });
}

void compute_slowly(const HeadSum& op, const SlowMemory& memory) {
  const HeadView x = view(op.x, memory), y = view(op.y, memory);
  for_each_query(op.dims, [&](Query at) {
    for (Index d = 0; d < op.dims.head_dim; ++d) {
      double& sum = y.at(at.position, at.sample, 0, d);
      if (at.head == 0) sum = 0;
      sum += x.at(at.position, at.sample, at.head, d);
    }
  });
}

void compute_slowly(const HeadNormForward& op, const SlowMemory& memory) {
  const HeadView x = view(op.x, memory);
  double *raw = memory.at(op.raw), *gain = memory.at(op.gain);
  const Index n = op.dims.head_dim;
  for_each_query(op.dims, [&](Query at) {
    const Index row = (at.position * op.dims.batch + at.sample) * op.dims.heads + at.head;
    for (Index d = 0; d < n; ++d) raw[row * n + d] = x.at(at.position, at.sample, at.head, d);
    const Statistics s = statistics(op.kind, n, static_cast<double>(op.epsilon),
                                    [&](Index d) { return raw[row * n + d]; });
    for (Index d = 0; d < n; ++d) {
      const Index g = gain_at(op, at.head, d);
      const double factor = g < 0 ? 1.0 : gain[g] + static_cast<double>(op.offset);
      x.at(at.position, at.sample, at.head, d) = (raw[row * n + d] - s.mean) * s.rstd * factor;
    }
  });
}

void compute_slowly(const HeadNormBackward& op, const SlowMemory& memory) {
  const HeadView dx = view(op.dx, memory);
  const double *raw = memory.at(op.raw), *gain = memory.at(op.gain);
  double* dgain = memory.at(op.dgain);
  const Index n = op.dims.head_dim;
  for_each_query(op.dims, [&](Query at) {
    const Index row = (at.position * op.dims.batch + at.sample) * op.dims.heads + at.head;
    const Statistics s = statistics(op.kind, n, static_cast<double>(op.epsilon),
                                    [&](Index d) { return raw[row * n + d]; });
    const auto xhat = [&](Index d) { return (raw[row * n + d] - s.mean) * s.rstd; };
    std::vector<double> slopes;
    double average = 0, along = 0;
    for (Index d = 0; d < n; ++d) {
      const Index g = gain_at(op, at.head, d);
      const double dy = dx.at(at.position, at.sample, at.head, d);
      if (dgain != nullptr && g >= 0) dgain[g] += dy * xhat(d);
      slopes.push_back(dy * (g < 0 ? 1.0 : gain[g] + static_cast<double>(op.offset)));
      if (op.kind == NormKind::kLayerNorm) average += slopes.back() / static_cast<double>(n);
      along += slopes.back() * xhat(d) / static_cast<double>(n);
    }
    for (Index d = 0; d < n; ++d) {
      dx.at(at.position, at.sample, at.head, d) =
          s.rstd * (slopes[static_cast<std::size_t>(d)] - average - xhat(d) * along);
    }
  });
}

}  // namespace tpsim
