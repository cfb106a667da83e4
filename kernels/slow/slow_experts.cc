// Routing to experts, and the way of tokens to their slots and back.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/slow/slow_ops.h"

namespace tpsim {
namespace {

using Index = std::int64_t;

Index whole(double number) { return std::lround(number); }

// The experts of a token, most probable first.
std::vector<Index> sorted_experts(const double* logits, Index experts) {
  std::vector<Index> order(static_cast<std::size_t>(experts));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return logits[a] > logits[b]; });
  return order;
}

double softmax_sum(const double* logits, const std::vector<Index>& of) {
  double sum = 0;
  for (const Index e : of) sum += std::exp(logits[e] - logits[of.front()]);
  return sum;
}

}  // namespace

void compute_slowly(const RouteForward& op, const SlowMemory& memory) {
  const double* logits = memory.at(op.logits);
  double *weights = memory.at(op.weights), *experts = memory.at(op.experts);
  double *slots = memory.at(op.slots), *choices = memory.at(op.choices);
  const Index count = op.logits.cols(), k = op.weights.cols(), capacity = op.choices.cols();
  std::fill_n(choices, op.choices.elements(), -1.0);
  std::vector<Index> taken(static_cast<std::size_t>(count), 0);
  for (Index t = 0; t < op.logits.rows(); ++t, logits += count) {
    std::vector<Index> order = sorted_experts(logits, count);
    if (k > 1) order.resize(static_cast<std::size_t>(k));
    const double sum = softmax_sum(logits, order);
    for (Index j = 0; j < k; ++j) {
      const Index choice = t * k + j, e = order[static_cast<std::size_t>(j)];
      weights[choice] = std::exp(logits[e] - logits[order.front()]) / sum;
      experts[choice] = static_cast<double>(e);
      const Index place = taken[static_cast<std::size_t>(e)]++;
      slots[choice] = place < capacity ? static_cast<double>(e * capacity + place) : -1.0;
      if (place < capacity) choices[e * capacity + place] = static_cast<double>(choice);
    }
  }
}

void compute_slowly(const RouteBackward& op, const SlowMemory& memory) {
  const double *logits = memory.at(op.logits), *weights = memory.at(op.weights);
  const double *experts = memory.at(op.experts), *dweights = memory.at(op.dweights);
  double* dlogits = memory.at(op.dlogits);
  const Index count = op.logits.cols(), k = op.weights.cols();
  for (Index t = 0; t < op.logits.rows(); ++t) {
    const double* row = logits + t * count;
    std::vector<Index> order = sorted_experts(row, count);
    if (k > 1) order.resize(static_cast<std::size_t>(k));
    const double sum = softmax_sum(row, order);
    double mean = 0;
    for (Index j = 0; j < k; ++j) mean += weights[t * k + j] * dweights[t * k + j];
    std::fill_n(dlogits + t * count, count, 0.0);
    for (const Index e : order) {
      dlogits[t * count + e] = -std::exp(row[e] - row[order.front()]) / sum * mean;
    }
    for (Index j = 0; j < k; ++j) {
      const Index choice = t * k + j;
      dlogits[t * count + whole(experts[choice])] += weights[choice] * dweights[choice];
    }
  }
}

void compute_slowly(const DispatchTokens& op, const SlowMemory& memory) {
  const double *x = memory.at(op.x), *weights = memory.at(op.weights);
  const double* choices = memory.at(op.choices);
  double* y = memory.at(op.y);
  const Index cols = op.x.cols();
  for (Index slot = 0; slot < op.choices.elements(); ++slot) {
    const Index choice = whole(choices[slot]);
    for (Index c = 0; c < cols; ++c) {
      const double weight = choice >= 0 && weights != nullptr ? weights[choice] : 1.0;
      y[slot * cols + c] = choice < 0 ? 0.0 : weight * x[choice / op.per_token * cols + c];
    }
  }
}

void compute_slowly(const CombineTokens& op, const SlowMemory& memory) {
  const double *x = memory.at(op.x), *weights = memory.at(op.weights);
  const double* slots = memory.at(op.slots);
  double* y = memory.at(op.y);
  const Index cols = op.y.cols(), k = op.slots.cols();
  std::fill_n(y, op.y.elements(), 0.0);
  for (Index choice = 0; choice < op.slots.elements(); ++choice) {
    const Index slot = whole(slots[choice]);
    if (slot < 0) continue;
    const double weight = weights != nullptr ? weights[choice] : 1.0;
    for (Index c = 0; c < cols; ++c) y[choice / k * cols + c] += weight * x[slot * cols + c];
  }
}

void compute_slowly(const RouteWeightGradient& op, const SlowMemory& memory) {
  const double *dy = memory.at(op.dy), *x = memory.at(op.x), *slots = memory.at(op.slots);
  double* dweights = memory.at(op.dweights);
  const Index cols = op.dy.cols(), k = op.slots.cols();
  for (Index choice = 0; choice < op.slots.elements(); ++choice) {
    const Index slot = whole(slots[choice]);
    dweights[choice] = 0;
    for (Index c = 0; slot >= 0 && c < cols; ++c) {
      dweights[choice] += dy[choice / k * cols + c] * x[slot * cols + c];
    }
  }
}

}  // namespace tpsim
