#include "core/plan/plan.h"

#include <algorithm>

namespace tpsim {

DType product_dtype(const Plan& plan) {
  switch (plan.precision) {
    case Precision::kNone: return plan.dtype;
    case Precision::kFp8:
    case Precision::kFp8Current: return DType::kFloat8;
    case Precision::kFp8Block: return DType::kFloat8Block;
    case Precision::kMxFp8: return DType::kMxFloat8;
    case Precision::kNvFp4: return DType::kNvFloat4;
  }
  return plan.dtype;
}

std::int64_t gpu_count(const Plan& plan) {
  return plan.degrees.tp * plan.degrees.pp * plan.degrees.dp * plan.degrees.cp;
}

std::int64_t data_ranks(const Plan& plan) { return plan.degrees.dp * plan.degrees.cp; }

std::int64_t stage_ranks(const Plan& plan) { return plan.degrees.tp * data_ranks(plan); }

std::int64_t expert_tensor_ranks(const Plan& plan) {
  return plan.degrees.etp == 0 ? plan.degrees.tp : plan.degrees.etp;
}

std::int64_t expert_data_ranks(const Plan& plan) {
  return stage_ranks(plan) / (expert_tensor_ranks(plan) * plan.degrees.ep);
}

bool folds_experts(const Plan& plan) {
  return plan.degrees.ep > 1 || expert_tensor_ranks(plan) != plan.degrees.tp;
}

bool has_replicas(const Plan& plan) {
  return data_ranks(plan) > 1 || expert_data_ranks(plan) > 1 || offloads_weights(plan);
}

std::int64_t micro_batches(const Plan& plan) {
  return plan.global_batch / (plan.degrees.dp * plan.micro_batch);
}

std::int64_t chunk_count(const Plan& plan) { return plan.degrees.pp * plan.virtual_stages; }

std::int64_t most_recomputed_blocks(const std::vector<std::int64_t>& stage_layers) {
  const std::int64_t largest = *std::max_element(stage_layers.begin(), stage_layers.end());
  return std::max<std::int64_t>(0, largest - 1);
}

std::int64_t recomputed_blocks(const Plan& plan, std::int64_t blocks_of_chunk) {
  if (plan.recompute == Recompute::kFull) return blocks_of_chunk;
  return plan.recompute == Recompute::kBlocks ? std::min(plan.recompute_blocks, blocks_of_chunk)
                                              : 0;
}

Plan with_whole_recompute(Plan plan, bool is_recomputed) {
  plan.recompute = is_recomputed ? Recompute::kFull : Recompute::kNone;
  plan.recompute_blocks = 0;
  return plan;
}

std::vector<std::int64_t> even_stage_layers(std::int64_t layers, std::int64_t chunks,
                                            bool count_embedding) {
  const std::int64_t ends = count_embedding ? 2 : 0;
  const std::int64_t share = (layers + ends) / chunks;
  std::int64_t left = (layers + ends) % chunks;
  std::vector<std::int64_t> result(static_cast<std::size_t>(chunks), share);
  if (count_embedding) {
    result.front() -= 1;
    result.back() -= 1;
  }
  // The remaining blocks go to the chunks nearest the middle.
  for (std::int64_t i = (chunks - left) / 2; left > 0; ++i, --left) {
    result[static_cast<std::size_t>(i)] += 1;
  }
  for (const std::int64_t blocks : result) {
    if (blocks < 0) return {};
  }
  return result;
}

std::vector<std::int64_t> default_stage_layers(std::int64_t layers, std::int64_t chunks) {
  const bool counts = (layers + 2) % chunks == 0 || layers % chunks != 0;
  std::vector<std::int64_t> cut = even_stage_layers(layers, chunks, counts);
  return cut.empty() ? even_stage_layers(layers, chunks, false) : cut;
}

}  // namespace tpsim
