// Commands of tpsim. A command prints its report and returns ok, or returns the error that main()
// prints. The error also sets the exit code.
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

// Fails with kDoesNotFit if no plan fits.
Status run_plan(const Arguments& arguments, const Terminal& terminal);

// Fails with kDoesNotFit, after printing the prediction, if the plan probably runs out of memory.
Status run_simulate(const Arguments& arguments, const Terminal& terminal);

// Also explains plans that do not fit.
Status run_explain(const Arguments& arguments, const Terminal& terminal);

// Writes a profile. Fails with kMissing without a device that computes.
Status run_profile(const Arguments& arguments, const Terminal& terminal);

// Trains on threads of this process, or as one rank of a launcher's job. Fails with kMissing
// without the device.
Status run_training(const Arguments& arguments, const Terminal& terminal);

// Predicts every row of a run table, or predicts and runs one plan. Prints the errors of the
// predictions.
Status run_validate(const Arguments& arguments, const Terminal& terminal);

// Fails with kDoesNotFit for a run that cannot finish because of failures.
Status run_campaign(const Arguments& arguments, const Terminal& terminal);

// Prints the launch files, or writes them to a folder. Writes nothing if the stack refuses the
// plan.
Status run_export(const Arguments& arguments, const Terminal& terminal);

// Reads launch files, prints the plan and optionally saves it.
Status run_import(const Arguments& arguments, const Terminal& terminal);

// A log that differs from the prediction is a finding, not a failure.
Status run_check_log(const Arguments& arguments, const Terminal& terminal);

Status run_list(const Arguments& arguments, const Terminal& terminal);

// Replaces the process by the program with the window. Fails with kMissing if it is not built.
Status run_gui(const Arguments& arguments, const Terminal& terminal);

// Fails with kMissing if the page's program is not built.
Status run_report(const Arguments& arguments, const Terminal& terminal);

// Prints a catalogue entry as a file, the schema of a file format, or the page of all formats.
Status run_show(const Arguments& arguments, const Terminal& terminal);

// Compares plans: terms, memory, differences, and the certainty of their order.
Status run_compare(const Arguments& arguments, const Terminal& terminal);

// Fits a stack and a cluster to measurements. Prints changed constants and the errors for left-out
// rows, and writes the files.
Status run_calibrate(const Arguments& arguments, const Terminal& terminal);

Status run_completion(const Arguments& arguments, const Terminal& terminal);

// Answers requests (cli/commands/call.h) until the end of standard input. A failed request is
// answered with its error. Fails only if standard input or output fails.
Status run_call(const Arguments& arguments, const Terminal& terminal);

// validate plan.json: predicts with the profile, trains for some steps on all ranks, and compares
// both. Compared are the step, memory by stage, waiting, each kind of op, and each collective. Also
// lists profile entries to measure again.
Status validate_plan(const Arguments& arguments, const Terminal& terminal);

// run --rank: runs the program of one rank alone. Collectives wait for the time that the scenario's
// model predicts. Reports time and memory.
Status run_rank_alone(const Arguments& arguments, const Terminal& terminal,
                      const NamedScenario& planned, const TrainingRun& run,
                      const TokenSource& tokens);

// plan --gpus 64,128,...,4096: prints the best plan of each size as a curve, drawn with --plot.
// Fails with kDoesNotFit if no size has a plan.
Status run_scaling(const Arguments& arguments, const std::optional<PlanFile>& file,
                   const Terminal& terminal);
// Whether --gpus lists several sizes.
bool is_scaling_curve(const Arguments& arguments);

// PNG files are drawn by the program with the window (gui/window/main.cc), next to this program.
// Only that program needs Dear ImGui, GLFW and a typeface. Both fail with kMissing if it is not
// built.
Status check_png_program();
Status write_png_of(const gui::Drawing& drawing, const std::string& path);

}  // namespace tpsim::cli
