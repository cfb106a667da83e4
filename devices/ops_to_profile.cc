#include "devices/ops_to_profile.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/plan/rank_layout.h"
#include "lowering/trace/rank_trace.h"

namespace tpsim::app {
namespace {

// Returns one plan of every set of plans that need the same profile entries.
std::vector<Plan> distinct_plans(const std::vector<Plan>& plans) {
  std::vector<Plan> distinct, short_ones;
  for (const Plan& plan : plans) {
    const Plan few = shortened(plan);
    if (std::find(short_ones.begin(), short_ones.end(), few) != short_ones.end()) continue;
    short_ones.push_back(few);
    distinct.push_back(plan);
  }
  return distinct;
}

// Returns the step with at most this many layers in each stage.
TimedPlan with_layers(TimedPlan step, std::int64_t most) {
  std::vector<std::int64_t>& stages = step.plan.stage_layers;
  for (std::int64_t& layers : stages) layers = std::min(layers, most);
  step.model.layers = std::accumulate(stages.begin(), stages.end(), std::int64_t{0});
  return step;
}

void add_step(StepTimesSum& sum, const RankTrace& trace) {
  for (std::size_t i = trace.step; i < trace.program.events.size(); ++i) {
    const ProgramEvent& event = trace.program.events[i];
    if (event.kind == ProgramEvent::Kind::kOp) {
      sum.add(trace.program.ops[event.index], Seconds());
    } else if (event.kind == ProgramEvent::Kind::kCollective) {
      sum.add(trace.program.collectives[event.index], Seconds());
    }
  }
}

}  // namespace

Plan shortened(const Plan& plan) {
  Plan few = plan;
  // Without replicas, nothing is sharded, and every ZeRO stage runs the same ops.
  if (!has_replicas(few)) few.zero = 0;
  few.schedule = ScheduleKind::kOneFOneB;
  few.virtual_stages = 1;
  few.stage_layers.assign(static_cast<std::size_t>(few.degrees.pp), 1);
  // With as many micro-batches as stages, every kind of task occurs.
  few.global_batch = few.degrees.dp * few.micro_batch * few.degrees.pp;
  return few;
}

std::vector<std::int64_t> distinct_ranks(const Plan& plan) {
  constexpr std::int64_t kMostShards = 16;
  const ParallelDegrees& d = plan.degrees;
  const std::int64_t all = data_ranks(plan);
  const std::int64_t shards = plan.zero == 0 ? 1 : std::min(all, kMostShards);
  std::set<std::int64_t> replicas;  // data ranks: all cp ranks and all ZeRO shards
  for (std::int64_t cp = 0; cp < d.cp; ++cp) replicas.insert(cp);
  for (std::int64_t i = 1; i < shards; ++i) replicas.insert(i * (all - 1) / (shards - 1));
  std::vector<std::int64_t> ranks;
  // First, middle and last stage differ: embedding, blocks only, head.
  for (const std::int64_t pp : std::set<std::int64_t>{0, d.pp / 2, d.pp - 1}) {
    for (const std::int64_t replica : replicas) {
      // Only the first rank of a tensor group includes replicated parameters in the global norm.
      for (const std::int64_t tp : std::set<std::int64_t>{0, d.tp - 1}) {
        ranks.push_back(global_rank(plan, {tp, replica / d.cp, pp, replica % d.cp}));
      }
    }
  }
  return ranks;
}

ModelSpec shortened(const ModelSpec& model, const Plan& shortened_plan) {
  ModelSpec few = model;
  few.layers = shortened_plan.degrees.pp;
  return few;
}

StepTimes ops_to_profile(const ModelSpec& model, const TrainingOptions& options,
                         const std::vector<Plan>& plans) {
  StepTimesSum sum;
  for (const Plan& whole : distinct_plans(plans)) {
    const Plan plan = shortened(whole);
    for (const std::int64_t rank : distinct_ranks(plan)) {
      add_step(sum, trace_rank(shortened(model, plan), plan, options, rank));
    }
  }
  return sum.times();
}

std::vector<TimedPlan> plans_to_time(const ModelSpec& model, const std::vector<Plan>& plans,
                                     const std::function<bool(const TimedPlan&)>& fits) {
  std::vector<TimedPlan> all;
  for (const Plan& plan : distinct_plans(plans)) {
    TimedPlan timed{model, plan};
    Plan& few = timed.plan;
    // Enough for warm-up, steady state and drain of the pipeline.
    const std::int64_t micro = std::min(micro_batches(plan), 2 * plan.degrees.pp);
    few.global_batch = plan.degrees.dp * plan.micro_batch * micro;
    // The largest number of layers per stage that fits lies in [least, most].
    std::int64_t least = 0;
    std::int64_t most = *std::max_element(few.stage_layers.begin(), few.stage_layers.end());
    while (least < most) {
      const std::int64_t middle = (least + most + 1) / 2;
      if (fits(with_layers(timed, middle))) {
        least = middle;
      } else {
        most = middle - 1;
      }
    }
    if (most > 0) all.push_back(with_layers(timed, most));
  }
  return all;
}

}  // namespace tpsim::app
