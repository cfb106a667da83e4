#include "plans/enumerate.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/rank_layout.h"
#include "plans/stage_cuts.h"

namespace tpsim {
namespace {

constexpr SettingValue kNoRecompute{Setting::kRecompute,
                                    static_cast<std::int64_t>(Recompute::kNone)};

}  // namespace

EnumerationCount& EnumerationCount::operator+=(const EnumerationCount& other) {
  considered += other.considered;
  for (const auto& [reason, n] : other.pruned) pruned[reason] += n;
  return *this;
}

// Visits the plans of one family.
class FamilyWalk {
 public:
  FamilyWalk(const PlanSpace& space, const Plan& family, const PlanSpace::Visit& visit)
      : scenario_(space.scenario_),
        space_(space),
        asked_(space.space_),
        visit_(visit),
        plan_(family) {
    plan_.global_batch = asked_.global_batch;
    reason_against_family_ = reason_against_family();
  }

  EnumerationCount run() {
    add_layouts();
    for (const std::int64_t micro_batch : space_.micro_batches_) {
      plan_.micro_batch = micro_batch;
      for (const Layout& layout : layouts_) {
        plan_.degrees = layout.degrees;
        rank_order_matters_ = layout.rank_order_matters;
        if (asked_.global_batch / layout.degrees.dp % micro_batch != 0) continue;
        if (has_countable_tensors(plan_, scenario_.model)) {
          visit_schedules();
        } else {
          prune("tensors too large to count", settings());
        }
      }
    }
    for (const auto& [reason, count] : pruned_) count_.pruned[reason] += count;
    return std::move(count_);
  }

 private:
  std::int64_t plans_of(const StageCut& cut) const { return space_.plans_of(plan_, cut); }
  std::int64_t plans_of(const PlanSpace::Cuts& cuts) const {
    return plan_.recompute == Recompute::kBlocks ? cuts.recompute_counts
                                                 : static_cast<std::int64_t>(cuts.cuts.size());
  }
  void prune(const char* reason, std::int64_t combinations) {
    count_.considered += combinations;
    for (auto& [known, count] : pruned_) {
      if (known != reason) continue;
      count += combinations;
      return;
    }
    pruned_.emplace_back(reason, combinations);
  }
  const std::vector<std::int64_t>& values(Setting setting) const { return space_.values(setting); }
  std::int64_t settings() const {
    return static_cast<std::int64_t>(values(Setting::kZero).size()) * rank_orders();
  }
  std::int64_t rank_orders() const {
    return static_cast<std::int64_t>(values(Setting::kRankOrder).size()) +
           space_.impossible_rank_orders_;
  }

  void add_layouts() {
    const std::int64_t tp = plan_.degrees.tp;
    for (const std::int64_t gpus : space_.gpu_counts_) {
      if (gpus % tp != 0) continue;
      for (const std::int64_t pp : divisors(gpus / tp)) {
        if (!space_.is_asked(Setting::kPp, pp)) continue;
        for (const std::int64_t cp : context_degrees(scenario_, asked_, gpus / tp / pp)) {
          add_expert_layouts({.tp = tp, .pp = pp, .dp = gpus / tp / pp / cp, .cp = cp});
        }
      }
    }
  }

  // All ways to lay experts over the ranks of a stage.
  void add_expert_layouts(ParallelDegrees degrees) {
    const std::int64_t ranks = degrees.tp * degrees.cp * degrees.dp;
    for (const std::int64_t etp : expert_tensor_degrees(scenario_, asked_, degrees.tp)) {
      degrees.etp = etp;
      const std::int64_t cut = etp == 0 ? degrees.tp : etp;
      if (ranks % cut != 0) continue;
      for (const std::int64_t ep : expert_degrees(scenario_, asked_, ranks / cut)) {
        degrees.ep = ep;
        add_layout(degrees);
      }
    }
  }

  void add_layout(const ParallelDegrees& degrees) {
    if (!space_.is_asked(Setting::kDp, degrees.dp)) return;
    if (const char* reason = reason_against(degrees)) {
      prune(reason, settings());
    } else {
      layouts_.push_back({degrees, rank_order_matters(degrees)});
    }
  }

  // Whether some group lies otherwise on the nodes in the one order than in the other.
  bool rank_order_matters(const ParallelDegrees& degrees) const {
    const std::int64_t per_node =
        node_size(scenario_.cluster, degrees.tp * degrees.pp * degrees.dp * degrees.cp);
    Plan one = plan_, other = plan_;
    one.degrees = other.degrees = degrees;
    one.rank_order = RankOrder::kTpDpPp;
    other.rank_order = RankOrder::kTpPpDp;
    if (!experts_fit_ranks(other)) return true;
    const auto moves = [&](GroupKind group) {
      return place_group(one, group, per_node) != place_group(other, group, per_node);
    };
    if (moves(GroupKind::kData) || moves(GroupKind::kPipeline) || moves(GroupKind::kEmbedding)) {
      return true;
    }
    return folds_experts(one) && (moves(GroupKind::kExpertTensor) || moves(GroupKind::kExpert) ||
                                  moves(GroupKind::kExpertData));
  }

  const char* reason_against(const ParallelDegrees& degrees) const {
    const ModelSpec& model = scenario_.model;
    if (!divides_by_tp(model, degrees.tp)) return "heads or widths do not divide by tp";
    if (!divides_by_etp(model, degrees.etp == 0 ? degrees.tp : degrees.etp)) {
      return "experts' widths do not divide by etp";
    }
    if (degrees.cp > 1 && has_recurrences(model)) {
      return "recurrences go through whole sequences";
    }
    if (degrees.cp > 1 && model.seq % (2 * degrees.cp) != 0) {
      return "the sequence does not divide by 2 x cp";
    }
    if (plan_.sequence_parallel && model.seq / degrees.cp % degrees.tp != 0) {
      return "the sequence does not divide by tp";
    }
    if (degrees.pp > model.layers + 2) return "fewer layers than stages";
    if (asked_.global_batch % degrees.dp != 0) return "global batch does not divide by dp";
    return nullptr;
  }

  void visit_schedules() {
    const auto cuts = space_.cuts_.find(plan_.degrees.pp);
    if (cuts == space_.cuts_.end()) return;
    for (const PlanSpace::Cuts& by_chunks : cuts->second) {
      plan_.virtual_stages = by_chunks.virtual_stages;
      if (plan_.virtual_stages > 1 && micro_batches(plan_) % plan_.degrees.pp != 0) {
        prune("interleaving needs micro-batches in multiples of pp", settings());
        continue;
      }
      for (const std::int64_t schedule : values(Setting::kSchedule)) {
        plan_.schedule = static_cast<ScheduleKind>(schedule);
        if (!suits(plan_.schedule)) continue;
        if (!has({Setting::kSchedule, schedule})) {
          prune(refusal(Setting::kSchedule), settings() * plans_of(by_chunks));
          continue;
        }
        if (reason_against_family_ != nullptr) {
          prune(reason_against_family_, settings() * plans_of(by_chunks));
          continue;
        }
        for (const StageCut& cut : by_chunks.refused) {
          prune("the stack cannot cut these stages", settings() * plans_of(cut));
        }
        for (const StageCut& cut : by_chunks.cuts) {
          if (plans_of(cut) > 0) visit_settings(cut);
        }
      }
    }
  }

  // Whether the software has it, and why not.
  bool has(const SettingValue& value) const { return scenario_.stack.choices.has(value); }
  static const char* refusal(Setting setting) { return tpsim::reason_against(setting).c_str(); }

  bool suits(ScheduleKind schedule) const {
    switch (schedule) {
      case ScheduleKind::kOneFOneB: return plan_.virtual_stages == 1;
      case ScheduleKind::kGpipe: return plan_.virtual_stages == 1 && plan_.degrees.pp > 1;
      case ScheduleKind::kInterleaved: return plan_.virtual_stages > 1;
    }
    return false;
  }

  void visit_settings(const StageCut& cut) {
    for (const std::int64_t zero : values(Setting::kZero)) {
      plan_.zero = static_cast<int>(zero);
      if (const char* reason = reason_against_zero()) {
        prune(reason, plans_of(cut) * rank_orders());
      } else {
        visit_rank_orders(cut);
      }
    }
  }

  void visit_rank_orders(const StageCut& cut) {
    if (space_.impossible_rank_orders_ > 0) {
      prune(refusal(Setting::kRankOrder), plans_of(cut) * space_.impossible_rank_orders_);
    }
    for (const std::int64_t order : values(Setting::kRankOrder)) {
      plan_.rank_order = static_cast<RankOrder>(order);
      if (!rank_order_matters_ && order != values(Setting::kRankOrder).front()) {
        prune("another rank order moves no group to other nodes", plans_of(cut));
        continue;
      }
      if (!experts_fit_ranks(plan_)) {
        prune("expert groups neither fill nor divide replicas that lie apart", plans_of(cut));
        continue;
      }
      if (const char* reason = space_.refusal(plan_)) {
        prune(reason, plans_of(cut));
        continue;
      }
      count_.considered += plans_of(cut);
      visit_(plan_, cut);
    }
  }

  // Settings that are illegal here, or that do nothing and would only repeat another plan.
  const char* reason_against_family() const {
    const std::int64_t tp = plan_.degrees.tp;
    if (plan_.sequence_parallel && tp == 1) {
      return "sequence parallelism without tensor parallelism";
    }
    const StackSpec& stack = scenario_.stack;
    if (const LaunchRule* rule =
            broken_rule(stack.launcher, RuleScope::kModel, scenario_.model, plan_)) {
      return refusal_of(*rule);
    }
    if (plan_.precision != Precision::kNone && plan_.dtype != DType::kBFloat16) {
      return "recipes of fewer bits beside another dtype than bf16";
    }
    const bool keeps_8_bits =
        plan_.precision != Precision::kNone && plan_.precision != Precision::kNvFp4;
    if (plan_.fp8_param_gather && !keeps_8_bits) return "weights of 8 bits without such a recipe";
    for (const SettingRow& row : setting_rows()) {
      if (row.role != SettingRole::kVariant) continue;
      if (!has(setting_of(plan_, row.setting))) return refusal(row.setting);
    }
    if (has_experts(scenario_.model) && tp > 1 && !plan_.sequence_parallel) {
      return "experts with tensor parallelism need sequence parallelism";
    }
    const bool is_flash = plan_.attention == AttentionKind::kFlash;
    if (is_flash && scenario_.model.attention_dropout > 0) {
      return "the flash core has no dropout";
    }
    if (is_flash && plan_.recompute == Recompute::kSelective && !space_.asks_for_selective_) {
      return "flash attention keeps no probabilities to recompute";
    }
    return nullptr;
  }
  // Software that has ZeRO 1 alone has it with nothing to shard too.
  bool runs_without_zero() {
    const int zero = std::exchange(plan_.zero, 0);
    const bool runs = space_.refusal(plan_) == nullptr;
    plan_.zero = zero;
    return runs;
  }
  const char* reason_against_zero() {
    const ParallelDegrees& d = plan_.degrees;
    if (!has(setting_of(plan_, Setting::kZero))) return refusal(Setting::kZero);
    if (!has_replicas(plan_) && plan_.zero > 0 && asked_.asked.holds({Setting::kZero, 0}) &&
        runs_without_zero()) {
      return "ZeRO without data parallelism";
    }
    if (plan_.zero >= 2 && d.pp > 1 && !scenario_.stack.zero_2_and_3_with_pipeline) {
      return "the stack refuses ZeRO 2 and 3 with pipelines";
    }
    return nullptr;
  }

  const Scenario& scenario_;
  const PlanSpace& space_;
  const SearchSpace& asked_;
  const PlanSpace::Visit& visit_;
  Plan plan_;
  const char* reason_against_family_ = nullptr;
  struct Layout {
    ParallelDegrees degrees;
    bool rank_order_matters = false;
  };
  std::vector<Layout> layouts_;
  bool rank_order_matters_ = false;  // of the layout at hand
  EnumerationCount count_;
  std::vector<std::pair<const char*, std::int64_t>> pruned_;  // so far, few reasons
};

PlanSpace::PlanSpace(const Scenario& scenario, SearchSpace space)
    : scenario_(scenario),
      space_(std::move(space)),
      gpu_counts_(gpu_counts_of(scenario.cluster, space_)) {
  for (const SettingRow& row : setting_rows()) {
    const bool by_device = row.setting == Setting::kDtype && space_.asked[row.setting].empty();
    if (by_device) {
      space_.asked[row.setting] = {static_cast<std::int64_t>(usual_dtype(scenario.profile.device))};
    }
    if (!row.tried.empty()) space_.asked[row.setting] = tried_values(space_, row.setting);
  }
  rules_ = rules_of(scenario.stack.launcher, RuleScope::kPlan);
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
    if (rule->is_broken(scenario_.model, plan)) return refusal_of(*rule);
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
  }
}

// A family for every combination of the variants' values from this row of the table on.
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

void PlanSpace::set_refused_aside(Cuts& cuts, std::int64_t pp) const {
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

void PlanSpace::add_cuts() {
  for (const std::int64_t gpus : gpu_counts_) {
    for (const std::int64_t pp : divisors(gpus)) {
      if (pp > scenario_.model.layers + 2 || !is_asked(Setting::kPp, pp)) continue;
      std::vector<Cuts>& cuts = cuts_[pp];
      if (!cuts.empty()) continue;
      for (std::int64_t v = 1; v <= most_virtual_stages(scenario_.model, pp); ++v) {
        if (!is_asked(Setting::kVirtualStages, v)) continue;
        cuts.push_back({v, 0, stage_cuts(scenario_.model, {pp, v, space_.uneven_ends}), {}});
        set_refused_aside(cuts.back(), pp);
        for (const StageCut& cut : cuts.back().cuts) {
          cuts.back().recompute_counts += static_cast<std::int64_t>(recompute_counts(cut).size());
        }
      }
    }
  }
}

EnumerationCount PlanSpace::visit_family(std::int64_t family, const Visit& visit) const {
  return FamilyWalk(*this, families_[static_cast<std::size_t>(family)], visit).run();
}

std::span<const std::int64_t> PlanSpace::recompute_counts(const StageCut& cut) const {
  const std::vector<std::int64_t>& all = values(Setting::kRecomputeBlocks);
  const auto end = std::upper_bound(all.begin(), all.end(), most_recomputed_blocks(cut.layers));
  return std::span(all).first(static_cast<std::size_t>(end - all.begin()));
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

EnumerationCount enumerate_plans(const Scenario& scenario, const SearchSpace& space,
                                 const std::function<void(const Plan&)>& visit) {
  const PlanSpace plans(scenario, space);
  EnumerationCount count;
  for (std::int64_t family = 0; family < plans.families(); ++family) {
    count += plans.visit_family(family, [&](const Plan& settings, const StageCut& cut) {
      Plan plan = settings;
      plan.stage_layers = cut.layers;
      if (plan.recompute != Recompute::kBlocks) return visit(plan);
      for (const std::int64_t blocks : plans.recompute_counts(cut)) {
        plan.recompute_blocks = blocks;
        visit(plan);
      }
    });
  }
  return count;
}

}  // namespace tpsim
