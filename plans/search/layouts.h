// Layouts of a tensor-parallel degree: every PP, DP, CP, EP and ETP degree that the model, the
// batch and the cluster allow.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "plans/search/search_space.h"

namespace tpsim {

// Returns whether the other rank order places some group of the plan on different nodes.
bool rank_order_matters(const Scenario& scenario, const Plan& plan);

struct Layout {
  ParallelDegrees degrees;
  bool rank_order_matters = false;
};

struct Layouts {
  std::vector<Layout> legal;
  std::vector<std::pair<const char*, std::int64_t>> refused;  // number of layouts by reason
};

Layouts layouts_of(const Scenario& scenario, const SearchSpace& space,
                   std::span<const std::int64_t> gpu_counts, std::int64_t tp,
                   bool sequence_parallel);

}  // namespace tpsim
