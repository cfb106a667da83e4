#include "plans/enumerate.h"

#include <algorithm>

namespace tpsim {
namespace {

template <class T>
std::vector<T> allowed(const std::vector<T>& asked, std::vector<T> all) {
  return asked.empty() ? all : asked;
}

bool contains(const std::vector<std::int64_t>& asked, std::int64_t value) {
  return asked.empty() || std::find(asked.begin(), asked.end(), value) != asked.end();
}

class Enumerator {
 public:
  Enumerator(const Scenario& scenario, const SearchSpace& space,
             const std::function<void(const Plan&)>& visit)
      : scenario_(scenario),
        space_(space),
        visit_(visit),
        zero_(allowed(space.zero, {0, 1, 2, 3})),
        recompute_(
            allowed(space.recompute, {Recompute::kNone, Recompute::kSelective, Recompute::kFull})),
        sequence_parallel_(allowed(space.sequence_parallel, {false, true})),
        attention_(allowed(space.attention, {AttentionKind::kUnfused, AttentionKind::kFlash})) {}

  EnumerationCount run() {
    for (const std::int64_t tp : divisors(space_.gpus)) {
      if (!contains(space_.tp, tp)) continue;
      for (const std::int64_t pp : divisors(space_.gpus / tp)) {
        const std::int64_t dp = space_.gpus / tp / pp;
        if (contains(space_.pp, pp) && contains(space_.dp, dp)) visit_layout({tp, pp, dp, 1});
      }
    }
    return std::move(count_);
  }

 private:
  std::int64_t settings() const {
    return static_cast<std::int64_t>(zero_.size() * recompute_.size() * sequence_parallel_.size() *
                                     attention_.size());
  }

  void prune(const char* reason, std::int64_t combinations) {
    count_.considered += combinations;
    count_.pruned[reason] += combinations;
  }

  void visit_layout(const ParallelDegrees& degrees) {
    const ModelSpec& model = scenario_.model;
    if (model.attention.heads % degrees.tp != 0 || model.attention.kv_heads % degrees.tp != 0 ||
        model.ffn_hidden % degrees.tp != 0) {
      return prune("heads or widths do not divide by tp", settings());
    }
    if (degrees.pp > model.layers + 2) return prune("fewer layers than stages", settings());
    if (space_.global_batch % degrees.dp != 0) {
      return prune("global batch does not divide by dp", settings());
    }
    for (const std::int64_t micro_batch : divisors(space_.global_batch / degrees.dp)) {
      if (contains(space_.micro_batch, micro_batch)) visit_schedules(degrees, micro_batch);
    }
  }

  void visit_schedules(const ParallelDegrees& degrees, std::int64_t micro_batch) {
    Plan plan;
    plan.degrees = degrees;
    plan.micro_batch = micro_batch;
    plan.global_batch = space_.global_batch;
    plan.dtype = space_.dtype;
    plan.gradient_dtype = space_.gradient_dtype;
    const std::int64_t most = std::max<std::int64_t>(1, (scenario_.model.layers + 2) / degrees.pp);
    for (std::int64_t v = 1; v <= (degrees.pp == 1 ? 1 : most); ++v) {
      if (!contains(space_.virtual_stages, v)) continue;
      plan.virtual_stages = v;
      if (v > 1 && micro_batches(plan) % degrees.pp != 0) {
        prune("interleaving needs micro-batches in multiples of pp", settings());
        continue;
      }
      for (const ScheduleKind schedule : schedules(degrees.pp, v)) {
        plan.schedule = schedule;
        visit_splits(plan);
      }
    }
  }

  std::vector<ScheduleKind> schedules(std::int64_t pp, std::int64_t v) const {
    std::vector<ScheduleKind> possible = {ScheduleKind::kInterleaved};
    if (v == 1) possible = {ScheduleKind::kOneFOneB};
    if (v == 1 && pp > 1) possible.push_back(ScheduleKind::kGpipe);
    if (space_.schedule.empty()) return possible;
    std::vector<ScheduleKind> chosen;
    for (const ScheduleKind kind : possible) {
      if (std::find(space_.schedule.begin(), space_.schedule.end(), kind) !=
          space_.schedule.end()) {
        chosen.push_back(kind);
      }
    }
    return chosen;
  }

  void visit_splits(Plan& plan) {
    std::vector<std::int64_t> previous;
    for (const bool count_embedding : {true, false}) {
      plan.stage_layers =
          even_stage_layers(scenario_.model.layers, chunk_count(plan), count_embedding);
      if (plan.stage_layers == previous) continue;
      previous = plan.stage_layers;
      if (!plan.stage_layers.empty()) visit_settings(plan);
    }
  }

  void visit_settings(Plan& plan) {
    for (const std::int64_t zero : zero_) {
      plan.zero = static_cast<int>(zero);
      for (const Recompute recompute : recompute_) {
        plan.recompute = recompute;
        for (const bool sequence_parallel : sequence_parallel_) {
          plan.sequence_parallel = sequence_parallel;
          for (const AttentionKind attention : attention_) {
            plan.attention = attention;
            visit_plan(plan);
          }
        }
      }
    }
  }

  // Settings that are illegal here, or that do nothing and would only repeat another plan.
  const char* reason_against(const Plan& plan) const {
    const ParallelDegrees& d = plan.degrees;
    if (plan.sequence_parallel && d.tp == 1)
      return "sequence parallelism without tensor parallelism";
    if (plan.sequence_parallel && scenario_.model.seq % d.tp != 0) {
      return "the sequence does not divide by tp";
    }
    if (d.dp == 1 && plan.zero > 0 && zero_.front() == 0) return "ZeRO without data parallelism";
    if (plan.zero >= 2 && d.pp > 1 && !scenario_.stack.zero_2_and_3_with_pipeline) {
      return "the stack refuses ZeRO 2 and 3 with pipelines";
    }
    if (plan.attention == AttentionKind::kFlash && plan.recompute == Recompute::kSelective &&
        std::find(recompute_.begin(), recompute_.end(), Recompute::kNone) != recompute_.end()) {
      return "flash attention keeps no probabilities to recompute";
    }
    return nullptr;
  }

  void visit_plan(const Plan& plan) {
    if (const char* reason = reason_against(plan)) return prune(reason, 1);
    ++count_.considered;
    visit_(plan);
  }

  const Scenario& scenario_;
  const SearchSpace& space_;
  const std::function<void(const Plan&)>& visit_;
  const std::vector<std::int64_t> zero_;
  const std::vector<Recompute> recompute_;
  const std::vector<bool> sequence_parallel_;
  const std::vector<AttentionKind> attention_;
  EnumerationCount count_;
};

}  // namespace

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
  return Enumerator(scenario, space, visit).run();
}

}  // namespace tpsim
