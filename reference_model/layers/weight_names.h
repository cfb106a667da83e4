// Names of a model's weights in the checkpoints of its family.
#pragma once

#include <string>
#include <vector>

#include "core/model/model_spec.h"

namespace tpsim {

// Names of a block's tensors omit the block's prefix ("model.layers.3.") and the suffixes ".weight"
// and ".bias". A name is empty if the model lacks the part.
struct WeightNames {
  std::string blocks;  // prefix of the layer's number
  std::string words, head, final_norm, embedding_norm, positions;
  std::vector<std::string> projections;  // q, k, v or one fused matrix
  std::string output, q_norm, k_norm, sinks;
  // Norms before and after the branches.
  std::string attention_norm, after_attention_norm, mlp_norm, after_mlp_norm;
  std::vector<std::string> up;  // one matrix, or gate and up
  std::string down;
  std::string router;                  // without ".weight"
  std::string experts;                 // prefix of an expert's number
  std::vector<std::string> expert_up;  // after the number
  std::string expert_down;
  std::vector<std::string> shared_up;
  std::string shared_down;
};
WeightNames names_of(const ModelSpec& model);

// Returns the prefix of a block's tensor names: "model.layers.3.".
std::string block_prefix(const ModelSpec& model, std::int64_t layer);

}  // namespace tpsim
