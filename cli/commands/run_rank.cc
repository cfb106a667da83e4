#include <fmt/format.h>

#include "app/reports/times_json.h"
#include "cli/commands/commands.h"
#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "cli/views/times_view.h"
#include "core/json/json_document.h"
#include "devices/local_devices.h"
#include "devices/memory_check.h"
#include "profiler/measured_steps.h"
#include "ranks/modelled/modelled_world.h"
#include "reference_model/training/training.h"
#include "sim/memory/reserved_memory.h"
#include "sim/step/predict.h"
#include "sim/step/rank_times.h"
#include "sim/step/step.h"

namespace tpsim::cli {
namespace {

struct RankMeasurement {
  std::int64_t rank = 0;
  MeasuredSteps measured;
  StepTimes predicted;
  Bytes predicted_peak;

  Seconds waiting() const { return total(measured.times.collectives); }
  double accounted() const { return (total(measured.times.ops) + waiting()) / measured.mean; }
  Seconds predicted_step() const { return total(predicted.ops) + total(predicted.collectives); }
};

Result<RankMeasurement> measure(const LocalDevices& devices, const MemoryCheck& memory,
                                const LayerPricer& pricer, TrainingRun run,
                                const TokenSource& tokens, std::int64_t rank) {
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
  RankMeasurement measurement;
  measurement.rank = rank;
  measurement.measured = measured_steps(reports);
  return measurement;
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

JsonValue report_json(const RankMeasurement& m, const TrainingRun& run) {
  const Comparison comparison = compare(m.predicted, m.measured.times);
  return json_object({{"version", "tpsim-rank-report/1"},
                      {"model", run.model.name},
                      {"plan", short_name(run.plan)},
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
                      {"op_kinds", compared_json(comparison.kinds)},
                      {"ops", compared_json(comparison.ops)},
                      {"collectives", compared_json(comparison.collectives)}});
}

std::string report_text(const Terminal& terminal, const RankMeasurement& m,
                        const NamedScenario& named, const TrainingRun& run) {
  const Comparison comparison = compare(m.predicted, m.measured.times);
  std::string text =
      fmt::format("{}, {}, rank {} of {} alone, collectives modelled for {}\n\n", run.model.name,
                  short_name(run.plan), m.rank, gpu_count(run.plan), named.scenario.cluster.name);
  text += fmt::format(
      "  step    {} measured (median of {}, spread {:.1f} %), {} predicted with {}\n"
      "  wait    {} of the step in modelled collectives; ops and waits account for {:.1f} % of it\n"
      "  memory  {} measured ({} of it tensors), {} predicted\n\n",
      to_string(m.measured.step), m.measured.count, 100 * m.measured.spread,
      to_string(m.predicted_step()), named.scenario.profile.name, to_string(m.waiting()),
      100 * m.accounted(), to_string(m.measured.peak()), to_string(m.measured.allocated),
      to_string(m.predicted_peak));
  text += compared_table(terminal, "kind of op", comparison.kinds) + "\n";
  text += compared_table(terminal, "collective (waits as predicted)", comparison.collectives);
  return text;
}

// Refuses options that would need data from ranks that do not run.
Status check_options(const Arguments& arguments) {
  return refuse(arguments,
                {Opt::kStateFolder, Opt::kSaveEvery, Opt::kDumpGradients, Opt::kCudaGraphs},
                "--rank runs one rank alone to time its ops: its weights become meaningless");
}

}  // namespace

Status run_rank_alone(const Arguments& arguments, const Terminal& terminal,
                      const NamedScenario& planned, const TrainingRun& run,
                      const TokenSource& tokens) {
  TPSIM_TRY_STATUS(check_options(arguments));
  TPSIM_TRY(const NamedScenario named, executed_here(planned));
  TPSIM_TRY(const std::int64_t rank,
            integer_of(arguments, Opt::kRank, 0, {0, gpu_count(run.plan) - 1}));
  TPSIM_TRY_STATUS(check_plan(named.scenario, run.plan));
  TPSIM_TRY(const LocalDevices devices, local_devices(arguments[Opt::kDevice].value_or("cpu")));
  TPSIM_TRY(const MemoryCheck memory, MemoryCheck::of(named, devices));
  LayerPricer pricer(named.scenario);
  TPSIM_TRY(RankMeasurement m, measure(devices, memory, pricer, run, tokens, rank));
  m.predicted = predicted_times(pricer, run.plan, rank);
  m.predicted_peak = predicted_memory(devices, pricer, run.plan, rank);
  if (arguments.has(Opt::kJson)) return print(to_text(report_json(m, run)));
  return print(terminal, report_text(terminal, m, named, run));
}

}  // namespace tpsim::cli
