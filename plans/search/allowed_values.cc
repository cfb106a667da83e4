#include "plans/search/allowed_values.h"

#include <bit>
#include <numeric>
#include <utility>

namespace tpsim {
namespace {

// Minimum number of positions per context-parallel rank. With fewer, a rank has too little work
// between collectives. Published recipes keep 4096 positions (LLaMA 3.1 at 8192 with cp = 2,
// NVIDIA/dgxc-benchmarking) to 8192 (at 131072 with cp = 16, Grattafiori et al. 2024, table 4).
constexpr std::int64_t kLeastPositions = 4096;

}  // namespace

bool is_around(const SearchSpace& space, const SettingValue& value) {
  return space.around && setting_of(*space.around, value.setting) == value;
}

bool is_allowed(const Scenario& scenario, const SearchSpace& space, const SettingValue& value) {
  const bool asked = space.asked[value.setting].empty() || space.asked.holds(value);
  return asked && !contains(space.excluded, value) && scenario.stack.choices.has(value);
}

std::vector<std::int64_t> tried_values(const StackChoices& choices, const SearchSpace& space,
                                       Setting setting) {
  const SettingRow& row = row_of(setting);
  const auto without_excluded = [&](std::vector<std::int64_t> values) {
    std::erase_if(values, [&](std::int64_t value) {
      return contains(space.excluded, SettingValue{setting, value});
    });
    return values;
  };
  if (!space.asked[setting].empty()) return without_excluded(space.asked[setting]);
  std::vector<std::int64_t> tried = {row.tried.begin(), row.tried.end()};
  // Values that a search tries only if the stack's file lists them.
  constexpr SettingValue kListed[] = {
      {Setting::kRecompute, static_cast<std::int64_t>(Recompute::kOps)},
      {Setting::kSchedule, static_cast<std::int64_t>(ScheduleKind::kZbH1)}};
  for (const SettingValue& value : kListed) {
    if (setting == value.setting && choices.only.holds(value)) tried.push_back(value.value);
  }
  if (space.around) {
    const std::int64_t own = row.get(*space.around);
    if (!contains(tried, own)) tried.push_back(own);
  }
  tried = without_excluded(std::move(tried));
  if (!tried.empty()) return tried;
  std::vector<std::int64_t> all;
  for (const FieldWord& word : row.words) all.push_back(word.value);
  return without_excluded(std::move(all));
}

SearchSpace likely_part(const Scenario& scenario, SearchSpace space, LikelyPart part) {
  const auto keep = [&](Setting setting, std::vector<std::int64_t> values, auto is_likely) {
    std::erase_if(values, [&](std::int64_t value) {
      return !is_likely(value) || !is_allowed(scenario, space, {setting, value});
    });
    if (!values.empty()) space.asked[setting] = std::move(values);
  };
  const auto tried = [&](Setting setting) {
    return tried_values(scenario.stack.choices, space, setting);
  };
  keep(Setting::kZero, tried(Setting::kZero), [](std::int64_t zero) { return zero <= 1; });
  const std::int64_t sequences = part == LikelyPart::kFourSequences ? 4 : 1;
  keep(Setting::kMicroBatch, divisors(space.global_batch),
       [&](std::int64_t size) { return size <= sequences; });
  if (part == LikelyPart::kFewLayouts) {
    const std::int64_t node = node_size(scenario.cluster, space.gpus);
    const auto is_small = [](std::int64_t most) {
      return [most](std::int64_t degree) {
        return degree <= most && std::has_single_bit(static_cast<std::uint64_t>(degree));
      };
    };
    keep(Setting::kTp, divisors(space.gpus), is_small(std::min<std::int64_t>(node, 8)));
    keep(Setting::kPp, divisors(space.gpus), is_small(16));
    keep(Setting::kEp, divisors(std::max<std::int64_t>(1, scenario.model.experts.count)),
         is_small(64));
    keep(Setting::kCp, divisors(space.gpus), is_small(1));
    const std::vector<std::int64_t> orders = tried(Setting::kRankOrder);
    keep(Setting::kRankOrder, orders, [&](std::int64_t order) { return order == orders.front(); });
  }
  if (scenario.model.attention_dropout == 0) {
    keep(Setting::kAttention, tried(Setting::kAttention), [](std::int64_t kind) {
      return kind == static_cast<std::int64_t>(AttentionKind::kFlash);
    });
  }
  space.uneven_ends = 0;
  return space;
}

std::vector<std::int64_t> context_degrees(const Scenario& scenario, const SearchSpace& space,
                                          std::int64_t ranks) {
  std::vector<std::int64_t> degrees = divisors(ranks);
  const bool recurs = needs_whole_sequences(scenario.model);
  std::erase_if(degrees, [&](std::int64_t cp) {
    const bool short_parts = cp > 1 && (recurs || scenario.model.seq < cp * kLeastPositions);
    const bool is_free = space.asked[Setting::kCp].empty() && !is_around(space, {Setting::kCp, cp});
    return (is_free && short_parts) || !is_allowed(scenario, space, {Setting::kCp, cp});
  });
  return degrees;
}

std::vector<std::int64_t> expert_tensor_degrees(const Scenario& scenario, const SearchSpace& space,
                                                std::int64_t tp) {
  std::vector<std::int64_t> degrees = space.asked[Setting::kEtp];
  if (degrees.empty()) {
    degrees = {0, 1};
    const std::int64_t own = space.around ? space.around->degrees.etp : 0;
    if (own > 1) degrees.push_back(own);
  }
  const auto is_tried = [&](std::int64_t etp) {
    return is_allowed(scenario, space, {Setting::kEtp, etp});
  };
  const bool both = contains(degrees, std::int64_t{0}) && is_tried(0);
  std::erase_if(degrees, [&](std::int64_t etp) {
    const bool is_same = both && etp == tp;  // equivalent to 0
    return is_same || !is_tried(etp) || (etp > 0 && !has_experts(scenario.model));
  });
  return degrees;
}

std::vector<std::int64_t> expert_degrees(const Scenario& scenario, const SearchSpace& space,
                                         std::int64_t ranks) {
  const ModelSpec& model = scenario.model;
  std::vector<std::int64_t> degrees = {1};
  if (has_experts(model)) degrees = divisors(std::gcd(ranks, model.experts.count));
  std::erase_if(degrees, [&](std::int64_t ep) {
    return !is_allowed(scenario, space, {Setting::kEp, ep});
  });
  return degrees;
}

std::vector<std::int64_t> gpu_counts_of(const ClusterSpec& cluster, const SearchSpace& space) {
  const std::int64_t per_node = node_size(cluster, space.gpus);
  const bool varies = space.objective == Objective::kCost || space.objective == Objective::kEnergy;
  if (!varies || space.gpus <= per_node || !cluster.unequal_nodes.empty()) return {space.gpus};
  std::vector<std::int64_t> counts;
  for (std::int64_t gpus = per_node; gpus <= space.gpus; gpus += per_node) counts.push_back(gpus);
  return counts;
}

std::int64_t most_virtual_stages(const ModelSpec& model, std::int64_t pp) {
  return pp == 1 ? 1 : std::max<std::int64_t>(1, (model.layers + 2) / pp);
}

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> low, high;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

}  // namespace tpsim
