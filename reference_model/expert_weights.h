// Which experts a rank has and what their weights are called. Internal to experts.
#pragma once

#include <string>

#include "reference_model/rank_context.h"
#include "reference_model/weight_names.h"

namespace tpsim {

// Behind the block's prefix, without ".weight".
std::string expert_name(const WeightNames& names, std::int64_t expert, const std::string& matrix);
// Of the projection of latents, down or up, behind the block's prefix.
std::string latent_name(bool down);
std::int64_t first_expert(const RankContext& context);

}  // namespace tpsim
