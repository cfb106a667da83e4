#include <fmt/format.h>

#include "app/answers/campaign_answer.h"
#include "app/answers/plan_answers.h"
#include "cli/views/plan_view.h"

namespace tpsim::cli {

UsedColumns used_columns(const NamedScenario& named, const SearchSpace& space,
                         const SearchResult& found) {
  UsedColumns used;
  if (space.objective == Objective::kMemory) used.note = "; least GiB first";
  const bool by_energy = space.objective == Objective::kEnergy;
  if (!by_energy && space.objective != Objective::kCost) return used;
  UsedColumns::Column hours{"GPU-h/Gtoken", {}}, own{by_energy ? "kWh/Gtoken" : "USD/Gtoken", {}};
  const auto assumed = app::load_assumptions({}, named);
  for (std::size_t i = 0; i < found.plans.size(); ++i) {
    const PlannedRun& run = found.plans[i];
    const double spent = gpu_hours_per_billion_tokens(run);
    hours.cells.push_back(fmt::format("{:.1f}", spent));
    if (!assumed.ok()) continue;
    // With the objective energy, the score is in GPU-seconds at full power. A second of waiting
    // counts as kWaitingDraw seconds (plans/search/search_space.h).
    const double drawn = found.scores[i] / static_cast<double>(gpu_count(run.plan)) /
                         run.predicted.step.value() * spent;
    const double of_hour =
        by_energy ? (*assumed)[Assumption::kGpuPower] / 1000 : (*assumed)[Assumption::kPrice];
    own.cells.push_back(fmt::format("{:.2f}", (by_energy ? drawn : spent) * of_hour));
  }
  if (!assumed.ok()) {
    used.columns.push_back(std::move(hours));
    used.note = fmt::format("; the {} of {} is not known", by_energy ? "power" : "price",
                            printable(named.cluster));
    return used;
  }
  used.columns.push_back(std::move(own));
  used.note = by_energy ? fmt::format("; kWh of the GPUs alone, {:g} W under load",
                                      (*assumed)[Assumption::kGpuPower])
                        : fmt::format("; USD at {:g} a GPU-hour", (*assumed)[Assumption::kPrice]);
  return used;
}

}  // namespace tpsim::cli
