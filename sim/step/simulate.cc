#include "sim/step/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/normal.h"
#include "core/plan/rank_layout.h"
#include "lowering/passes/context_exchange.h"
#include "lowering/passes/expert_load.h"
#include "lowering/passes/quantization.h"
#include "lowering/passes/recompute.h"
#include "sim/step/interval.h"
#include "sim/step/predict.h"

namespace tpsim {
namespace {

Sources sources_of(const StepCost& cost) {
  Seconds all;
  for (const Seconds time : cost.by_source) all += time;
  if (all <= Seconds()) return {};
  return {cost.by_source[PriceSource::kExact] / all,
          cost.by_source[PriceSource::kInterpolated] / all,
          cost.by_source[PriceSource::kModel] / all};
}

void add_rates(Prediction& p, const Scenario& scenario, const Plan& plan) {
  const double gpus = static_cast<double>(gpu_count(plan));
  const Flops model =
      finetune_flops_per_step(scenario.model, finetune_of(scenario.stack), plan.global_batch);
  const Flops hardware = model + recomputed_flops(scenario, plan);
  const FlopsPerSecond model_rate = model / p.step / gpus;
  p.model_tflops_per_gpu = model_rate.value() * 1e-12;
  const Flops masked = model_flops_per_step(scenario.model, plan.global_batch) -
                       half_mask_flops_per_step(scenario.model, plan.global_batch);
  p.half_mask_tflops_per_gpu = ((model - masked) / p.step).value() / gpus * 1e-12;
  p.hardware_tflops_per_gpu = (hardware / p.step).value() / gpus * 1e-12;
  const DType operands = product_dtype(plan);
  const DeviceFacts& device = scenario.profile.device;
  p.mfu = model_rate / (is_narrow(operands) ? matrix_peak(device, operands) : device.matmul_peak);
  p.tokens_per_s = static_cast<double>(plan.global_batch * scenario.model.seq) / p.step.value();
}

void add_memory(Prediction& p, const Scenario& scenario, const Plan& plan, const PlanCosts& costs) {
  p.capacity = scenario.profile.device.memory;
  p.memory = memory_by_stage(scenario.stack, plan, costs);
  for (const StageMemory& stage : p.memory) p.peak = std::max(p.peak, stage.total());
  p.p_oom = probability_of_oom(scenario, p.peak);
  for (const StageCost& stage : costs.stages) {
    p.host_memory =
        std::max(p.host_memory, host_memory_of_node(scenario.cluster, plan, stage.host));
  }
  p.host_capacity = scenario.cluster.host.memory;
  if (p.host_memory > p.host_capacity) p.p_oom = 1;
}

Status check_against_cluster(const Scenario& scenario, const Plan& plan) {
  const std::int64_t available = gpus_for(scenario.cluster, gpu_count(plan));
  if (gpu_count(plan) > available) {
    return bad_input(fmt::format("the plan needs {} GPUs; cluster {} has {}", gpu_count(plan),
                                 scenario.cluster.name, available),
                     "", "choose a larger cluster or a smaller plan");
  }
  TPSIM_TRY_STATUS(check_precision(scenario, plan.precision));
  TPSIM_TRY_STATUS(check_load(scenario.stack, scenario.model));
  TPSIM_TRY_STATUS(check_exchange(scenario.stack, scenario.model, plan));
  const StackLimit limit = violated_limit(scenario.stack, scenario.model, plan);
  if (!limit.reason.empty()) {
    return bad_input(fmt::format("stack {}: {}", scenario.stack.name, limit.reason), "",
                     limit.hint + "; add --ignore-stack-limits to predict it anyway");
  }
  return Ok{};
}

Prediction predicted(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs) {
  const Scenario& scenario = pricer.scenario();
  const StepCost cost = step_cost(pricer, plan, costs, nullptr);
  Prediction p;
  p.step = cost.step;
  p.sources = sources_of(cost);
  set_interval(p, scenario, plan, cost);
  p.bubble_fraction = cost.bubble_fraction;
  for (const StepTerm term : kStepTerms) p.breakdown.push_back({term, cost.terms[term]});
  p.busiest_stage = cost.busiest_stage;
  add_rates(p, scenario, plan);
  add_memory(p, scenario, plan, costs);
  return p;
}

// Error if the step may exceed the limit of is_countable(). Uses upper bounds of all tasks.
Status check_countable(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs) {
  const HostCost& host = pricer.scenario().stack.host;
  Seconds chunk, ends;
  for (const ChunkCost& kind : costs.kinds) {
    for (const PhaseCost& task : kind.tasks) chunk = std::max(chunk, task.time.alone());
  }
  for (const StageCost& stage : costs.stages) {
    Seconds end;
    for (const Seconds part : stage.end) end += part;
    ends = std::max(ends, end);
  }
  ends += pricer.global_norm(plan) + host.per_step;
  const Seconds task = chunk + costs.transfer.gather + costs.transfer.wire + host.per_micro_batch;
  // Number of tasks of all chunks, as if one rank ran all of them in sequence.
  const double tasks = tasks_per_micro_batch(plan.schedule) *
                       static_cast<double>(micro_batches(plan)) *
                       static_cast<double>(plan.stage_layers.size());
  if (is_countable(pricer.scenario().stack, tasks * task + ends)) return Ok{};
  return step_too_long(pricer.scenario());
}

// Error if the simulation exceeds the scenario's limits. `more`: bytes per task besides those of
// the simulation itself.
Status check_tasks(const Scenario& scenario, const Plan& plan, Bytes more) {
  const double tasks = tasks_per_micro_batch(plan.schedule) *
                       static_cast<double>(micro_batches(plan)) *
                       static_cast<double>(plan.stage_layers.size());
  WorkEstimate work = work_of_tasks(tasks);
  work.memory += tasks * more;
  return check_work(fmt::format("the simulation of a step of {:.1e} tasks", tasks), work,
                    scenario.limits);
}

constexpr double kMostDays = 50;  // 64-bit picoseconds overflow after 106 days

}  // namespace

Bytes host_memory_of_node(const ClusterSpec& cluster, const Plan& plan, Bytes of_rank) {
  return static_cast<double>(std::min(gpu_count(plan), host_size(cluster))) * of_rank;
}

double probability_of_oom(const StackMemory& stack, Bytes capacity, Bytes peak) {
  return error_cdf((peak - capacity).value() / (stack.spread * peak.value()));
}

double probability_of_oom(const Scenario& scenario, Bytes peak) {
  return probability_of_oom(scenario.stack.memory, scenario.profile.device.memory, peak);
}

Bytes peak_at_risk(const Scenario& scenario, double risk) {
  const double spread = scenario.stack.memory.spread;
  const double margin = 1 - error_quantile(risk) * spread;
  // High risks exceed what the distribution of relative errors can deny to any peak.
  return margin > 0 ? scenario.profile.device.memory / margin
                    : Bytes(std::numeric_limits<double>::infinity());
}

Status check_plan(const Scenario& scenario, const Plan& plan) {
  TPSIM_TRY_STATUS(validate(scenario.model));
  TPSIM_TRY_STATUS(validate(plan, scenario.model));
  return check_against_cluster(scenario, plan);
}

bool is_countable(const StackSpec& stack, Seconds one_by_one) {
  constexpr double kLatest = 7;  // largest deviation among 10^10 ranks, in standard deviations
  return (1 + kLatest * stack.rank_jitter) * one_by_one < Seconds(kMostDays * 86400);
}

Error step_too_long(const Scenario& scenario) {
  return bad_input(
      fmt::format("with profile {} and stack {} on cluster {}, a step may take more than {} days, "
                  "the limit",
                  scenario.profile.name, scenario.stack.name, scenario.cluster.name, kMostDays),
      "", "check that the model, the stack and the cluster match");
}

Result<Prediction> predict(LayerPricer& pricer, const Plan& plan) {
  TPSIM_TRY_STATUS(check_tasks(pricer.scenario(), plan, {}));
  const PlanCosts costs = plan_costs(pricer, plan);
  TPSIM_TRY_STATUS(check_countable(pricer, plan, costs));
  return predicted(pricer, plan, costs);
}

Result<Prediction> simulate(const Scenario& scenario, const Plan& plan,
                            std::shared_ptr<const OpCostModel> shared_ops) {
  TPSIM_TRY_STATUS(check_plan(scenario, plan));
  LayerPricer pricer(std::make_shared<const PriceLists>(scenario, std::move(shared_ops)));
  return predict(pricer, plan);
}

Result<Timeline> simulate_timeline(const Scenario& scenario, const Plan& plan) {
  TPSIM_TRY_STATUS(check_plan(scenario, plan));
  constexpr Bytes kSpan(2 * sizeof(TimelineSpan) + 200);  // includes the text of a span in a file
  TPSIM_TRY_STATUS(check_tasks(scenario, plan, kSpan));
  LayerPricer pricer(scenario);
  const PlanCosts costs = plan_costs(pricer, plan);
  TPSIM_TRY_STATUS(check_countable(pricer, plan, costs));
  Timeline timeline;
  step_cost(pricer, plan, costs, &timeline);
  std::stable_sort(timeline.spans.begin(), timeline.spans.end(),
                   [](const TimelineSpan& a, const TimelineSpan& b) {
                     return std::pair(a.stage, a.begin) < std::pair(b.stage, b.begin);
                   });
  return timeline;
}

}  // namespace tpsim
