// tpsim simulate: predicts one plan, from a plan file or from options.
#include "sim/step/simulate.h"

#include <fmt/format.h>

#include "app/answers/plan_answers.h"
#include "app/reports/report_json.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "cli/options/wrapping.h"
#include "cli/views/plan_view.h"
#include "core/base/files.h"
#include "core/json/json_document.h"
#include "core/scenario/plan_contents.h"

namespace tpsim::cli {
namespace {

constexpr std::size_t kTermsShown = 12;
constexpr std::size_t kStagesShown = 16;

std::string report_text(const Terminal& terminal, const NamedScenario& named,
                        const PlannedRun& run) {
  std::string text = scenario_view(terminal, named, run.plan) + "\n";
  text += heading(terminal, "PLAN");
  text += plan_view(terminal, run.plan, named.settings_left);
  text += prediction_view(terminal, run.predicted, named.scenario.profile);
  text += assumed_view(terminal, named) + "\n";
  text += heading(terminal, "WHERE THE STEP GOES");
  text += breakdown_view(terminal, run.predicted, kTermsShown) + "\n";
  text += heading(terminal, "MEMORY", "GiB at the peak of each stage");
  return text + memory_view(terminal, run.predicted, kStagesShown);
}

constexpr std::string_view kHere = "-";  // file name that means standard output

Result<std::string> trace_of(const Scenario& scenario, const Plan& plan) {
  TPSIM_TRY(const StepMemory step, step_memory(scenario, plan));
  return trace_json(step.timeline, step.samples, scenario.model.name + ", " + short_name(plan));
}

// Writes the files that options request. Returns messages about them. A timeline for standard
// output is returned as text.
Result<std::string> write_files(const Arguments& arguments, const NamedScenario& named,
                                const Plan& plan) {
  std::string said;
  if (arguments.has("--save")) {
    const std::string& path = *arguments["--save"];
    TPSIM_TRY_STATUS(save_with_contents(path, plan_file_of(named, plan)));
    said += fmt::format("\nwrote the plan to {}\n", printable(path));
  }
  if (arguments.has("--trace")) {
    const std::string& path = *arguments["--trace"];
    TPSIM_TRY(const std::string trace, trace_of(named.scenario, plan));
    if (path == kHere) return trace;
    TPSIM_TRY_STATUS(write_file_atomically(path, trace));
    said +=
        fmt::format("\nwrote the timeline to {}: open it at ui.perfetto.dev\n", printable(path));
  }
  return said;
}

}  // namespace

Status run_simulate(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY(const auto file, read_plan_argument(arguments));
  TPSIM_TRY(const SimulateRequest request, simulate_request(arguments, file));
  TPSIM_TRY(const AcceptedRisk accepted, accepted_risk(arguments));
  TPSIM_TRY(const SimulatedPlan answer, simulate_answer(request));
  const auto& [named, run] = answer;
  const bool json = arguments.has("--json");
  const bool prints_trace = arguments["--trace"] == kHere;
  if (prints_trace) {
    TPSIM_TRY_STATUS(
        refuse(arguments, {"--json"}, "--trace - already prints the timeline on stdout"));
  } else {
    TPSIM_TRY_STATUS(print(
        terminal, json ? to_text(simulate_report(named, run)) : report_text(terminal, named, run)));
  }
  TPSIM_TRY_STATUS(check_fit(accepted, named.scenario, run));
  TPSIM_TRY(const std::string said, write_files(arguments, named, run.plan));
  return print(json ? "" : said);
}

}  // namespace tpsim::cli
