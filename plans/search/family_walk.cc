#include "plans/search/family_walk.h"

#include <algorithm>

#include "core/scenario/node_map.h"
#include "lowering/passes/quantization.h"
#include "lowering/passes/recompute.h"
#include "plans/search/allowed_values.h"

namespace tpsim {

namespace {

bool has_attention_kernels(const ModelSpec& model) {
  const auto has = [](const BlockShape& block) { return block.mixer == MixerKind::kAttention; };
  return model.mixer == MixerKind::kAttention ||
         std::any_of(model.other_blocks.begin(), model.other_blocks.end(), has);
}

}  // namespace

bool rank_order_matters(const Scenario& scenario, const Plan& plan) {
  Plan one = plan, other = plan;
  one.rank_order = RankOrder::kTpDpPp;
  other.rank_order = RankOrder::kTpPpDp;
  if (!experts_fit_ranks(other)) return true;
  const NodeMap nodes = node_map(scenario, one), other_nodes = node_map(scenario, other);
  const auto moves = [&](GroupKind group) {
    return place_group(one, group, nodes) != place_group(other, group, other_nodes);
  };
  if (moves(GroupKind::kTensor) || moves(GroupKind::kContext)) return true;  // nodes differ
  if (moves(GroupKind::kData) || moves(GroupKind::kPipeline) || moves(GroupKind::kEmbedding)) {
    return true;
  }
  return folds_experts(one) && (moves(GroupKind::kExpertTensor) || moves(GroupKind::kExpert) ||
                                moves(GroupKind::kExpertData));
}

FamilyWalk::FamilyWalk(const PlanSpace& space, std::int64_t family)
    : scenario_(space.scenario_),
      space_(space),
      asked_(space.space_),
      family_(family),
      plan_(space.families_[static_cast<std::size_t>(family)]) {
  plan_.global_batch = asked_.global_batch;
  reason_against_family_ = reason_against_family();
}

EnumerationCount FamilyWalk::run(const PlanSpace::GroupVisit& visit) {
  add_layouts();
  for (const std::int64_t micro_batch : space_.micro_batches_) {
    plan_.micro_batch = micro_batch;
    for (const Layout& layout : layouts_) {
      plan_.degrees = layout.degrees;
      rank_order_matters_ = layout.rank_order_matters;
      if (asked_.global_batch / layout.degrees.dp % micro_batch != 0) continue;
      if (has_countable_tensors(plan_, scenario_.model)) {
        visit_schedules(visit);
      } else {
        prune("tensors too large to count", settings());
      }
    }
  }
  for (const auto& [reason, count] : pruned_) count_.pruned[reason] += count;
  return std::move(count_);
}

PlanGroup FamilyWalk::group(const GroupKey& key) {
  plan_.degrees = key.degrees;
  rank_order_matters_ = key.rank_order_matters;
  plan_.micro_batch = key.micro_batch;
  plan_.virtual_stages = key.virtual_stages;
  plan_.schedule = key.schedule;
  const std::vector<PlanSpace::Cuts>& cuts = space_.cuts_.at(key.degrees.pp);
  return arrange(*std::find_if(cuts.begin(), cuts.end(), [&](const PlanSpace::Cuts& by_chunks) {
    return by_chunks.virtual_stages == key.virtual_stages;
  }));
}

void FamilyWalk::prune(const char* reason, std::int64_t combinations) {
  count_.considered += combinations;
  for (auto& [known, count] : pruned_) {
    if (known != reason) continue;
    count += combinations;
    return;
  }
  pruned_.emplace_back(reason, combinations);
}

std::int64_t FamilyWalk::settings() const {
  return static_cast<std::int64_t>(values(Setting::kZero).size()) * rank_orders();
}

std::int64_t FamilyWalk::rank_orders() const {
  return static_cast<std::int64_t>(values(Setting::kRankOrder).size()) +
         space_.impossible_rank_orders_;
}

void FamilyWalk::add_layouts() {
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

// Adds a layout for every allowed pair of ETP and EP.
void FamilyWalk::add_expert_layouts(ParallelDegrees degrees) {
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

void FamilyWalk::add_layout(const ParallelDegrees& degrees) {
  if (!space_.is_asked(Setting::kDp, degrees.dp)) return;
  if (const char* reason = refusal_reason(degrees)) {
    prune(reason, settings());
  } else {
    layouts_.push_back({degrees, rank_order_matters(degrees)});
  }
}

bool FamilyWalk::rank_order_matters(const ParallelDegrees& degrees) const {
  Plan plan = plan_;
  plan.degrees = degrees;
  return tpsim::rank_order_matters(scenario_, plan);
}

const char* FamilyWalk::refusal_reason(const ParallelDegrees& degrees) const {
  const ModelSpec& model = scenario_.model;
  if (!divides_by_tp(model, degrees.tp)) return "heads or widths do not divide by tp";
  if (!divides_by_etp(model, degrees.etp == 0 ? degrees.tp : degrees.etp)) {
    return "experts' widths do not divide by etp";
  }
  if (degrees.cp > 1 && needs_whole_sequences(model))
    return "recurrent layers do not support context parallelism here";
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

void FamilyWalk::visit_schedules(const PlanSpace::GroupVisit& visit) {
  const auto cuts = space_.cuts_.find(plan_.degrees.pp);
  if (cuts == space_.cuts_.end()) return;
  for (const PlanSpace::Cuts& by_chunks : cuts->second) {
    plan_.virtual_stages = by_chunks.virtual_stages;
    if (plan_.virtual_stages > 1 && micro_batches(plan_) % plan_.degrees.pp != 0) {
      prune("interleaved schedule needs micro-batches in multiples of pp", settings());
      continue;
    }
    for (const std::int64_t schedule : values(Setting::kSchedule)) {
      plan_.schedule = static_cast<ScheduleKind>(schedule);
      if (suits(plan_.schedule)) visit_schedule(by_chunks, visit);
    }
  }
}

void FamilyWalk::visit_schedule(const PlanSpace::Cuts& by_chunks,
                                const PlanSpace::GroupVisit& visit) {
  if (!has(setting_of(plan_, Setting::kSchedule))) {
    return prune(refusal(Setting::kSchedule), settings() * plans_of(by_chunks));
  }
  if (reason_against_family_ != nullptr) {
    return prune(reason_against_family_, settings() * plans_of(by_chunks));
  }
  for (const StageCut& cut : by_chunks.refused) {
    prune("the stack cannot build these stages", settings() * space_.plans_of(plan_, cut));
  }
  if (plans_of(by_chunks) == 0) return;
  const PlanGroup group = arrange(by_chunks);
  count_.considered += static_cast<std::int64_t>(group.arrangements.size()) * group.plans;
  if (!group.arrangements.empty()) visit(group);
}

bool FamilyWalk::suits(ScheduleKind schedule) const {
  switch (schedule) {
    case ScheduleKind::kOneFOneB: return plan_.virtual_stages == 1;
    case ScheduleKind::kGpipe:
    case ScheduleKind::kZbH1: return plan_.virtual_stages == 1 && plan_.degrees.pp > 1;
    case ScheduleKind::kInterleaved: return plan_.virtual_stages > 1;
  }
  return false;
}

PlanGroup FamilyWalk::arrange(const PlanSpace::Cuts& by_chunks) {
  PlanGroup group;
  group.key = {family_,           plan_.degrees,        rank_order_matters_,
               plan_.micro_batch, plan_.virtual_stages, plan_.schedule};
  group.settings = plan_;
  group.cuts = by_chunks.cuts;
  group.floors = &by_chunks.floors;
  group.plans = plans_of(by_chunks);
  for (const std::int64_t zero : values(Setting::kZero)) {
    plan_.zero = static_cast<int>(zero);
    if (const char* reason = reason_against_zero()) {
      prune(reason, group.plans * rank_orders());
    } else {
      arrange_ranks(group);
    }
  }
  return group;
}

void FamilyWalk::arrange_ranks(PlanGroup& group) {
  if (space_.impossible_rank_orders_ > 0) {
    prune(refusal(Setting::kRankOrder), group.plans * space_.impossible_rank_orders_);
  }
  for (const std::int64_t order : values(Setting::kRankOrder)) {
    plan_.rank_order = static_cast<RankOrder>(order);
    if (!rank_order_matters_ && order != values(Setting::kRankOrder).front()) {
      prune("another rank order gives the same placement", group.plans);
    } else if (!experts_fit_ranks(plan_)) {
      prune("expert groups neither fill nor divide the replicas", group.plans);
    } else if (const char* reason = space_.refusal(plan_)) {
      prune(reason, group.plans);
    } else {
      group.arrangements.push_back({plan_.zero, plan_.rank_order});
    }
  }
}

// Returns the reason to reject the whole family: its settings are illegal for this model and
// software, or have no effect and only repeat another family. Null if there is none.
const char* FamilyWalk::reason_against_family() const {
  const std::int64_t tp = plan_.degrees.tp;
  if (plan_.sequence_parallel && tp == 1) return "sequence parallelism without tensor parallelism";
  const StackSpec& stack = scenario_.stack;
  if (const LaunchRule* rule =
          broken_rule(stack.launcher, RuleScope::kModel, scenario_.model, plan_)) {
    return refusal_of(*rule);
  }
  if (!check_precision(scenario_, plan_.precision).ok()) {
    return "the GPU or the stack does not support the precision";
  }
  if (plan_.precision != Precision::kNone && plan_.dtype != DType::kBFloat16) {
    return "low-precision recipes with another dtype than bf16";
  }
  const bool keeps_8_bits =
      plan_.precision != Precision::kNone && plan_.precision != Precision::kNvFp4;
  if (plan_.fp8_param_gather && !keeps_8_bits)
    return "8-bit weights without an fp8 or mxfp8 recipe";
  for (const SettingRow& row : setting_rows()) {
    if (row.role != SettingRole::kVariant) continue;
    if (!has(setting_of(plan_, row.setting))) return refusal(row.setting);
  }
  if (has_experts(scenario_.model) && tp > 1 && !plan_.sequence_parallel) {
    return "experts with tensor parallelism need sequence parallelism";
  }
  const bool is_flash = plan_.attention == AttentionKind::kFlash;
  if (is_flash && scenario_.model.attention_dropout > 0)
    return "flash attention supports no attention dropout here";
  constexpr SettingValue kFlash{Setting::kAttention,
                                static_cast<std::int64_t>(AttentionKind::kFlash)};
  if (!is_flash && has(kFlash) && scenario_.model.attention_dropout == 0 &&
      !has_attention_kernels(scenario_.model)) {
    return "no layer has the kernels of attention, so unfused attention changes nothing";
  }
  const bool repeats_core_alone =
      plan_.recompute == Recompute::kSelective && recomputes_core_alone(stack);
  if (is_flash && repeats_core_alone && !space_.asks_for_selective_) {
    return "flash attention stores no probabilities, so selective recompute changes nothing";
  }
  return nullptr;
}

// Returns whether the software supports the current plan with ZeRO 0. Software that always uses
// ZeRO 1 does not, even without replicas.
bool FamilyWalk::runs_without_zero() {
  const int zero = std::exchange(plan_.zero, 0);
  const bool runs = space_.refusal(plan_) == nullptr;
  plan_.zero = zero;
  return runs;
}

const char* FamilyWalk::reason_against_zero() {
  const ParallelDegrees& d = plan_.degrees;
  if (!has(setting_of(plan_, Setting::kZero))) return refusal(Setting::kZero);
  if (!has_replicas(plan_) && plan_.zero > 0 && asked_.asked.holds({Setting::kZero, 0}) &&
      runs_without_zero()) {
    return "ZeRO without data parallelism";
  }
  if (plan_.zero >= 2 && d.pp > 1 && !scenario_.stack.zero_2_and_3_with_pipeline) {
    return "the stack refuses ZeRO 2 and 3 with pipelines";
  }
  if (plan_.zero >= 2 && plan_.schedule == ScheduleKind::kZbH1) {
    return "the zb-h1 schedule needs ZeRO 0 or 1";
  }
  return nullptr;
}

EnumerationCount PlanSpace::visit_groups(std::int64_t family, const GroupVisit& visit) const {
  FamilyWalk walk(*this, family);
  return walk.run(visit);
}

PlanGroup PlanSpace::group(const GroupKey& key) const {
  FamilyWalk walk(*this, key.family);
  return walk.group(key);
}

}  // namespace tpsim
