#include "plans/allowed_values.h"

#include <numeric>

#include "plans/enumerate.h"

namespace tpsim {
namespace {

// Below this a rank has too little to do between gathers to be worth trying: published recipes keep
// 4096 positions (LLaMA 3.1 at 8192 with cp = 2, NVIDIA/dgxc-benchmarking) to 8192 (at 131072 with
// cp = 16, Grattafiori et al. 2024, table 4).
constexpr std::int64_t kLeastPositions = 4096;

}  // namespace

bool is_allowed(const SearchSpace& space, const std::vector<std::int64_t>& asked,
                const SettingValue& value) {
  if (!asked.empty() && !contains(asked, value.value)) return false;
  return !contains(space.excluded, value);
}

std::vector<std::int64_t> context_degrees(const ModelSpec& model, const SearchSpace& space,
                                          std::int64_t ranks) {
  std::vector<std::int64_t> degrees = divisors(ranks);
  std::erase_if(degrees, [&](std::int64_t cp) {
    const bool short_parts = cp > 1 && model.seq < cp * kLeastPositions;
    return (space.cp.empty() && short_parts) || !is_allowed(space, space.cp, {Setting::kCp, cp});
  });
  return degrees;
}

std::vector<std::int64_t> expert_degrees(const ModelSpec& model, const SearchSpace& space,
                                         std::int64_t replicas) {
  std::vector<std::int64_t> degrees = {1};
  if (has_experts(model)) degrees = divisors(std::gcd(replicas, model.experts.count));
  std::erase_if(degrees, [&](std::int64_t ep) {
    return !is_allowed(space, space.ep, {Setting::kEp, ep});
  });
  return degrees;
}

std::vector<std::int64_t> gpu_counts_of(const ClusterSpec& cluster, const SearchSpace& space) {
  const std::int64_t per_node = cluster.gpus_per_node;
  const bool varies = space.objective == Objective::kCost || space.objective == Objective::kEnergy;
  if (!varies || space.gpus <= per_node) return {space.gpus};
  std::vector<std::int64_t> counts;
  for (std::int64_t gpus = per_node; gpus <= space.gpus; gpus += per_node) counts.push_back(gpus);
  return counts;
}

std::int64_t most_virtual_stages(const ModelSpec& model, std::int64_t pp) {
  return pp == 1 ? 1 : std::max<std::int64_t>(1, (model.layers + 2) / pp);
}

}  // namespace tpsim
