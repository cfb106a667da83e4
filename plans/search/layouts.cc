#include "plans/search/layouts.h"

#include <algorithm>

#include "core/plan/rank_layout.h"
#include "core/scenario/node_map.h"
#include "plans/search/allowed_values.h"

namespace tpsim {

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

namespace {

class LayoutList {
 public:
  LayoutList(const Scenario& scenario, const SearchSpace& space, bool sequence_parallel)
      : scenario_(scenario), space_(space), sequence_parallel_(sequence_parallel) {}

  void add(std::int64_t gpus, std::int64_t tp) {
    for (const std::int64_t pp : divisors(gpus / tp)) {
      if (!is_asked(Setting::kPp, pp)) continue;
      for (const std::int64_t cp : context_degrees(scenario_, space_, gpus / tp / pp)) {
        add_expert_layouts({.tp = tp, .pp = pp, .dp = gpus / tp / pp / cp, .cp = cp});
      }
    }
  }
  Layouts take() { return std::move(layouts_); }

 private:
  bool is_asked(Setting setting, std::int64_t value) const {
    return is_allowed(scenario_, space_, {setting, value});
  }

  // Adds a layout for every allowed pair of ETP and EP.
  void add_expert_layouts(ParallelDegrees degrees) {
    const std::int64_t ranks = degrees.tp * degrees.cp * degrees.dp;
    for (const std::int64_t etp : expert_tensor_degrees(scenario_, space_, degrees.tp)) {
      degrees.etp = etp;
      const std::int64_t cut = etp == 0 ? degrees.tp : etp;
      if (ranks % cut != 0) continue;
      for (const std::int64_t ep : expert_degrees(scenario_, space_, ranks / cut)) {
        degrees.ep = ep;
        if (is_asked(Setting::kDp, degrees.dp)) add_layout(degrees);
      }
    }
  }

  void add_layout(const ParallelDegrees& degrees) {
    if (const char* reason = refusal_reason(degrees)) return refuse(reason);
    Plan plan;
    plan.degrees = degrees;
    layouts_.legal.push_back({degrees, rank_order_matters(scenario_, plan)});
  }

  void refuse(const char* reason) {
    for (auto& [known, count] : layouts_.refused) {
      if (known == reason) {
        ++count;
        return;
      }
    }
    layouts_.refused.emplace_back(reason, 1);
  }

  const char* refusal_reason(const ParallelDegrees& degrees) const {
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
    if (sequence_parallel_ && model.seq / degrees.cp % degrees.tp != 0) {
      return "the sequence does not divide by tp";
    }
    if (degrees.pp > model.layers + 2) return "fewer layers than stages";
    if (space_.global_batch % degrees.dp != 0) return "global batch does not divide by dp";
    return nullptr;
  }

  const Scenario& scenario_;
  const SearchSpace& space_;
  bool sequence_parallel_;
  Layouts layouts_;
};

}  // namespace

Layouts layouts_of(const Scenario& scenario, const SearchSpace& space,
                   std::span<const std::int64_t> gpu_counts, std::int64_t tp,
                   bool sequence_parallel) {
  LayoutList list(scenario, space, sequence_parallel);
  for (const std::int64_t gpus : gpu_counts) {
    if (gpus % tp == 0) list.add(gpus, tp);
  }
  return list.take();
}

}  // namespace tpsim
