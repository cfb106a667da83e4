#include "plans/search/enumerate.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>

#include "core/software/launch_rules.h"
#include "plans/search/stage_cuts.h"

namespace tpsim {
namespace {

constexpr SettingValue kNoRecompute{Setting::kRecompute,
                                    static_cast<std::int64_t>(Recompute::kNone)};

}  // namespace

EnumerationCount& EnumerationCount::operator+=(const EnumerationCount& other) {
  considered += other.considered;
  too_slow += other.too_slow;
  for (const auto& [reason, n] : other.pruned) pruned[reason] += n;
  return *this;
}

std::size_t GroupKeyHash::operator()(const GroupKey& key) const noexcept {
  const ParallelDegrees& d = key.degrees;
  std::uint64_t hash = static_cast<std::uint64_t>(key.family);
  for (const std::int64_t n :
       {d.tp, d.pp, d.dp, d.cp, d.ep, d.etp, key.micro_batch, key.virtual_stages,
        std::int64_t{key.rank_order_matters ? 1 : 0}, static_cast<std::int64_t>(key.schedule)}) {
    hash = std::rotl(hash ^ static_cast<std::uint64_t>(n), 29) * 0x9E3779B97F4A7C15ULL;
  }
  return hash ^ hash >> 32;
}

PlanSpace::PlanSpace(const Scenario& scenario, SearchSpace space)
    : scenario_(scenario),
      space_(std::move(space)),
      gpu_counts_(gpu_counts_of(scenario.cluster, space_)) {
  for (const SettingRow& row : setting_rows()) {
    const bool by_device = row.setting == Setting::kDtype && space_.asked[row.setting].empty();
    if (by_device) {
      space_.asked[row.setting] = {static_cast<std::int64_t>(usual_dtype(scenario.profile.device))};
    }
    const bool by_weights =
        row.setting == Setting::kGradientDtype && has_narrow_gradients(scenario.stack.parts);
    if (by_weights && space_.asked[row.setting].empty()) {
      space_.asked[row.setting] = space_.asked[Setting::kDtype];
    }
    if (!row.tried.empty())
      space_.asked[row.setting] = tried_values(scenario.stack.choices, space_, row.setting);
  }
  for (const RuleScope scope : {RuleScope::kPlan, RuleScope::kParts}) {
    const auto& rules = rules_of(scenario.stack.launcher, scope);
    std::copy_if(
        rules.begin(), rules.end(), std::back_inserter(rules_),
        [&](const LaunchRule* rule) { return rule->may_break(scenario.model, scenario.stack); });
  }
  const StackChoices& choices = scenario.stack.choices;
  impossible_rank_orders_ = static_cast<std::int64_t>(
      std::erase_if(space_.asked[Setting::kRankOrder], [&](std::int64_t order) {
        return !choices.has({Setting::kRankOrder, order});
      }));
  const std::vector<std::int64_t>& recompute = space_.asked[Setting::kRecompute];
  asks_for_selective_ =
      recompute == std::vector<std::int64_t>{static_cast<std::int64_t>(Recompute::kSelective)};
  has_without_recompute_ = space_.asked.holds(kNoRecompute) && choices.has(kNoRecompute);
  std::vector<std::int64_t>& blocks = space_.asked[Setting::kRecomputeBlocks];
  if (blocks.empty()) {
    blocks.resize(static_cast<std::size_t>(scenario.model.layers));
    std::iota(blocks.begin(), blocks.end(), 1);
  }
  std::erase_if(blocks, [&](std::int64_t n) { return !is_asked(Setting::kRecomputeBlocks, n); });
  for (const std::int64_t micro_batch : divisors(space_.global_batch)) {
    if (is_asked(Setting::kMicroBatch, micro_batch)) micro_batches_.push_back(micro_batch);
  }
  add_families();
  add_cuts();
}

const char* PlanSpace::refusal(const Plan& plan) const {
  for (const LaunchRule* rule : rules_) {
    if (rule->is_broken(scenario_.model, plan, &scenario_.stack)) return refusal_of(*rule);
  }
  return nullptr;
}

void PlanSpace::add_families() {
  std::vector<std::int64_t> degrees;
  for (const std::int64_t gpus : gpu_counts_) {
    for (const std::int64_t tp : divisors(gpus)) {
      if (is_asked(Setting::kTp, tp) && !contains(degrees, tp)) degrees.push_back(tp);
    }
  }
  std::sort(degrees.begin(), degrees.end());
  for (const std::int64_t tp : degrees) {
    Plan plan;
    plan.degrees.tp = tp;
    add_variants(0, plan);
    for (const std::int64_t sp : values(Setting::kSequenceParallel)) {
      layouts_[{tp, static_cast<int>(sp)}] =
          layouts_of(scenario_, space_, gpu_counts_, tp, sp != 0);
    }
  }
}

// Adds a family for every combination of values of the variant settings in row `first` and later
// rows.
void PlanSpace::add_variants(std::size_t first, const Plan& plan) {
  const std::span<const SettingRow> rows = setting_rows();
  std::size_t i = first;
  while (i < rows.size() && rows[i].role != SettingRole::kVariant) ++i;
  if (i == rows.size()) return families_.push_back(plan);
  for (const std::int64_t value : values(rows[i].setting)) {
    Plan next = plan;
    rows[i].set(next, value);
    add_variants(i + 1, next);
  }
}

void PlanSpace::exclude_refused(Cuts& cuts, std::int64_t pp) const {
  Plan plan;
  plan.degrees.pp = pp;
  plan.virtual_stages = cuts.virtual_stages;
  const auto is_refused = [&](const StageCut& cut) {
    plan.stage_layers = cut.layers;
    return broken_rule(scenario_.stack.launcher, RuleScope::kStages, scenario_.model, plan) !=
           nullptr;
  };
  const auto refused = std::stable_partition(cuts.cuts.begin(), cuts.cuts.end(),
                                             [&](const StageCut& cut) { return !is_refused(cut); });
  cuts.refused.assign(std::make_move_iterator(refused), std::make_move_iterator(cuts.cuts.end()));
  cuts.cuts.erase(refused, cuts.cuts.end());
}

// Adds the stage cut of the plan from which the search starts, if the cut is not in the list
// and has as many layers as the model.
void PlanSpace::add_custom_cut(Cuts& cuts, std::int64_t pp) const {
  const std::optional<Plan>& own = space_.around;
  if (!own || own->degrees.pp != pp || own->virtual_stages != cuts.virtual_stages) return;
  const bool is_known = std::any_of(cuts.cuts.begin(), cuts.cuts.end(), [&](const StageCut& cut) {
    return cut.layers == own->stage_layers;
  });
  const bool is_whole = std::accumulate(own->stage_layers.begin(), own->stage_layers.end(),
                                        std::int64_t{0}) == scenario_.model.layers;
  if (!is_known && is_whole) cuts.cuts.push_back(stage_cut(own->stage_layers, pp, scenario_.model));
}

void PlanSpace::add_cuts() {
  for (const std::int64_t gpus : gpu_counts_) {
    for (const std::int64_t pp : divisors(gpus)) {
      if (pp > scenario_.model.layers + 2 || !is_asked(Setting::kPp, pp)) continue;
      std::vector<Cuts>& cuts = cuts_[pp];
      if (!cuts.empty()) continue;
      for (std::int64_t v = 1; v <= most_virtual_stages(scenario_.model, pp); ++v) {
        if (!is_asked(Setting::kVirtualStages, v)) continue;
        cuts.push_back({v, 0, stage_cuts(scenario_.model, {pp, v, space_.uneven_ends}), {}, {}});
        add_custom_cut(cuts.back(), pp);
        exclude_refused(cuts.back(), pp);
        cuts.back().floors = cut_floors(cuts.back().cuts, scenario_.model);
        for (const StageCut& cut : cuts.back().cuts) {
          cuts.back().recompute_counts += static_cast<std::int64_t>(recompute_counts(cut).size());
        }
      }
    }
  }
}

EnumerationCount PlanSpace::visit_family(std::int64_t family, const Visit& visit) const {
  return visit_groups(family, [&](const PlanGroup& group) {
    for (const StageCut& cut : group.cuts) {
      for (const Arrangement& arrangement : group.arrangements) {
        visit_plans_of(group, arrangement, cut, visit);
      }
    }
  });
}

void PlanSpace::visit_plans_of(const PlanGroup& group, const Arrangement& arrangement,
                               const StageCut& cut, const Visit& visit) const {
  Plan plan = arranged(group.settings, arrangement);
  if (plan.recompute != Recompute::kBlocks) {
    visit(plan, cut);
    return;
  }
  for (const std::int64_t blocks : recompute_counts(cut)) {
    plan.recompute_blocks = blocks;
    visit(plan, cut);
  }
}

EnumerationCount PlanSpace::visit_plans(const Visit& visit) const {
  EnumerationCount count;
  for (std::int64_t family = 0; family < families(); ++family) {
    count += visit_family(family, visit);
  }
  return count;
}

std::span<const std::int64_t> PlanSpace::recompute_counts(const StageCut& cut) const {
  const std::vector<std::int64_t>& all = values(Setting::kRecomputeBlocks);
  const auto end = std::upper_bound(all.begin(), all.end(), most_recomputed_blocks(cut.layers));
  return std::span(all).first(static_cast<std::size_t>(end - all.begin()));
}

EnumerationCount enumerate_plans(const Scenario& scenario, const SearchSpace& space,
                                 const std::function<void(const Plan&)>& visit) {
  return PlanSpace(scenario, space).visit_plans([&](Plan plan, const StageCut& cut) {
    plan.stage_layers = cut.layers;
    visit(plan);
  });
}

}  // namespace tpsim
