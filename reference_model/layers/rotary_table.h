// Rotary frequencies with their stretches for longer contexts.
//
// With n entries of a head turned and base theta, pair i turns by position * f_i, where
//   none      f_i = theta^(-2i/n)
//   linear    f_i / factor
//   llama3    f_i t + f_i / factor (1 - t), t = (original f_i / 2 pi - low) / (high - low) in [0,
//   1] yarn      f_i / factor t + f_i (1 - t), t rising from 0 to 1 between the pairs that turn
//             beta_fast and beta_slow times within the original context (Peng et al. 2023)
//   longrope  f_i / factor_i, the long factors where sequences exceed the original context
#pragma once

#include <vector>

#include "core/model/model_spec.h"

namespace tpsim {

// Entries of a head that turn: even, at most head_dim.
std::int64_t turned_width(const AttentionShape& attention);

struct RotaryAngles {
  std::vector<float> frequencies;  // one for each pair
  float magnitude = 1;             // of the cosines and sines
  bool is_plain = true;            // f_i of `none` with magnitude 1
};
RotaryAngles rotary_table(const ModelSpec& model);

}  // namespace tpsim
