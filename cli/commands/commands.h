// Functions that run the commands of tpsim. Each prints its report and returns ok, or returns the
// error for main() to print. The kind of error determines the exit code.
#pragma once

#include <optional>
#include <string>

#include "cli/options/options.h"
#include "cli/options/terminal.h"
#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/scenario/plan_file.h"

namespace tpsim {
class TokenSource;
struct TrainingRun;
namespace app {
struct CalibrateRequest;
struct NamedScenario;
struct OpenedLog;
}  // namespace app
namespace gui {
class Drawing;
}
}  // namespace tpsim

namespace tpsim::cli {

// Searches for the best plans and prints them. Fails with kDoesNotFit if no plan fits in memory.
Status run_plan(const Arguments& arguments, const Terminal& terminal);

// Predicts one plan. Prints the prediction, then fails with kDoesNotFit if the plan is likely to
// run out of memory.
Status run_simulate(const Arguments& arguments, const Terminal& terminal);

// Explains the prediction of a plan, also of a plan that does not fit in memory.
Status run_explain(const Arguments& arguments, const Terminal& terminal);

// The explanation that the options request: every term of a plan, its program, or the answer to
// --why-not or --what-if.
struct Explanation {
  JsonValue document;
  std::string text;
  PlanFile plan;
};
Result<Explanation> explain(const Arguments& arguments, const std::optional<PlanFile>& file,
                            const Terminal& terminal);

// Measures this machine and writes a profile. Fails with kMissing if the device is not available.
Status run_profile(const Arguments& arguments, const Terminal& terminal);

// Trains a plan: on threads of this process, or as one rank of a launcher's job. Fails with
// kMissing if the device is not available.
Status run_training(const Arguments& arguments, const Terminal& terminal);

// Predicts every row of a run table, or predicts and runs one plan. Prints the prediction errors.
Status run_validate(const Arguments& arguments, const Terminal& terminal);

// Predicts time, cost and energy of a training run. Fails with kDoesNotFit if failures of nodes
// prevent the run from completing.
Status run_campaign(const Arguments& arguments, const Terminal& terminal);

// Prints the launch files of a plan, or writes them to a folder. Writes nothing if the export is
// refused.
Status run_export(const Arguments& arguments, const Terminal& terminal);

// Reads launch files, prints the plan and optionally saves it.
Status run_import(const Arguments& arguments, const Terminal& terminal);

// Compares a training log with the prediction. Prints differences; they are an error only above
// --max-gap.
Status run_check_log(const Arguments& arguments, const Terminal& terminal);

Status run_list(const Arguments& arguments, const Terminal& terminal);

// Replaces this process by the GUI program. Fails with kMissing if that program was not built.
Status run_gui(const Arguments& arguments, const Terminal& terminal);

// Writes a web page with a plan. Fails with kMissing if the web program was not built.
Status run_report(const Arguments& arguments, const Terminal& terminal);

// Prints a catalogue entry as a file, the JSON schema of a file format, or the page about all
// formats.
Status run_show(const Arguments& arguments, const Terminal& terminal);

// Compares plans: time by term, memory, settings, and the probability that their order is right.
Status run_compare(const Arguments& arguments, const Terminal& terminal);

// Fits constants of a stack and a cluster to measurements. Prints the changed constants and the
// errors of cross-validation, and writes the files.
Status run_calibrate(const Arguments& arguments, const Terminal& terminal);

// Fits the links of a cluster to the output of nccl-tests, and prints and saves the result.
Status calibrate_link(const Arguments& arguments, const CalibrateRequest& request,
                      const OpenedLog& first, const Terminal& terminal);

Status run_completion(const Arguments& arguments, const Terminal& terminal);

// Answers requests (cli/commands/call.h) until the end of standard input. The answer to a failed
// request has its error. Returns an error only if standard input or output fails.
Status run_call(const Arguments& arguments, const Terminal& terminal);

// validate plan.json: predicts the plan with the profile, trains it for a few steps on all ranks,
// and compares step time, memory by stage, waiting time, each kind of op and each collective. Also
// lists profile entries to measure again.
Status validate_plan(const Arguments& arguments, const Terminal& terminal);

// run --rank: executes the program of one rank alone. A collective waits for its predicted
// duration. Reports time and memory.
Status run_rank_alone(const Arguments& arguments, const Terminal& terminal,
                      const NamedScenario& planned, const TrainingRun& run,
                      const TokenSource& tokens);

// plan --gpus 64,128,...,4096: prints the best plan for each number of GPUs; --plot draws the
// curve. Fails with kDoesNotFit if no size has a plan.
Status run_scaling(const Arguments& arguments, const std::optional<PlanFile>& file,
                   const Terminal& terminal);

}  // namespace tpsim::cli
