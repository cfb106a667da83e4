// The global batch of a plan or of a search where nobody states one.
#pragma once

#include <cstdint>

#include "core/model/model_spec.h"

namespace tpsim {

// The batch of a search on `gpus` GPUs: the model's usual batch, else near 4 M tokens (or near 6 K
// tokens a GPU, if that is more), a multiple of the GPUs or of a divisor of their number.
std::int64_t searched_global_batch(const ModelSpec& model, std::int64_t gpus);

// Of a plan on `gpus` GPUs: the multiple of `at_once` nearest to the model's usual batch, else
// nearest to as many tokens as above. `at_once`: sequences of all replicas' micro-batches.
std::int64_t usual_global_batch(const ModelSpec& model, std::int64_t gpus, std::int64_t at_once);

}  // namespace tpsim
