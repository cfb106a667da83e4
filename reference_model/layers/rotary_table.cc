#include "reference_model/layers/rotary_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tpsim {
namespace {

// Returns t of `yarn` in rotary_table.h, 0 to 1, for pair i: the share of the frequency that is
// divided by the factor.
double yarn_share(const RotaryStretch& stretch, double theta, std::int64_t width, std::int64_t i) {
  const auto n = static_cast<double>(width);
  const auto pair_that_turns = [&](double turns) {
    const double length = static_cast<double>(stretch.original_positions);
    return n * std::log(length / (2 * std::numbers::pi * turns)) / (2 * std::log(theta));
  };
  double low = pair_that_turns(stretch.beta_fast), high = pair_that_turns(stretch.beta_slow);
  if (stretch.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, n - 1);
  if (low == high) high += 0.001;
  return std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
}

double stretched(const RotaryStretch& stretch, const ModelSpec& model, std::int64_t width,
                 std::int64_t i) {
  const double theta = model.attention.rope_theta;
  const double f = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(width));
  const auto original = static_cast<double>(stretch.original_positions);
  switch (stretch.kind) {
    case RotaryScaling::kNone: return f;
    case RotaryScaling::kLinear: return f / stretch.factor;
    case RotaryScaling::kLlama3: {
      const double turns = original * f / (2 * std::numbers::pi);
      const double between = stretch.high_freq_factor - stretch.low_freq_factor;
      const double above = turns - stretch.low_freq_factor;
      // Equal low and high factors: t is a step function.
      const double t = between > 0 ? std::clamp(above / between, 0.0, 1.0) : above > 0 ? 1.0 : 0.0;
      return f * t + f / stretch.factor * (1 - t);
    }
    case RotaryScaling::kYarn: {
      const double t = yarn_share(stretch, theta, width, i);
      return f / stretch.factor * t + f * (1 - t);
    }
    case RotaryScaling::kLongRope: {
      const bool is_long = model.seq > stretch.original_positions;
      const auto& factors = is_long ? stretch.long_factors : stretch.short_factors;
      return f / factors[static_cast<std::size_t>(i)];
    }
  }
  return f;
}

double magnitude_of(const RotaryStretch& stretch, std::int64_t context) {
  const bool scales =
      stretch.kind == RotaryScaling::kYarn || stretch.kind == RotaryScaling::kLongRope;
  if (!scales) return 1;
  if (stretch.attention_factor > 0) return stretch.attention_factor;
  if (stretch.kind == RotaryScaling::kLongRope) {
    const auto original = static_cast<double>(stretch.original_positions);
    const double factor = static_cast<double>(context) / original;
    return factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(original));
  }
  const auto g = [&](double a) { return 0.1 * a * std::log(stretch.factor) + 1; };
  const bool both = stretch.mscale > 0 && stretch.mscale_all_dim > 0;
  return both ? g(stretch.mscale) / g(stretch.mscale_all_dim) : g(1);
}

}  // namespace

std::int64_t turned_width(const AttentionShape& attention) {
  if (attention.latent.kv_rank > 0) return attention.latent.rope_dim;
  const double width = attention.rotary.fraction * static_cast<double>(attention.head_dim);
  return static_cast<std::int64_t>(width) / 2 * 2;
}

RotaryAngles rotary_table(const ModelSpec& model) {
  const RotaryStretch& stretch = model.attention.rotary.stretch;
  RotaryAngles table;
  const std::int64_t width = turned_width(model.attention);
  for (std::int64_t i = 0; i < width / 2; ++i) {
    table.frequencies.push_back(static_cast<float>(stretched(stretch, model, width, i)));
  }
  table.magnitude = static_cast<float>(magnitude_of(stretch, model.context));
  table.is_plain = stretch.kind == RotaryScaling::kNone;
  return table;
}

}  // namespace tpsim
