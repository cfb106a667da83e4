#include "devices/rank_alone.h"

#include <vector>

#include "app/reports/times_json.h"
#include "app/scenario/scenario_request.h"
#include "core/plan/plan_settings.h"
#include "core/plan/rank_layout.h"
#include "devices/local_devices.h"
#include "devices/memory_check.h"
#include "devices/rank_times.h"
#include "devices/reserved_memory.h"
#include "ranks/modelled/modelled_world.h"
#include "sim/step/predict.h"
#include "sim/step/step.h"

namespace tpsim::app {
namespace {

Result<MeasuredSteps> measure(const LocalDevices& devices, const MemoryCheck& memory,
                              const LayerPricer& pricer, TrainingRun run, const TokenSource& tokens,
                              std::int64_t rank) {
  run.time_ops = true;
  std::vector<StepReport> reports;
  const CollectiveSeconds seconds = [&](const CollectiveRecord& record) {
    return pricer.collective({record}, run.plan).value();
  };
  const DeviceRankBody body = [&](World&, Device& device) -> Status {
    TPSIM_TRY_STATUS(memory.rank_alone(device, run.plan, rank));
    ModelledWorld alone(static_cast<int>(rank), static_cast<int>(gpu_count(run.plan)), seconds,
                        run.model.vocab);
    return train(alone, device, run, tokens,
                 [&](const StepReport& report) { reports.push_back(report); });
  };
  TPSIM_TRY_STATUS(run_ranks(devices, 1, body));
  return measured_steps(reports);
}

// Returns the memory to compare with the measurement: on a GPU the memory in use that the driver
// reports, on a CPU the memory of tensors.
Bytes predicted_memory(const LocalDevices& devices, LayerPricer& pricer, const Plan& plan,
                       std::int64_t rank) {
  const Scenario& scenario = pricer.scenario();
  if (devices.facts.asynchronous) {
    return driver_memory_of(scenario.model, plan, scenario.stack, rank, false);
  }
  const auto memory = memory_by_stage(scenario.stack, plan, plan_costs(pricer, plan));
  return memory[static_cast<std::size_t>(coordinates(plan, rank).pp)].total();
}

}  // namespace

Result<RankMeasurement> rank_alone(const NamedScenario& planned, const TrainingRun& run,
                                   const TokenSource& tokens, std::int64_t rank,
                                   const std::string& device) {
  TPSIM_TRY(const NamedScenario named, executed_here(planned));
  TPSIM_TRY_STATUS(check_plan(named.scenario, run.plan));
  TPSIM_TRY(const LocalDevices devices, local_devices(device));
  TPSIM_TRY(const MemoryCheck memory, MemoryCheck::of(named, devices));
  LayerPricer pricer(named.scenario);
  RankMeasurement m;
  m.model = run.model.name;
  m.plan = short_name(run.plan);
  m.cluster = named.scenario.cluster.name;
  m.profile = named.scenario.profile.name;
  m.rank = rank;
  m.ranks = gpu_count(run.plan);
  TPSIM_TRY(m.measured, measure(devices, memory, pricer, run, tokens, rank));
  m.predicted = predicted_times(pricer, run.plan, rank);
  m.predicted_peak = predicted_memory(devices, pricer, run.plan, rank);
  m.comparison = compare(m.predicted, m.measured.times);
  return m;
}

JsonValue rank_json(const RankMeasurement& m) {
  return json_object({{"version", "tpsim-rank-report/1"},
                      {"model", m.model},
                      {"plan", m.plan},
                      {"rank", m.rank},
                      {"steps", m.measured.count},
                      {"step_s", m.measured.step.value()},
                      {"step_spread", m.measured.spread},
                      {"modelled_wait_s", m.waiting().value()},
                      {"accounted_pct", 100 * m.accounted()},
                      {"peak_memory_gib", m.measured.peak().value() / kGiB},
                      {"allocated_memory_gib", m.measured.allocated.value() / kGiB},
                      {"predicted_step_s", m.predicted_step().value()},
                      {"predicted_peak_memory_gib", m.predicted_peak.value() / kGiB},
                      {"op_kinds", compared_json(m.comparison.kinds)},
                      {"ops", compared_json(m.comparison.ops)},
                      {"collectives", compared_json(m.comparison.collectives)}});
}

}  // namespace tpsim::app
