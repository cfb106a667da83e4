#include "plans/enumerate.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/rank_layout.h"
#include "plans/allowed_values.h"
#include "plans/stage_cuts.h"

namespace tpsim {
EnumerationCount& EnumerationCount::operator+=(const EnumerationCount& other) {
  considered += other.considered;
  for (const auto& [reason, n] : other.pruned) pruned[reason] += n;
  return *this;
}

// Visits the plans of one family.
class FamilyWalk {
 public:
  FamilyWalk(const PlanSpace& space, const PlanSpace::Family& family, const PlanSpace::Visit& visit)
      : scenario_(space.scenario_), space_(space), asked_(space.space_), visit_(visit) {
    plan_.degrees.tp = family.tp;
    plan_.sequence_parallel = family.sequence_parallel;
    plan_.recompute = family.recompute;
    plan_.attention = family.attention;
    plan_.offload = family.offload;
    plan_.global_batch = asked_.global_batch;
    plan_.dtype = asked_.dtype;
    plan_.gradient_dtype = asked_.gradient_dtype;
    reason_against_family_ = reason_against_family();
  }

  EnumerationCount run() {
    add_layouts();
    for (const std::int64_t micro_batch : space_.micro_batches_) {
      plan_.micro_batch = micro_batch;
      for (const Layout& layout : layouts_) {
        plan_.degrees = layout.degrees;
        rank_order_matters_ = layout.rank_order_matters;
        if (asked_.global_batch / layout.degrees.dp % micro_batch == 0) visit_schedules();
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
  std::int64_t settings() const {
    return static_cast<std::int64_t>(asked_.zero.size()) * rank_orders();
  }
  std::int64_t rank_orders() const {
    return static_cast<std::int64_t>(asked_.rank_order.size()) + space_.impossible_rank_orders_;
  }

  void add_layouts() {
    const std::int64_t tp = plan_.degrees.tp;
    for (const std::int64_t gpus : space_.gpu_counts_) {
      if (gpus % tp != 0) continue;
      for (const std::int64_t pp : divisors(gpus / tp)) {
        if (!is_allowed(asked_, asked_.pp, {Setting::kPp, pp})) continue;
        for (const std::int64_t cp : context_degrees(scenario_.model, asked_, gpus / tp / pp)) {
          const std::int64_t dp = gpus / tp / pp / cp;
          for (const std::int64_t ep : expert_degrees(scenario_.model, asked_, dp)) {
            add_layout({tp, pp, dp, cp, ep});
          }
        }
      }
    }
  }

  void add_layout(const ParallelDegrees& degrees) {
    if (!is_allowed(asked_, asked_.dp, {Setting::kDp, degrees.dp})) return;
    if (const char* reason = reason_against(degrees)) {
      prune(reason, settings());
    } else {
      layouts_.push_back({degrees, rank_order_matters(degrees)});
    }
  }

  // Whether some group lies otherwise on the nodes in the one order than in the other.
  bool rank_order_matters(const ParallelDegrees& degrees) const {
    const std::int64_t per_node = scenario_.cluster.gpus_per_node;
    Plan one = plan_, other = plan_;
    one.degrees = other.degrees = degrees;
    one.rank_order = RankOrder::kTpDpPp;
    other.rank_order = RankOrder::kTpPpDp;
    const auto moves = [&](GroupKind group) {
      return place_group(one, group, per_node) != place_group(other, group, per_node);
    };
    if (moves(GroupKind::kData) || moves(GroupKind::kPipeline) || moves(GroupKind::kEmbedding)) {
      return true;
    }
    return degrees.ep > 1 && (moves(GroupKind::kExpert) || moves(GroupKind::kExpertData));
  }

  const char* reason_against(const ParallelDegrees& degrees) const {
    const ModelSpec& model = scenario_.model;
    if (model.attention.heads % degrees.tp != 0 || model.attention.kv_heads % degrees.tp != 0 ||
        model.ffn_hidden % degrees.tp != 0) {
      return "heads or widths do not divide by tp";
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
      for (const ScheduleKind schedule : asked_.schedule) {
        plan_.schedule = schedule;
        if (!suits(schedule)) continue;
        if (reason_against_family_ != nullptr) {
          prune(reason_against_family_, settings() * plans_of(by_chunks));
          continue;
        }
        for (const StageCut& cut : by_chunks.cuts) {
          if (plans_of(cut) > 0) visit_settings(cut);
        }
      }
    }
  }

  bool suits(ScheduleKind schedule) const {
    switch (schedule) {
      case ScheduleKind::kOneFOneB: return plan_.virtual_stages == 1;
      case ScheduleKind::kGpipe: return plan_.virtual_stages == 1 && plan_.degrees.pp > 1;
      case ScheduleKind::kInterleaved: return plan_.virtual_stages > 1;
    }
    return false;
  }

  void visit_settings(const StageCut& cut) {
    for (const std::int64_t zero : asked_.zero) {
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
      prune("the stack has no such rank order", plans_of(cut) * space_.impossible_rank_orders_);
    }
    for (const RankOrder order : asked_.rank_order) {
      plan_.rank_order = order;
      if (!rank_order_matters_ && order != asked_.rank_order.front()) {
        prune("another rank order moves no group to other nodes", plans_of(cut));
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
    const StackChoices& choices = scenario_.stack.choices;
    if (!contains(choices.recompute, plan_.recompute)) return "the stack has no such recompute";
    if (!contains(choices.offload, plan_.offload)) return "the stack has no such offload";
    if (has_experts(scenario_.model) && tp > 1 && !plan_.sequence_parallel) {
      return "experts with tensor parallelism need sequence parallelism";
    }
    const bool is_flash = plan_.attention == AttentionKind::kFlash;
    if (is_flash && scenario_.model.attention_dropout > 0) {
      return "the flash core has no dropout";
    }
    if (is_flash && plan_.recompute == Recompute::kSelective &&
        contains(asked_.recompute, Recompute::kNone)) {
      return "flash attention keeps no probabilities to recompute";
    }
    return nullptr;
  }
  const char* reason_against_zero() const {
    const ParallelDegrees& d = plan_.degrees;
    if (data_ranks(plan_) == 1 && plan_.zero > 0 && contains<std::int64_t>(asked_.zero, 0)) {
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
  fill_if_empty(space_.zero, {0, 1, 2, 3});
  fill_if_empty(space_.recompute,
                {Recompute::kNone, Recompute::kSelective, Recompute::kFull, Recompute::kBlocks});
  fill_if_empty(space_.sequence_parallel, {false, true});
  fill_if_empty(space_.attention, {AttentionKind::kUnfused, AttentionKind::kFlash});
  fill_if_empty(space_.schedule,
                {ScheduleKind::kOneFOneB, ScheduleKind::kGpipe, ScheduleKind::kInterleaved});
  fill_if_empty(space_.rank_order, {RankOrder::kTpDpPp, RankOrder::kTpPpDp});
  drop_excluded(space_, Setting::kZero, space_.zero);
  drop_excluded(space_, Setting::kRecompute, space_.recompute);
  drop_excluded(space_, Setting::kAttention, space_.attention);
  drop_excluded(space_, Setting::kSchedule, space_.schedule);
  drop_excluded(space_, Setting::kRankOrder, space_.rank_order);
  drop_excluded(space_, Setting::kSequenceParallel, space_.sequence_parallel);
  fill_if_empty(space_.offload, {Offload::kNone});
  drop_excluded(space_, Setting::kOffload, space_.offload);
  const StackChoices& choices = scenario.stack.choices;
  impossible_rank_orders_ = static_cast<std::int64_t>(std::erase_if(
      space_.rank_order, [&](RankOrder order) { return !contains(choices.rank_orders, order); }));
  has_without_recompute_ =
      contains(space_.recompute, Recompute::kNone) && contains(choices.recompute, Recompute::kNone);
  if (space_.recompute_blocks.empty()) {
    space_.recompute_blocks.resize(static_cast<std::size_t>(scenario.model.layers));
    std::iota(space_.recompute_blocks.begin(), space_.recompute_blocks.end(), 1);
  }
  for (const std::int64_t micro_batch : divisors(space_.global_batch)) {
    if (is_allowed(space_, space_.micro_batch, {Setting::kMicroBatch, micro_batch})) {
      micro_batches_.push_back(micro_batch);
    }
  }
  add_families();
  add_cuts();
}

void PlanSpace::add_families() {
  std::vector<std::int64_t> degrees;
  for (const std::int64_t gpus : gpu_counts_) {
    for (const std::int64_t tp : divisors(gpus)) {
      const bool asked = is_allowed(space_, space_.tp, {Setting::kTp, tp});
      if (asked && !contains(degrees, tp)) degrees.push_back(tp);
    }
  }
  std::sort(degrees.begin(), degrees.end());
  for (const std::int64_t tp : degrees) {
    for (const Recompute recompute : space_.recompute) {
      for (const bool sequence_parallel : space_.sequence_parallel) {
        for (const AttentionKind attention : space_.attention) {
          for (const Offload offload : space_.offload) {
            families_.push_back({tp, sequence_parallel, recompute, attention, offload});
          }
        }
      }
    }
  }
}

void PlanSpace::add_cuts() {
  for (const std::int64_t gpus : gpu_counts_) {
    for (const std::int64_t pp : divisors(gpus)) {
      const bool asked = is_allowed(space_, space_.pp, {Setting::kPp, pp});
      if (pp > scenario_.model.layers + 2 || !asked) continue;
      std::vector<Cuts>& cuts = cuts_[pp];
      if (!cuts.empty()) continue;
      for (std::int64_t v = 1; v <= most_virtual_stages(scenario_.model, pp); ++v) {
        if (!is_allowed(space_, space_.virtual_stages, {Setting::kVirtualStages, v})) continue;
        cuts.push_back({v, 0, stage_cuts(scenario_.model.layers, {pp, v, space_.uneven_ends})});
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
  const std::vector<std::int64_t>& all = space_.recompute_blocks;
  const std::int64_t largest = *std::max_element(cut.layers.begin(), cut.layers.end());
  const auto end = std::lower_bound(all.begin(), all.end(), largest);
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
