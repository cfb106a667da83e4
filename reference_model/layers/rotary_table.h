// Rotary frequencies (Megatron's RotaryEmbedding), with scaling for longer contexts.
//
// With n rotated entries of a head and base theta, pair i rotates by position * f_i:
//   none      f_i = theta^(-2i/n)
//   linear    f_i / factor
//   llama3    f_i t + f_i / factor (1 - t),
//             t = (original f_i / 2 pi - low) / (high - low), clamped to [0, 1]
//   yarn      f_i / factor t + f_i (1 - t), where t rises from 0 to 1 between the pairs that rotate
//             beta_fast and beta_slow times within the original context (Peng et al. 2023)
//   longrope  f_i / factor_i, with the long factors if sequences exceed the original context
#pragma once

#include <vector>

#include "core/model/model_spec.h"

namespace tpsim {

// Number of rotated entries of a head: even, at most head_dim.
std::int64_t turned_width(const AttentionShape& attention);

struct RotaryAngles {
  std::vector<float> frequencies;  // one for each pair
  float magnitude = 1;             // factor of cosines and sines
  bool is_plain = true;            // frequencies of `none` with magnitude 1
};
RotaryAngles rotary_table(const ModelSpec& model);

}  // namespace tpsim
