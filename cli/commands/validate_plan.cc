#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "cli/views/answer_views.h"
#include "core/base/numbers.h"
#include "devices/validation.h"

namespace tpsim::cli {
namespace {

// Minimum share of time that a rank must be on its core; less is reported.
constexpr double kUndisturbed = 0.9;
// Unpredicted waiting in collectives is reported above this share of the step. On a busy machine
// ranks wait for each other, even if each computes on its own core.
constexpr double kMuchWaiting = 0.2;

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

void write_head(TextReport& out, const Validation& v) {
  out.line("{}, {}, on {} {}; kernel times of {}\n", v.model, short_name(v.plan), gpu_count(v.plan),
           v.launched ? "processes" : "ranks of this machine", printable(v.profile));
  out.line("  step    {} predicted ({} to {}), {} measured: {}", to_string(v.predicted.step),
           to_string(v.predicted.step_low), to_string(v.predicted.step_high),
           to_string(v.measured.first.step), error_text(v.step_error()));
  out.line("          {}", steps_text(v.measured.first));
  out.line("  wait    {} predicted, {} measured: bubble and slower ranks (mean over ranks)",
           to_string(v.predicted_wait()), to_string(v.measured_wait()));
  if (v.cores > 0 && v.cores < gpu_count(v.plan)) {
    out.line("  cores   {} ranks share {}, which makes the steps longer", gpu_count(v.plan),
             counted_text(v.cores, "core"));
  } else if (v.measured.share_on_core < kUndisturbed) {
    out.line(
        "  cores   a rank had its core for only {:.0f} % of its work: the machine is busy, which "
        "makes the steps longer",
        100 * v.measured.share_on_core);
  }
  const Seconds unpredicted = v.measured_wait() - v.predicted_wait();
  if (v.cores > 0 && unpredicted > kMuchWaiting * v.measured.first.step) {
    out.line(
        "  busy?   {} of waiting in collectives are not predicted: ranks wait for each other, as "
        "on a machine\n          that runs other programs; validate again on an idle machine",
        to_string(unpredicted));
  }
  for (std::size_t s = 0; s < v.measured.stage_peak.size(); ++s) {
    const Bytes predicted = v.predicted_memory[s];
    const Bytes measured = v.measured.stage_peak[s];
    if (measured == Bytes()) continue;
    out.line("  memory  stage {}: {} predicted, {} measured: {}", s, to_string(predicted),
             to_string(measured), error_text(predicted / measured - 1));
  }
  out.line("  ops and collectives account for {:.1f} % of the ranks' time\n",
           100 * v.measured.accounted);
}

void write_validation(TextReport& out, const Validation& v) {
  write_head(out, v);
  write_compared(out, "kind of op", v.comparison.kinds);
  out.blank();
  write_compared(out, "collective (measured with waiting)", v.comparison.collectives);
  out.blank();
  const auto again = suspects_of(v);
  if (again.empty()) {
    return out.line("no op is off by more than 0.5 % of the step; the rest is waiting");
  }
  write_compared(out, "measure again (tpsim profile)", again, kMostSuspects);
}

}  // namespace

Result<Answer> validate_plan(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY(const auto file, read_plan_argument(arguments));
  TPSIM_TRY(const ScenarioRequest scenario, scenario_request(arguments, file));
  TPSIM_TRY(NamedScenario loaded, load_scenario(scenario));
  ValidationRequest request{.plan = file->plan, .device = arguments["--device"].value_or("cpu")};
  TPSIM_TRY(request.steps, integer_of(arguments, "--steps", request.steps));
  ProgressBar progress(terminal, "running");
  request.progress = progress.shower();
  TPSIM_TRY(const std::optional<Validation> v, validated(std::move(loaded), request));
  if (!v) return Answer{};
  return answered(
      arguments, terminal, [&] { return validation_json(*v); },
      [&](TextReport& out) { write_validation(out, *v); });
}

}  // namespace tpsim::cli
