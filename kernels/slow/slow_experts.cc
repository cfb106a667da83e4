// Routing, permute and unpermute of tokens.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/slow/slow_ops.h"

namespace tpsim {
namespace {

using Index = std::int64_t;

Index whole(double number) { return std::lround(number); }

// Returns the experts sorted by logit, largest first; ties go to the lower index.
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

// Returns the scores of all experts (sigmoid or softmax), for routers that apply the score function
// to all logits before top-k.
std::vector<double> scores_of(const RouterShape& router, const double* logits, Index experts) {
  std::vector<double> scores;
  double sum = 0;
  for (Index e = 0; e < experts; ++e) sum += std::exp(logits[e] - logits[0]);
  for (Index e = 0; e < experts; ++e) {
    scores.push_back(router.score == RouterScore::kSigmoid ? 1.0 / (1.0 + std::exp(-logits[e]))
                                                           : std::exp(logits[e] - logits[0]) / sum);
  }
  return scores;
}

// Returns the k experts with the highest `worth`, all from the best groups of experts.
std::vector<Index> chosen_experts(const RouterShape& router, std::vector<double> worth, Index k) {
  const auto experts = static_cast<Index>(worth.size());
  const Index size = experts / router.groups;
  std::vector<double> groups;
  for (Index g = 0; g < router.groups; ++g) {
    const std::vector<Index> order = sorted_experts(worth.data() + g * size, size);
    double best = worth[static_cast<std::size_t>(g * size + order[0])];
    if (router.score == RouterScore::kSigmoid && size > 1) {
      best += worth[static_cast<std::size_t>(g * size + order[1])];
    }
    groups.push_back(best);
  }
  const std::vector<Index> order = sorted_experts(groups.data(), router.groups);
  for (Index g = router.groups_kept; g < router.groups; ++g) {
    const Index dropped = order[static_cast<std::size_t>(g)];
    for (Index i = 0; i < size; ++i) {
      worth[static_cast<std::size_t>(dropped * size + i)] =
          -std::numeric_limits<double>::infinity();
    }
  }
  std::vector<Index> chosen = sorted_experts(worth.data(), experts);
  chosen.resize(static_cast<std::size_t>(k));
  return chosen;
}

struct Choice {
  std::vector<Index> experts;
  std::vector<double> weights;
};

Choice choice_of(const RouteForward& op, const double* logits, const double* correction) {
  const Index count = op.logits.cols(), k = op.weights.cols();
  Choice choice;
  if (op.router.score == RouterScore::kChosen) {
    std::vector<Index> order = sorted_experts(logits, count);
    if (k > 1) order.resize(static_cast<std::size_t>(k));
    const double sum = softmax_sum(logits, order);
    order.resize(static_cast<std::size_t>(k));
    for (const Index e : order)
      choice.weights.push_back(std::exp(logits[e] - logits[order[0]]) / sum);
    choice.experts = order;
    return choice;
  }
  const std::vector<double> scores = scores_of(op.router, logits, count);
  std::vector<double> worth = scores;
  for (Index e = 0; correction != nullptr && e < count; ++e) {
    worth[static_cast<std::size_t>(e)] += correction[e];
  }
  choice.experts = chosen_experts(op.router, worth, k);
  double sum = 0;
  for (const Index e : choice.experts) sum += scores[static_cast<std::size_t>(e)];
  for (const Index e : choice.experts) {
    const double share = scores[static_cast<std::size_t>(e)] / (op.router.renormalises ? sum : 1.0);
    choice.weights.push_back(op.router.scaling * share);
  }
  return choice;
}

// Computes dlogits of one token, by the chain rule over its K weights and E scores.
void scores_backward(const RouteBackward& op, const double* logits, const double* experts,
                     const double* dweights, double* dlogits) {
  const Index count = op.logits.cols(), k = op.weights.cols();
  const std::vector<double> scores = scores_of(op.router, logits, count);
  const auto at = [&](Index j) { return scores[static_cast<std::size_t>(whole(experts[j]))]; };
  double sum = 0;
  for (Index j = 0; j < k; ++j) sum += at(j);
  std::vector<double> dscores(scores.size(), 0.0);
  for (Index j = 0; j < k; ++j) {
    for (Index i = 0; i < k; ++i) {
      double slope = i == j ? 1.0 : 0.0;  // derivative of weight j by score i
      if (op.router.renormalises) slope = slope / sum - at(j) / (sum * sum);
      dscores[static_cast<std::size_t>(whole(experts[i]))] +=
          op.router.scaling * slope * dweights[j];
    }
  }
  for (Index e = 0; e < count; ++e) {
    dlogits[e] = 0;
    for (Index f = 0; f < count; ++f) {
      const double se = scores[static_cast<std::size_t>(e)];
      const double sf = scores[static_cast<std::size_t>(f)];
      double slope = e == f ? se : 0.0;  // derivative of score f by logit e
      if (op.router.score == RouterScore::kAll) slope -= se * sf;
      if (op.router.score == RouterScore::kSigmoid && e == f) slope -= se * se;
      dlogits[e] += slope * dscores[static_cast<std::size_t>(f)];
    }
  }
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
    const Choice chosen = choice_of(op, logits, memory.at(op.correction));
    for (Index j = 0; j < k; ++j) {
      const Index choice = t * k + j, e = chosen.experts[static_cast<std::size_t>(j)];
      weights[choice] = chosen.weights[static_cast<std::size_t>(j)];
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
    if (op.router.score != RouterScore::kChosen) {
      scores_backward(op, row, experts + t * k, dweights + t * k, dlogits + t * count);
      continue;
    }
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

void compute_slowly(const PermuteTokens& op, const SlowMemory& memory) {
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

void compute_slowly(const UnpermuteTokens& op, const SlowMemory& memory) {
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
