// Splits into pipeline stages by torchtitan and DeepSpeed. Declared in launch_rules.h.
#include "core/software/launch_rules.h"

namespace tpsim {

std::int64_t missing_at_ends(const ModelSpec& model, const Plan& plan) {
  const std::int64_t chunks = chunk_count(plan);
  for (const std::int64_t missing : {0, 1}) {
    const bool even = (model.layers + 2 * missing) % chunks == 0;
    if (even && even_stage_layers(model.layers, chunks, missing == 1) == plan.stage_layers) {
      return missing;
    }
  }
  return -1;
}

bool titan_casts_nothing(const Plan& plan) {
  const bool shards = plan.zero >= 2 && data_ranks(plan) > 1;
  return plan.dtype == DType::kBFloat16 && !shards && plan.degrees.tp * plan.degrees.pp > 1;
}

std::vector<std::int64_t> equal_stage_layers(std::int64_t layers, std::int64_t stages,
                                             bool counts_embeddings) {
  if ((layers + (counts_embeddings ? 2 : 0)) % stages != 0) return {};
  return even_stage_layers(layers, stages, counts_embeddings);
}

}  // namespace tpsim
