// Constants of an AdamW step that include the bias corrections, computed once per step in double:
//
//   g = gradient_scale * gradient;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   x -= rate m / (sqrt(v) inverse_root_correction2 + epsilon) + decayed x
#pragma once

#include <cmath>

#include "kernels/ops.h"

namespace tpsim {

struct AdamWFactors {
  float beta1, beta2, one_minus_beta1, one_minus_beta2;
  float rate, decayed, inverse_root_correction2, epsilon, gradient_scale;
};

inline AdamWFactors factors_of(const AdamW& op) {
  const double beta1 = static_cast<double>(op.beta1);
  const double beta2 = static_cast<double>(op.beta2);
  const double step = static_cast<double>(op.step);
  const double correction1 = 1.0 - std::pow(beta1, step);
  const double correction2 = 1.0 - std::pow(beta2, step);
  const double rate = static_cast<double>(op.rate);
  return {op.beta1,
          op.beta2,
          static_cast<float>(1.0 - beta1),
          static_cast<float>(1.0 - beta2),
          static_cast<float>(rate / correction1),
          static_cast<float>(rate * static_cast<double>(op.decay)),
          static_cast<float>(1.0 / std::sqrt(correction2)),
          op.epsilon,
          op.gradient_scale};
}

}  // namespace tpsim
