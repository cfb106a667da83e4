// Routing, permute and unpermute of tokens.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/floats.h"

namespace tpsim {
namespace {

// Writes the indices of the k largest entries of a row to `chosen`, largest first; ties go to the
// lower index.
void choose_largest(const float* row, std::int64_t count, std::int64_t k, std::int32_t* chosen) {
  for (std::int64_t j = 0; j < k; ++j) {
    std::int64_t best = -1;
    for (std::int64_t e = 0; e < count; ++e) {
      if (best >= 0 && !(row[e] > row[best])) continue;
      if (std::find(chosen, chosen + j, static_cast<std::int32_t>(e)) == chosen + j) best = e;
    }
    chosen[j] = static_cast<std::int32_t>(best);
  }
}

// Computes a token's weights: softmax over its chosen logits, or over all logits if k = 1.
void softmax_weights(const float* row, std::int64_t count, std::int64_t k,
                     const std::int32_t* chosen, float* weights) {
  const float max = row[chosen[0]];
  float sum = 0;
  if (k == 1) {
    for (std::int64_t e = 0; e < count; ++e) sum += std::exp(row[e] - max);
  }
  for (std::int64_t j = 0; j < k; ++j) {
    weights[j] = std::exp(row[chosen[j]] - max);
    if (k > 1) sum += weights[j];
  }
  for (std::int64_t j = 0; j < k; ++j) weights[j] /= sum;
}

// Computes the scores of all experts (sigmoid or softmax), for routers that apply the score
// function to all logits before top-k.
void score(const RouterShape& router, const float* row, std::int64_t count, float* scores) {
  if (router.score == RouterScore::kSigmoid) {
    for (std::int64_t e = 0; e < count; ++e) scores[e] = 1.0F / (1.0F + std::exp(-row[e]));
    return;
  }
  const float max = *std::max_element(row, row + count);
  float sum = 0;
  for (std::int64_t e = 0; e < count; ++e) sum += scores[e] = std::exp(row[e] - max);
  for (std::int64_t e = 0; e < count; ++e) scores[e] /= sum;
}

// Sets the scores of experts outside the best groups to -inf.
void keep_best_groups(const RouterShape& router, std::int64_t count, float* scores) {
  if (router.groups == 1) return;
  const std::int64_t size = count / router.groups;
  std::vector<float> worth;
  for (std::int64_t g = 0; g < router.groups; ++g) {
    std::vector<float> group(scores + g * size, scores + (g + 1) * size);
    std::sort(group.begin(), group.end(), std::greater<>());
    const bool two = router.score == RouterScore::kSigmoid && size > 1;
    worth.push_back(two ? group[0] + group[1] : group[0]);
  }
  std::vector<std::int32_t> kept(static_cast<std::size_t>(router.groups_kept));
  choose_largest(worth.data(), router.groups, router.groups_kept, kept.data());
  for (std::int64_t e = 0; e < count; ++e) {
    const auto group = static_cast<std::int32_t>(e / size);
    if (std::find(kept.begin(), kept.end(), group) == kept.end()) scores[e] = -INFINITY;
  }
}

// Chooses a token's experts and weights, for routers that apply the score function before top-k.
void choose_by_score(const RouteForward& op, const float* row, std::int32_t* chosen,
                     float* weights) {
  const std::int64_t count = op.logits.cols(), k = op.weights.cols();
  std::vector<float> scores(static_cast<std::size_t>(count));
  score(op.router, row, count, scores.data());
  std::vector<float> biased = scores;
  for (std::int64_t e = 0; op.correction.defined() && e < count; ++e) {
    biased[static_cast<std::size_t>(e)] += op.correction.data<float>()[e];
  }
  keep_best_groups(op.router, count, biased.data());
  choose_largest(biased.data(), count, k, chosen);
  float sum = op.router.renormalises ? 1e-20F : 1.0F;
  for (std::int64_t j = 0; j < k; ++j) {
    weights[j] = scores[static_cast<std::size_t>(chosen[j])];
    if (op.router.renormalises) sum += weights[j];
  }
  for (std::int64_t j = 0; j < k; ++j) weights[j] *= static_cast<float>(op.router.scaling) / sum;
}

// Computes the gradient of a token's logits from the gradient of its weights, for the same routers.
void scores_backward(const RouteBackward& op, const float* row, const std::int32_t* chosen,
                     const float* dweights, float* dlogits) {
  const std::int64_t count = op.logits.cols(), k = op.weights.cols();
  std::vector<float> scores(static_cast<std::size_t>(count));
  score(op.router, row, count, scores.data());
  const auto of = [&](std::int64_t j) { return scores[static_cast<std::size_t>(chosen[j])]; };
  const auto scaling = static_cast<float>(op.router.scaling);
  float sum = op.router.renormalises ? 1e-20F : 1.0F, along = 0;
  for (std::int64_t j = 0; op.router.renormalises && j < k; ++j) sum += of(j);
  for (std::int64_t j = 0; op.router.renormalises && j < k; ++j) along += dweights[j] * of(j) / sum;
  std::fill_n(dlogits, count, 0.0F);
  float mean = 0;
  for (std::int64_t j = 0; j < k; ++j) {
    const float slope = scaling / sum * (dweights[j] - along);
    dlogits[chosen[j]] = slope;
    mean += slope * of(j);
  }
  const bool sigmoid = op.router.score == RouterScore::kSigmoid;
  for (std::int64_t e = 0; e < count; ++e) {
    const float s = scores[static_cast<std::size_t>(e)];
    dlogits[e] = sigmoid ? dlogits[e] * s * (1.0F - s) : s * (dlogits[e] - mean);
  }
}

void add_scaled(const float* x, float factor, std::int64_t count, float* into) {
#pragma omp simd
  for (std::int64_t c = 0; c < count; ++c) into[c] += factor * x[c];
}

}  // namespace

void compute(const RouteForward& op, CpuState&) {
  const std::int64_t count = op.logits.cols(), k = op.weights.cols(), capacity = op.choices.cols();
  const auto* logits = op.logits.data<float>();
  auto* weights = op.weights.data<float>();
  auto* experts = op.experts.data<std::int32_t>();
  auto* slots = op.slots.data<std::int32_t>();
  auto* choices = op.choices.data<std::int32_t>();
  std::fill_n(choices, op.choices.elements(), -1);
  std::vector<std::int64_t> taken(static_cast<std::size_t>(count), 0);
  for (std::int64_t t = 0; t < op.logits.rows(); ++t) {
    const float* row = logits + t * count;
    if (op.router.score == RouterScore::kChosen) {
      choose_largest(row, count, k, experts + t * k);
      softmax_weights(row, count, k, experts + t * k, weights + t * k);
    } else {
      choose_by_score(op, row, experts + t * k, weights + t * k);
    }
    for (std::int64_t choice = t * k; choice < (t + 1) * k; ++choice) {
      const std::int64_t place = taken[static_cast<std::size_t>(experts[choice])]++;
      const std::int64_t slot = experts[choice] * capacity + place;
      slots[choice] = place < capacity ? static_cast<std::int32_t>(slot) : -1;
      if (place < capacity) choices[slot] = static_cast<std::int32_t>(choice);
    }
  }
}

void compute(const RouteBackward& op, CpuState& state) {
  const std::int64_t count = op.logits.cols(), k = op.weights.cols();
  const auto* logits = op.logits.data<float>();
  const auto* experts = op.experts.data<std::int32_t>();
  const FloatWindow dlogits(op.dlogits, count, state.scratch);
  for (std::int64_t t = 0; t < op.logits.rows(); ++t) {
    const float* weights = op.weights.data<float>() + t * k;
    const float* dweights = op.dweights.data<float>() + t * k;
    const float* row = logits + t * count;
    const std::int32_t* chosen = experts + t * k;
    float* out = dlogits.blank(t * count);
    if (op.router.score != RouterScore::kChosen) {
      scores_backward(op, row, chosen, dweights, out);
      dlogits.store(t * count, count);
      continue;
    }
    float mean = 0;
    for (std::int64_t j = 0; j < k; ++j) mean += weights[j] * dweights[j];
    for (std::int64_t e = 0; e < count; ++e) {
      // With k = 1 the weight is a softmax over all logits, and the product below is the softmax of
      // expert e.
      out[e] = k == 1 ? -mean * weights[0] * std::exp(row[e] - row[chosen[0]]) : 0.0F;
    }
    for (std::int64_t j = 0; j < k; ++j) out[chosen[j]] = weights[j] * (dweights[j] - mean);
    dlogits.store(t * count, count);
  }
}

void compute(const PermuteTokens& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  const FloatWindow x(op.x, cols, state.scratch), y(op.y, cols, state.scratch);
  const auto* weights = op.weights.defined() ? op.weights.data<float>() : nullptr;
  const auto* choices = op.choices.data<std::int32_t>();
  for (std::int64_t slot = 0; slot < op.choices.elements(); ++slot) {
    const std::int64_t choice = choices[slot];
    float* row = y.blank(slot * cols);
    std::fill_n(row, cols, 0.0F);
    if (choice >= 0) {
      const float weight = weights != nullptr ? weights[choice] : 1.0F;
      add_scaled(x.load(choice / op.per_token * cols, cols), weight, cols, row);
    }
    y.store(slot * cols, cols);
  }
}

void compute(const UnpermuteTokens& op, CpuState& state) {
  const std::int64_t cols = op.y.cols(), k = op.slots.cols();
  const FloatWindow x(op.x, cols, state.scratch), y(op.y, cols, state.scratch);
  const auto* weights = op.weights.defined() ? op.weights.data<float>() : nullptr;
  const auto* slots = op.slots.data<std::int32_t>();
  for (std::int64_t t = 0; t < op.y.rows(); ++t) {
    float* row = y.blank(t * cols);
    std::fill_n(row, cols, 0.0F);
    for (std::int64_t choice = t * k; choice < (t + 1) * k; ++choice) {
      if (slots[choice] < 0) continue;
      const float weight = weights != nullptr ? weights[choice] : 1.0F;
      add_scaled(x.load(slots[choice] * cols, cols), weight, cols, row);
    }
    y.store(t * cols, cols);
  }
}

void compute(const RouteWeightGradient& op, CpuState& state) {
  const std::int64_t cols = op.dy.cols(), k = op.slots.cols();
  const FloatWindow x(op.x, cols, state.scratch), dy(op.dy, cols, state.scratch);
  const auto* slots = op.slots.data<std::int32_t>();
  auto* dweights = op.dweights.data<float>();
  for (std::int64_t t = 0; t < op.dy.rows(); ++t) {
    const float* slope = dy.load(t * cols, cols);
    for (std::int64_t choice = t * k; choice < (t + 1) * k; ++choice) {
      float sum = 0;
      if (slots[choice] >= 0) {
        const float* row = x.load(slots[choice] * cols, cols);
#pragma omp simd reduction(+ : sum)
        for (std::int64_t c = 0; c < cols; ++c) sum += slope[c] * row[c];
      }
      dweights[choice] = sum;
    }
  }
}

}  // namespace tpsim
