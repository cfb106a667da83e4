#include "plans/search/search_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "lowering/passes/expert_load.h"
#include "lowering/passes/quantization.h"
#include "plans/search/allowed_values.h"
#include "plans/search/enumerate.h"

namespace tpsim {
namespace {

// Number of stage cuts for one pp: over all numbers of virtual stages (of_all), and without virtual
// stages (of_one).
struct Cuts {
  double of_all = 0, of_one = 0;
  double most = 1;            // largest number of virtual stages
  double chunks = 0;          // total length of the chunk lists of all cuts
  double chunks_squared = 0;  // squared number of chunks per stage, summed over all cuts
};

class WorkCount {
 public:
  WorkCount(const Scenario& scenario, const SearchSpace& space)
      : scenario_(scenario), space_(space) {}

  SearchWork count(int top) {
    for (const std::int64_t gpus : gpu_counts_of(scenario_.cluster, space_)) {
      for (const std::int64_t tp : divisors(gpus)) {
        if (is_asked(Setting::kTp, tp) && divides_by_tp(scenario_.model, tp)) add(gpus, tp);
      }
    }
    double chunks = 0;
    for (const auto& [pp, cuts] : cuts_) chunks += cuts.chunks;
    // Measured in 2026: 0.3 us per plan. With many chunks the time grows with the square of the
    // chunks per stage.
    constexpr Seconds kPlan(0.3e-6);
    constexpr double kManyChunks = 350;
    // Bytes per chunk of a cut: the number of blocks, and the kind of chunk in two lists.
    constexpr Bytes kEntry(8 + 4 + 4);
    SearchWork work;
    work.plans = plans_;
    work.estimate.time = (plans_ + weighted_ / (kManyChunks * kManyChunks)) * kPlan;
    work.estimate.memory = chunks * kEntry;
    const WorkEstimate simulated = work_of_tasks(most_tasks_);
    constexpr double kAsGood = 50;  // guessed number of simulated plans that are not among the best
    work.estimate.time += (kAsGood + top) * simulated.time;
    work.estimate.memory += simulated.memory;
    return work;
  }

 private:
  bool is_asked(Setting setting, std::int64_t value) const {
    return is_allowed(scenario_, space_, {setting, value});
  }

  void add(std::int64_t gpus, std::int64_t tp) {
    for (const std::int64_t pp : divisors(gpus / tp)) {
      if (pp > scenario_.model.layers + 2 || !is_asked(Setting::kPp, pp)) continue;
      const Cuts& cuts = cuts_of(pp);
      for (const std::int64_t cp : context_degrees(scenario_, space_, gpus / tp / pp)) {
        const std::int64_t dp = gpus / tp / pp / cp;
        if (space_.global_batch % dp != 0 || !is_asked(Setting::kDp, dp)) continue;
        const auto experts =
            static_cast<double>(expert_degrees(scenario_, space_, dp).size()) * variants();
        for (const std::int64_t micro_batches : divisors(space_.global_batch / dp)) {
          const bool interleaves = micro_batches % pp == 0;
          plans_ += experts * (interleaves ? cuts.of_all : cuts.of_one);
          weighted_ += interleaves ? experts * cuts.chunks_squared : 0;
          const double chunks = static_cast<double>(pp) * (interleaves ? cuts.most : 1);
          most_tasks_ = std::max(most_tasks_, 2 * static_cast<double>(micro_batches) * chunks);
        }
      }
    }
  }

  // Returns by how much settings outside of the layout multiply the number of plans.
  double variants() {
    if (variants_ > 0) return variants_;
    variants_ = 1;
    for (const SettingRow& row : setting_rows()) {
      // For each number of virtual stages, one to three schedules are legal.
      if (row.tried.empty() || row.setting == Setting::kSchedule) continue;
      variants_ *=
          static_cast<double>(tried_values(scenario_.stack.choices, space_, row.setting).size());
    }
    return variants_;
  }

  const Cuts& cuts_of(std::int64_t pp) {
    const auto known = cuts_.find(pp);
    if (known != cuts_.end()) return known->second;
    const auto ends = static_cast<double>(space_.uneven_ends + 1);
    const double ways = pp == 1 ? 2 : 2 + ends * ends;
    const std::int64_t most = most_virtual_stages(scenario_.model, pp);
    Cuts& cuts = cuts_[pp];
    cuts.of_one = ways;
    const auto add = [&](double count, double sum, double squares) {
      cuts.of_all += ways * count;
      cuts.chunks += ways * static_cast<double>(pp) * sum;
      cuts.chunks_squared += ways * squares;
      cuts.most = std::max(cuts.most, sum / count);
    };
    const std::vector<std::int64_t>& asked = space_.asked[Setting::kVirtualStages];
    for (const std::int64_t v : asked) {
      const auto n = static_cast<double>(v);
      if (v <= most) add(1, n, n * n);
    }
    const auto n = static_cast<double>(most);
    if (asked.empty()) add(n, n * (n + 1) / 2, n * (n + 1) * (2 * n + 1) / 6);
    if (asked.empty()) cuts.most = n;
    return cuts;
  }

  const Scenario& scenario_;
  const SearchSpace& space_;
  std::map<std::int64_t, Cuts> cuts_;  // by pp
  double plans_ = 0, weighted_ = 0, variants_ = 0, most_tasks_ = 0;
};

// Error if none of the requested precisions is supported. If only some are unsupported, the search
// counts their plans as illegal.
Status check_some_precision(const Scenario& scenario, const std::vector<std::int64_t>& asked) {
  std::optional<Error> first;
  for (const std::int64_t precision : asked) {
    const Status status = check_precision(scenario, static_cast<Precision>(precision));
    if (status.ok()) return Ok{};
    if (!first) first = status.error();
  }
  return first ? Status(*first) : Status(Ok{});
}

}  // namespace

SearchWork work_of(const Scenario& scenario, const SearchSpace& space, int top) {
  return WorkCount(scenario, space).count(top);
}

Status check_space(const Scenario& scenario, const SearchSpace& space, int top) {
  TPSIM_TRY_STATUS(validate(scenario.model));
  const ClusterSpec& cluster = scenario.cluster;
  const std::int64_t available = gpus_for(cluster, space.gpus);
  if (space.gpus < 1 || space.gpus > available) {
    return bad_input(fmt::format("{} GPUs are requested; cluster {} has {}", space.gpus,
                                 cluster.name, available),
                     "--gpus", fmt::format("choose between 1 and {}", available));
  }
  const std::int64_t node = node_size(cluster, space.gpus);
  if (cluster.unequal_nodes.empty() && space.gpus > node && space.gpus % node != 0) {
    const std::int64_t below = space.gpus / node * node;
    return bad_input(
        fmt::format("{} GPUs do not fill whole nodes of {} GPUs", space.gpus, node), "--gpus",
        fmt::format("the nearest possible numbers are {} and {}", below, below + node));
  }
  for (const SettingRow& row : setting_rows()) {
    const std::vector<std::int64_t>& asked = space.asked[row.setting];
    const bool in_vain = std::any_of(asked.begin(), asked.end(), [](auto n) { return n > 1; });
    if (row.suits == nullptr || row.suits(scenario.model) || !in_vain) continue;
    return bad_input(fmt::format("{} has no {}", scenario.model.name, row.needs),
                     std::string(option_of(row.setting)),
                     fmt::format("remove the option; it is for models with {}", row.needs));
  }
  TPSIM_TRY_STATUS(check_some_precision(scenario, space.asked[Setting::kPrecision]));
  TPSIM_TRY_STATUS(check_load(scenario.stack, scenario.model));
  if (space.global_batch < 1) {
    return bad_input(fmt::format("the global batch is {} sequences", space.global_batch),
                     "--global-batch", "it must be at least 1");
  }
  const SearchWork work = work_of(scenario, space, top);
  return check_work(fmt::format("a search of {:.1e} plans", work.plans), work.estimate,
                    scenario.limits);
}

}  // namespace tpsim
