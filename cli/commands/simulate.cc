// tpsim simulate: predicts one plan, from a plan file or from options.
#include "sim/step/simulate.h"

#include <fmt/format.h>

#include "app/answers/captured_answer.h"
#include "app/answers/plan_answers.h"
#include "app/reports/captured_json.h"
#include "app/reports/report_json.h"
#include "app/reports/trace_json.h"
#include "app/scenario/allocated.h"
#include "cli/commands/commands.h"
#include "cli/options/plan_requests.h"
#include "cli/options/requests.h"
#include "cli/options/values.h"
#include "cli/views/answer_views.h"
#include "cli/views/plan_view.h"
#include "core/base/files.h"
#include "core/scenario/plan_contents.h"

namespace tpsim::cli {
namespace {

constexpr std::size_t kTermsShown = 12;
constexpr std::size_t kStagesShown = 16;

void write_report(TextReport& out, const NamedScenario& named, const PlannedRun& run) {
  write_scenario(out, named, run.plan);
  out.heading("PLAN");
  write_plan(out, run.plan, named.settings_left);
  write_allocation(out, named, run);
  write_prediction(out, run.predicted, named.scenario.profile);
  write_assumed(out, named);
  out.heading("WHERE THE STEP GOES");
  write_breakdown(out, run.predicted, kTermsShown);
  out.heading("MEMORY", "GiB at the peak of each stage");
  write_memory(out, run.predicted, kStagesShown);
}

constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::string_view kHere = "-";  // file name that means standard output

Result<std::string> trace_of(const Scenario& scenario, const Plan& plan) {
  TPSIM_TRY(const StepMemory step, step_memory(scenario, plan));
  LayerPricer pricer(scenario);
  return trace_json(step, stream_spans(pricer, plan, step.timeline),
                    scenario.model.name + ", " + short_name(plan));
}

// Writes a timeline where --trace says, and a message about it to the answer.
Status write_trace(const Arguments& arguments, std::string trace, Answer& answer) {
  const std::string& path = *arguments["--trace"];
  if (path == kHere) {
    answer.text = std::move(trace);
    answer.is_prose = false;
    return Ok{};
  }
  TPSIM_TRY_STATUS(write_file_atomically(path, trace));
  answer.text +=
      fmt::format("\nwrote the timeline to {}: open it at ui.perfetto.dev\n", printable(path));
  return Ok{};
}

// Writes the files that options request, and adds messages about them to the answer. With --trace -
// the answer is the timeline.
Status write_files(const Arguments& arguments, const NamedScenario& named, const Plan& plan,
                   Answer& answer) {
  if (arguments.has("--save")) {
    const std::string& path = *arguments["--save"];
    TPSIM_TRY_STATUS(save_with_contents(path, plan_file_of(named, plan)));
    answer.text += fmt::format("\nwrote the plan to {}\n", printable(path));
  }
  TPSIM_TRY_STATUS(write_rank_file(arguments, named, plan));
  if (!arguments.has("--trace")) return Ok{};
  TPSIM_TRY(std::string trace, trace_of(named.scenario, plan));
  return write_trace(arguments, std::move(trace), answer);
}

// Predicts a captured step of a PyTorch program, which states its layout itself.
Result<Answer> simulate_captured(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY_STATUS(
      refuse_others(arguments,
                    {"--program", "--cluster", "--profile", "--stack", "--node-gbps", "--ranks",
                     "--accumulation", "--trace", "--json", "--quiet", "--color"},
                    "the captured program states it"));
  if (!arguments.positional.empty()) {
    return bad_input("cannot be combined with a plan file", "--program", "give only one of them");
  }
  TPSIM_TRY(CapturedRequest request, captured_request(arguments, *arguments["--program"]));
  TPSIM_TRY(request.ranks, integer_of(arguments, "--ranks", 0, {1, kMostRanks}));
  TPSIM_TRY(request.micro_batches, integer_of(arguments, "--accumulation", 1, {1, 1024}));
  TPSIM_TRY(const CapturedAnswer captured, captured_answer(request));
  Answer answer = answered(
      arguments, terminal, [&] { return captured_report(captured); },
      [&](TextReport& out) { write_captured(out, captured); });
  if (arguments.has("--trace")) {
    TPSIM_TRY_STATUS(
        write_trace(arguments, captured_trace_json(captured.step, captured.predicted), answer));
  }
  return answer;
}

}  // namespace

Status write_rank_file(const Arguments& arguments, const NamedScenario& named, const Plan& plan) {
  if (!arguments.has("--rank-file")) return Ok{};
  TPSIM_TRY(const std::string text, rank_file(named, plan));
  return write_file_atomically(*arguments["--rank-file"], text);
}

Result<Answer> run_simulate(const Arguments& arguments, const Terminal& terminal) {
  if (arguments.has("--program")) return simulate_captured(arguments, terminal);
  TPSIM_TRY_STATUS(refuse(arguments, {"--ranks", "--accumulation"}, "it needs --program"));
  TPSIM_TRY(const auto file, read_plan_argument(arguments));
  TPSIM_TRY(const SimulateRequest request, simulate_request(arguments, file));
  TPSIM_TRY(const AcceptedRisk accepted, accepted_risk(arguments));
  TPSIM_TRY(const SimulatedPlan simulated, simulate_answer(request));
  const NamedScenario& named = simulated.named;
  const PlannedRun& run = simulated.run;
  const bool prints_trace = arguments["--trace"] == kHere;
  if (prints_trace) {
    TPSIM_TRY_STATUS(
        refuse(arguments, {"--json"}, "--trace - already prints the timeline on stdout"));
  }
  Answer answer;
  if (!prints_trace) {
    answer = answered(
        arguments, terminal, [&] { return simulate_report(named, run); },
        [&](TextReport& out) { write_report(out, named, run); });
  }
  answer.plans = {plan_file_of(named, run.plan)};
  answer.outcome = check_fit(accepted, named, run);
  if (answer.outcome) answer.outcome = write_files(arguments, named, run.plan, answer);
  return answer;
}

}  // namespace tpsim::cli
