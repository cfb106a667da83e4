#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "cli/commands/commands.h"
#include "cli/commands/memory_check.h"
#include "cli/devices/local_devices.h"
#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "cli/options/wrapping.h"
#include "cli/views/times_view.h"
#include "core/base/numbers.h"
#include "core/json/json_document.h"
#include "core/model/model_support.h"
#include "core/plan/rank_layout.h"
#include "profiler/measured_steps.h"
#include "ranks/gathered.h"
#include "sim/memory/reserved_memory.h"
#include "sim/step/rank_times.h"
#include "sim/step/simulate.h"

namespace tpsim::cli {
namespace {

constexpr std::size_t kMostSuspects = 8;
// Ops whose error is at least this share of the step are suggested for measuring again.
constexpr double kSuspectShare = 0.005;
// Shortest op that is compared individually on GPUs. The events around an op take 2 to 3 us each.
constexpr Seconds kShortestOnGpus(20e-6);
// Minimum share of time that a rank must be on its core; less is reported.
constexpr double kUndisturbed = 0.9;
// Unpredicted waiting in collectives is reported above this share of the step. On a busy machine
// ranks wait for each other, even if each computes on its own core.
constexpr double kMuchWaiting = 0.2;

// Measurement of all ranks of one plan.
struct Measurement {
  MeasuredSteps first;            // steps of the first rank, as `tpsim run` reports them
  StepTimes times;                // times per step, mean over ranks
  std::vector<Bytes> stage_peak;  // maximum over the ranks of a stage, by stage
  double share_on_core = 1;       // time on a core / elapsed time, minimum over ranks; 1 on GPUs
  double accounted = 0;           // (time in ops and collectives) / step time, over all ranks
};

struct Validation {
  Plan plan;
  std::string model;
  std::string profile;
  bool launched = false;   // ranks are processes of a launcher
  std::int64_t cores = 0;  // cores for the ranks of this process; 0 for GPUs and launched ranks
  Prediction predicted;
  std::vector<Bytes> predicted_memory;  // by stage
  Measurement measured;
  StepTimes predicted_times;  // mean over ranks, without waiting
  Seconds shortest;           // ops below this time are compared by kind only
  Comparison comparison;

  double step_error() const { return predicted.step / measured.first.step - 1; }
  // Returns the mean time per rank that collectives take longer than predicted for ranks that
  // arrive together. It consists of the pipeline bubble and of waiting for slower ranks.
  Seconds measured_wait() const {
    return total(measured.times.collectives) - total(predicted_times.collectives);
  }
  Seconds predicted_wait() const {
    return time_of(predicted, StepTerm::kBubble) + time_of(predicted, StepTerm::kStragglers);
  }
};

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
                                           const TrainingRun& run, const Terminal& terminal) {
  const auto ranks = static_cast<int>(gpu_count(run.plan));
  std::vector<MeasuredSteps> steps;
  const TokenSource tokens = TokenSource::synthetic(run.model.seq, run.model.vocab, run.seed);
  ProgressBar progress(terminal, "running");
  const DeviceRankBody body = [&](World& world, Device& device) -> Status {
    const bool first = world.rank() == 0;
    TPSIM_TRY_STATUS(memory.launched(world, device, run.plan));
    std::vector<StepReport> reports;
    TPSIM_TRY_STATUS(train(world, device, run, tokens, [&](const StepReport& report) {
      reports.push_back(report);
      const double share = static_cast<double>(report.step) / static_cast<double>(run.steps);
      if (first) progress.show(share);
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

JsonValue report_json(const Validation& v) {
  const Seconds measured = v.measured.first.step;
  return json_object(
      {{"version", "tpsim-measured-report/1"},
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
       {"measure_again", compared_json(worth_measuring_again(v.comparison, measured, kSuspectShare,
                                                             kMostSuspects, v.shortest))}});
}

// Returns "median of 10 steps, the shortest 12.1 ms, spread 0.4 %; excludes 2 warm-up steps".
std::string steps_text(const MeasuredSteps& steps) {
  std::string text = "one step";
  if (steps.count > 1) {
    text = fmt::format("median of {} steps, the shortest {}, spread {:.1f} %", steps.count,
                       to_string(steps.least), 100 * steps.spread);
  }
  if (steps.warm_up == 0) return text + ": includes warm-up";
  return text +
         fmt::format("; excludes {} warm-up step{}", steps.warm_up, steps.warm_up == 1 ? "" : "s");
}

std::string head_text(const Validation& v) {
  std::string text = fmt::format(
      "{}, {}, on {} {}; kernel times of {}\n\n"
      "  step    {} predicted ({} to {}), {} measured: {}\n"
      "          {}\n"
      "  wait    {} predicted, {} measured: bubble and slower ranks (mean over ranks)\n",
      v.model, short_name(v.plan), gpu_count(v.plan),
      v.launched ? "processes" : "ranks of this machine", printable(v.profile),
      to_string(v.predicted.step), to_string(v.predicted.step_low),
      to_string(v.predicted.step_high), to_string(v.measured.first.step),
      error_text(v.step_error()), steps_text(v.measured.first), to_string(v.predicted_wait()),
      to_string(v.measured_wait()));
  if (v.cores > 0 && v.cores < gpu_count(v.plan)) {
    text += fmt::format("  cores   {} ranks share {}, which makes the steps longer\n",
                        gpu_count(v.plan), counted_text(v.cores, "core"));
  } else if (v.measured.share_on_core < kUndisturbed) {
    text += fmt::format(
        "  cores   a rank had its core for only {:.0f} % of its work: the machine is busy, which "
        "makes the steps longer\n",
        100 * v.measured.share_on_core);
  }
  const Seconds unpredicted = v.measured_wait() - v.predicted_wait();
  if (v.cores > 0 && unpredicted > kMuchWaiting * v.measured.first.step) {
    text += fmt::format(
        "  busy?   {} of waiting in collectives are not predicted: ranks wait for each other, as "
        "on a machine\n          that runs other programs; validate again on an idle machine\n",
        to_string(unpredicted));
  }
  for (std::size_t s = 0; s < v.measured.stage_peak.size(); ++s) {
    const Bytes predicted = v.predicted_memory[s];
    const Bytes measured = v.measured.stage_peak[s];
    if (measured == Bytes()) continue;
    text +=
        fmt::format("  memory  stage {}: {} predicted, {} measured: {}\n", s, to_string(predicted),
                    to_string(measured), error_text(predicted / measured - 1));
  }
  return text + fmt::format("  ops and collectives account for {:.1f} % of the ranks' time\n\n",
                            100 * v.measured.accounted);
}

std::string report_text(const Terminal& terminal, const Validation& v) {
  std::string text = head_text(v);
  text += compared_table(terminal, "kind of op", v.comparison.kinds) + "\n";
  text += compared_table(terminal, "collective (measured with waiting)", v.comparison.collectives);
  const auto again = worth_measuring_again(v.comparison, v.measured.first.step, kSuspectShare,
                                           kMostSuspects, v.shortest);
  if (again.empty()) {
    return text + "\nno op is off by more than 0.5 % of the step; the rest is waiting\n";
  }
  return text + "\n" +
         compared_table(terminal, "measure again (tpsim profile)", again, kMostSuspects);
}

}  // namespace

Status validate_plan(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY(const auto file, read_plan_argument(arguments));
  TPSIM_TRY(NamedScenario loaded, load_scenario(arguments, file));
  TPSIM_TRY_STATUS(check_trainable(loaded.scenario.model));
  TPSIM_TRY(const NamedScenario named, executed_here(std::move(loaded)));
  const std::string device = arguments[Opt::kDevice].value_or("cpu");
  TPSIM_TRY_STATUS(check_runs_on(file->plan, device));
  TPSIM_TRY(const LocalDevices devices, local_devices(device));
  Validation v;
  v.plan = file->plan;
  v.launched = devices.ranks.started > 1;
  if (!devices.facts.asynchronous && !v.launched) v.cores = cores_allowed();
  v.model = named.scenario.model.name;
  v.profile = fmt::format("{} ({})", named.profile, named.scenario.profile.source);
  TPSIM_TRY(v.predicted, simulate(named.scenario, v.plan));
  v.predicted_memory = predicted_memory(devices, named.scenario, v.predicted, v.plan);
  LayerPricer pricer(named.scenario);
  v.predicted_times = mean_prediction(pricer, v.plan);

  TrainingRun run;
  run.model = named.scenario.model;
  run.plan = v.plan;
  run.options = named.scenario.stack.training;
  run.time_ops = true;
  run.algorithms = named.scenario.profile.algorithms;
  TPSIM_TRY(run.steps, integer_of(arguments, Opt::kSteps, 12));
  TPSIM_TRY_STATUS(check_started(devices.ranks, v.plan));
  TPSIM_TRY(const MemoryCheck memory, MemoryCheck::of(named, devices));
  TPSIM_TRY_STATUS(memory.threads(v.plan));
  TPSIM_TRY(const auto measured, measure(devices, memory, run, terminal));
  if (!devices.ranks.speaks) return Ok{};
  v.measured = summed(v.plan, measured);
  if (devices.facts.asynchronous) {
    v.measured.share_on_core = 1;
    v.shortest = kShortestOnGpus;
  }
  v.comparison = compare(v.predicted_times, v.measured.times);
  if (arguments.has(Opt::kJson)) return print(to_text(report_json(v)));
  return print(terminal, report_text(terminal, v));
}

}  // namespace tpsim::cli
