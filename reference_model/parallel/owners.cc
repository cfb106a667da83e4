#include "reference_model/parallel/owners.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "reference_model/parallel/parameters.h"

namespace tpsim {

double update_cost(OptimizerKind updater, const Shape& shape) {
  const auto elements = static_cast<double>(shape.elements());
  if (updater != OptimizerKind::kMuon) return elements;
  return elements * static_cast<double>(std::min(shape.rows(), shape.cols()));
}

std::vector<int> balanced_owners(const std::vector<double>& costs, int ranks) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  using Load = std::pair<double, int>;  // cost so far, rank
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (int rank = 0; rank < ranks; ++rank) loads.emplace(0.0, rank);
  std::vector<int> owners(costs.size());
  for (const std::size_t i : order) {
    const auto [cost, rank] = loads.top();
    loads.pop();
    owners[i] = rank;
    loads.emplace(cost + costs[i], rank);
  }
  return owners;
}

bool ParameterStore::owns(const ParameterUnit& unit, const Parameter& p) const {
  return !unit.has_owners() || owns_all_ || p.owner == data_group(unit).rank();
}

void ParameterStore::assign_owners() {
  for (const bool of_experts : {false, true}) {
    std::vector<Parameter*> owned;
    std::vector<double> costs;
    int ranks = 1;
    for (ParameterUnit& unit : units_) {
      if (!unit.has_owners() || unit.holds_experts() != of_experts) continue;
      ranks = data_group(unit).size();
      for (Parameter& p : unit.parameters()) {
        owned.push_back(&p);
        costs.push_back(update_cost(p.updater, p.spec.shape));
      }
    }
    const std::vector<int> owners = balanced_owners(costs, ranks);
    for (std::size_t i = 0; i < owned.size(); ++i) owned[i]->owner = owners[i];
  }
}

}  // namespace tpsim
