// Default global batch of a plan or a search.
#pragma once

#include <cstdint>

#include "core/model/model_spec.h"

namespace tpsim {

// Returns the default global batch of a search on `gpus` GPUs, in sequences: the model's usual
// batch, else about 4 M tokens, or 6 K tokens per GPU if that is more. The batch is a multiple of
// the number of GPUs or of one of its divisors.
std::int64_t searched_global_batch(const ModelSpec& model, std::int64_t gpus);

// Returns the default global batch of a plan on `gpus` GPUs, in sequences: the multiple of
// `at_once` nearest to the model's usual batch, or, if the model has none, nearest to the number of
// tokens of searched_global_batch(). `at_once`: sequences of one micro-batch on all data-parallel
// replicas.
std::int64_t usual_global_batch(const ModelSpec& model, std::int64_t gpus, std::int64_t at_once);

// Returns the multiple of gpus / n nearest to `batch`, for the smallest n with which it is within a
// tenth of `batch`. With such a batch layouts can use more data-parallel ranks.
std::int64_t divisible_batch(std::int64_t batch, std::int64_t gpus);

}  // namespace tpsim
