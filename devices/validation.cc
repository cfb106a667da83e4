#include "devices/validation.h"

#include <sched.h>

#include <algorithm>

#include "app/reports/times_json.h"
#include "core/model/model_support.h"
#include "core/plan/plan_settings.h"
#include "core/plan/rank_layout.h"
#include "devices/local_devices.h"
#include "devices/memory_check.h"
#include "devices/rank_times.h"
#include "devices/reserved_memory.h"
#include "ranks/gathered.h"
#include "reference_model/training/training.h"
#include "sim/step/simulate.h"

namespace tpsim::app {
namespace {

// Ops whose error is at least this share of the step are suggested for measuring again.
constexpr double kSuspectShare = 0.005;
// Shortest op that is compared individually on GPUs. The events around an op take 2 to 3 us each.
constexpr Seconds kShortestOnGpus(20e-6);

Measurement summed(const Plan& plan, const std::vector<MeasuredSteps>& ranks) {
  Measurement all;
  all.first = ranks.front();
  all.stage_peak.resize(static_cast<std::size_t>(plan.degrees.pp));
  StepTimesSum sum;
  Seconds known, steps;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const MeasuredSteps& one = ranks[rank];
    const auto at = coordinates(plan, static_cast<std::int64_t>(rank));
    Bytes& peak = all.stage_peak[static_cast<std::size_t>(at.pp)];
    peak = std::max(peak, one.peak());
    sum.add(one.times);
    known += total(one.times.ops) + total(one.times.collectives);
    steps += one.mean;
    all.share_on_core = std::min(all.share_on_core, one.share_on_core);
  }
  all.times = divided(sum.times(), static_cast<std::int64_t>(ranks.size()));
  all.accounted = known / steps;
  return all;
}

// Returns the number of cores that this process may use, which a launcher or taskset can limit; 0
// if unknown.
std::int64_t cores_allowed() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 0;
}

// Runs the training. Returns the steps of every rank in the process of the first rank, and nothing
// in other processes.
Result<std::vector<MeasuredSteps>> measure(const LocalDevices& devices, const MemoryCheck& memory,
                                           const TrainingRun& run,
                                           const std::function<void(double)>& progress) {
  const auto ranks = static_cast<int>(gpu_count(run.plan));
  std::vector<MeasuredSteps> steps;
  const TokenSource tokens = TokenSource::synthetic(run.model.seq, run.model.vocab, run.seed);
  const DeviceRankBody body = [&](World& world, Device& device) -> Status {
    const bool first = world.rank() == 0;
    TPSIM_TRY_STATUS(memory.launched(world, device, run.plan));
    std::vector<StepReport> reports;
    TPSIM_TRY_STATUS(train(world, device, run, tokens, [&](const StepReport& report) {
      reports.push_back(report);
      const double share = static_cast<double>(report.step) / static_cast<double>(run.steps);
      if (first && progress) progress(share);
    }));
    for (const std::string& text : gathered(world, device, packed(measured_steps(reports)))) {
      if (first) steps.push_back(unpacked_steps(text));
    }
    return Ok{};
  };
  TPSIM_TRY_STATUS(run_ranks(devices, ranks, body));
  return steps;
}

// Returns the memory by stage to compare with the measurement: on GPUs the memory in use that the
// driver reports, on CPUs the memory of tensors.
std::vector<Bytes> predicted_memory(const LocalDevices& devices, const Scenario& scenario,
                                    const Prediction& predicted, const Plan& plan) {
  std::vector<Bytes> memory;
  for (const StageMemory& stage : predicted.memory) {
    const std::int64_t rank = global_rank(plan, {.pp = stage.stage});
    memory.push_back(
        devices.facts.asynchronous
            ? driver_memory_of(scenario.model, plan, scenario.stack, rank, gpu_count(plan) > 1)
            : stage.total());
  }
  return memory;
}

StepTimes mean_prediction(LayerPricer& pricer, const Plan& plan) {
  StepTimesSum sum;
  for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
    sum.add(predicted_times(pricer, plan, rank));
  }
  return divided(sum.times(), gpu_count(plan));
}

JsonValue memory_json(const Validation& v) {
  JsonValue rows = JsonValue(JsonValue::Array{});
  for (std::size_t s = 0; s < v.measured.stage_peak.size(); ++s) {
    const Bytes predicted = v.predicted_memory[s];
    const Bytes measured = v.measured.stage_peak[s];
    if (measured == Bytes()) continue;
    rows.push(json_object({{"stage", static_cast<std::int64_t>(s)},
                           {"predicted_gib", predicted.value() / kGiB},
                           {"measured_gib", measured.value() / kGiB},
                           {"error_pct", 100 * (predicted / measured - 1)}}));
  }
  return rows;
}

TrainingRun training_of(const Scenario& scenario, const ValidationRequest& request) {
  TrainingRun run;
  run.model = scenario.model;
  run.plan = request.plan;
  run.options = scenario.stack.training;
  run.time_ops = true;
  run.algorithms = scenario.profile.algorithms;
  run.steps = request.steps;
  return run;
}

}  // namespace

Result<std::optional<Validation>> validated(NamedScenario loaded,
                                            const ValidationRequest& request) {
  TPSIM_TRY_STATUS(check_trainable(loaded.scenario.model));
  TPSIM_TRY(const NamedScenario named, executed_here(std::move(loaded)));
  TPSIM_TRY_STATUS(check_runs_on(request.plan, request.device));
  TPSIM_TRY(const LocalDevices devices, local_devices(request.device));
  Validation v;
  v.plan = request.plan;
  v.launched = devices.ranks.started > 1;
  if (!devices.facts.asynchronous && !v.launched) v.cores = cores_allowed();
  v.model = named.scenario.model.name;
  v.profile = named.profile + " (" + named.scenario.profile.source + ")";
  TPSIM_TRY(v.predicted, simulate(named.scenario, v.plan));
  v.predicted_memory = predicted_memory(devices, named.scenario, v.predicted, v.plan);
  LayerPricer pricer(named.scenario);
  v.predicted_times = mean_prediction(pricer, v.plan);

  TPSIM_TRY_STATUS(check_started(devices.ranks, v.plan));
  TPSIM_TRY(const MemoryCheck memory, MemoryCheck::of(named, devices));
  TPSIM_TRY_STATUS(memory.threads(v.plan));
  const TrainingRun run = training_of(named.scenario, request);
  TPSIM_TRY(const auto measured, measure(devices, memory, run, request.progress));
  if (!devices.ranks.speaks) return std::optional<Validation>();
  v.measured = summed(v.plan, measured);
  if (devices.facts.asynchronous) {
    v.measured.share_on_core = 1;
    v.shortest = kShortestOnGpus;
  }
  v.comparison = compare(v.predicted_times, v.measured.times);
  return std::optional(std::move(v));
}

std::vector<ComparedTime> suspects_of(const Validation& v) {
  return worth_measuring_again(v.comparison, v.measured.first.step, kSuspectShare, kMostSuspects,
                               v.shortest);
}

JsonValue validation_json(const Validation& v) {
  const Seconds measured = v.measured.first.step;
  return json_object({{"version", "tpsim-measured-report/1"},
                      {"model", v.model},
                      {"plan", short_name(v.plan)},
                      {"profile", v.profile},
                      {"steps", v.measured.first.count},
                      {"warm_up_steps", v.measured.first.warm_up},
                      {"step_spread", v.measured.first.spread},
                      {"least_step_s", v.measured.first.least.value()},
                      {"share_on_core", v.measured.share_on_core},
                      {"cores", v.cores},
                      {"predicted_step_s", v.predicted.step.value()},
                      {"low_s", v.predicted.step_low.value()},
                      {"high_s", v.predicted.step_high.value()},
                      {"measured_step_s", measured.value()},
                      {"error_pct", 100 * v.step_error()},
                      {"accounted_pct", 100 * v.measured.accounted},
                      {"predicted_wait_s", v.predicted_wait().value()},
                      {"measured_wait_s", v.measured_wait().value()},
                      {"memory", memory_json(v)},
                      {"op_kinds", compared_json(v.comparison.kinds)},
                      {"collectives", compared_json(v.comparison.collectives)},
                      {"ops", compared_json(v.comparison.ops)},
                      {"measure_again", compared_json(suspects_of(v))}});
}

}  // namespace tpsim::app
