#include "plans/search/usual_batch.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tpsim {
namespace {

// Returns the default batch in sequences. For comparison: LLaMA 3 405B used 1 K tokens per GPU,
// DeepSeek-V3 30 K.
double usual_sequences(const ModelSpec& model, std::int64_t gpus) {
  constexpr double kTokens = 4.0 * 1024 * 1024, kOfGpu = 6 * 1024;
  if (model.usual.global_batch > 0) return static_cast<double>(model.usual.global_batch);
  return std::max(kTokens, kOfGpu * static_cast<double>(gpus)) / static_cast<double>(model.seq);
}

std::int64_t nearest_multiple(double wanted, std::int64_t of) {
  const double times = std::round(wanted / static_cast<double>(of));
  return of * std::max<std::int64_t>(1, static_cast<std::int64_t>(times));
}

}  // namespace

std::int64_t searched_global_batch(const ModelSpec& model, std::int64_t gpus) {
  const double wanted = usual_sequences(model, gpus);
  if (model.usual.global_batch > 0) return model.usual.global_batch;
  std::int64_t multiple = gpus;
  for (std::int64_t n = 2; 2 * static_cast<double>(multiple) > wanted && n <= gpus; ++n) {
    if (gpus % n == 0) multiple = gpus / n;
  }
  return nearest_multiple(wanted, multiple);
}

std::int64_t divisible_batch(std::int64_t batch, std::int64_t gpus) {
  for (std::int64_t n = 1; n <= gpus; ++n) {
    const std::int64_t near = nearest_multiple(static_cast<double>(batch), gpus / n);
    if (gpus % n == 0 && 10 * std::abs(near - batch) <= batch) return near;
  }
  return batch;
}

std::int64_t usual_global_batch(const ModelSpec& model, std::int64_t gpus, std::int64_t at_once) {
  return nearest_multiple(usual_sequences(model, gpus), at_once);
}

}  // namespace tpsim
