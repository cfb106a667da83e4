// The commands of tpsim. Each prints its report and returns ok, or returns the error that main()
// prints and turns into the exit code.
#pragma once

#include <optional>

#include "cli/options/options.h"
#include "cli/options/terminal.h"
#include "core/base/result.h"
#include "core/scenario/plan_file.h"

namespace tpsim {
class TokenSource;
struct TrainingRun;
namespace gui {
class Drawing;
}
}  // namespace tpsim

namespace tpsim::cli {

struct NamedScenario;

// Fails with kDoesNotFit when no plan fits.
Status run_plan(const Arguments& arguments, const Terminal& terminal);

// Fails with kDoesNotFit, after printing the prediction, when the plan likely runs out of memory.
Status run_simulate(const Arguments& arguments, const Terminal& terminal);

// Explains also what does not fit.
Status run_explain(const Arguments& arguments, const Terminal& terminal);

// Writes a profile. Fails with kMissing without a device that computes.
Status run_profile(const Arguments& arguments, const Terminal& terminal);

// Trains on threads of this process, or as one rank of a job that a launcher started. Fails with
// kMissing without the device.
Status run_training(const Arguments& arguments, const Terminal& terminal);

// Predicts every row of a run table, or one plan that is then run here, and prints how far off the
// predictions are.
Status run_validate(const Arguments& arguments, const Terminal& terminal);

// Fails with kDoesNotFit for a run that failures would never let end.
Status run_campaign(const Arguments& arguments, const Terminal& terminal);

// Prints the launch files, or writes them all into a folder; nothing when the stack refuses the
// plan.
Status run_export(const Arguments& arguments, const Terminal& terminal);

// Reads launch files back; prints the plan and saves it where asked.
Status run_import(const Arguments& arguments, const Terminal& terminal);

// A log that is not as predicted is a finding, not a failure.
Status run_check_log(const Arguments& arguments, const Terminal& terminal);

Status run_list(const Arguments& arguments, const Terminal& terminal);

// Becomes the program with the window; fails with kMissing where it is not built.
Status run_gui(const Arguments& arguments, const Terminal& terminal);

// Fails with kMissing where the page's program is not built.
Status run_report(const Arguments& arguments, const Terminal& terminal);

// A catalogue entry as a file, the schema of a kind of file, or the page of all formats.
Status run_show(const Arguments& arguments, const Terminal& terminal);

// Plans side by side: terms, memory, what differs, and how sure their order is.
Status run_compare(const Arguments& arguments, const Terminal& terminal);

// Fits a stack and a cluster to what was measured, prints what moved and how well rows left out are
// predicted, and writes the files.
Status run_calibrate(const Arguments& arguments, const Terminal& terminal);

Status run_completion(const Arguments& arguments, const Terminal& terminal);

// Answers requests (cli/commands/call.h) until the end of standard input. A request that fails is
// answered with its error; this fails where standard input or output does.
Status run_call(const Arguments& arguments, const Terminal& terminal);

// validate plan.json: predicts at the prices of the profile, trains for some steps on all ranks,
// and prints both side by side: the step, memory by stage, waiting, each kind of op, each
// collective, and which entries of the profile to measure again.
Status validate_plan(const Arguments& arguments, const Terminal& terminal);

// run --rank: runs the program of one rank alone, with collectives that wait as long as the
// scenario's model says, and reports where its time and memory went.
Status run_rank_alone(const Arguments& arguments, const Terminal& terminal,
                      const NamedScenario& planned, const TrainingRun& run,
                      const TokenSource& tokens);

// plan --gpus 64,128,...,4096: the best plan of each size, as a curve, drawn with --plot. Fails
// with kDoesNotFit where no size has a plan.
Status run_scaling(const Arguments& arguments, const std::optional<PlanFile>& file,
                   const Terminal& terminal);
// Whether --gpus lists several sizes.
bool is_scaling_curve(const Arguments& arguments);

// The program with the window (gui/window/main.cc), which stands beside this one, is the only one
// that needs Dear ImGui, GLFW and a typeface: it draws a picture as PNG. Both fail with kMissing
// where it is not built.
Status check_png_program();
Status write_png_of(const gui::Drawing& drawing, const std::string& path);

}  // namespace tpsim::cli
