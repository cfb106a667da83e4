// Default global batch of a plan or a search.
#pragma once

#include <cstdint>

#include "core/model/model_spec.h"

namespace tpsim {

// Returns the default batch of a search on `gpus` GPUs: the model's usual batch, else near 4 M
// tokens (or 6 K tokens per GPU, if larger). The batch is a multiple of the GPUs or of a divisor of
// their number.
std::int64_t searched_global_batch(const ModelSpec& model, std::int64_t gpus);

// Returns the default batch of a plan on `gpus` GPUs: the multiple of `at_once` nearest to the
// model's usual batch, else nearest to the tokens above. `at_once`: sequences in one micro-batch of
// all replicas.
std::int64_t usual_global_batch(const ModelSpec& model, std::int64_t gpus, std::int64_t at_once);

}  // namespace tpsim
