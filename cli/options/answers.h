// Results of the commands as values. The commands print them and `tpsim call` returns them.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/campaign_report.h"
#include "cli/options/inputs.h"
#include "cli/options/options.h"
#include "cli/options/terminal.h"
#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/plan/report.h"
#include "core/scenario/plan_file.h"
#include "evidence/logs/kernel_trace.h"
#include "evidence/logs/log_check.h"
#include "evidence/runs/run_table.h"
#include "evidence/runs/validation.h"
#include "frameworks/launch/export_check.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim::cli {

// Called with the completed share in [0, 1]; may be empty.
using Progress = std::function<void(double)>;

// Prediction of one plan, with the scenario it was predicted for.
struct SimulatedPlan {
  NamedScenario named;
  PlannedRun run;
};
Result<SimulatedPlan> simulate_answer(const Arguments& arguments,
                                      const std::optional<PlanFile>& file);

// `file` is the plan of --plan, if given.
Result<CampaignReport> campaign_answer(const Arguments& arguments,
                                       const std::optional<PlanFile>& file,
                                       const Progress& progress);

// Returns the stack that --to or --from names.
Result<LaunchStack> launch_stack_of(const Arguments& arguments, Opt opt);
// Launch files for --to, and the differences found by importing them again.
struct ExportAnswer {
  LaunchStack stack{};
  std::vector<LaunchFile> files;  // empty if refused
  // Reason for exit code 3: the plan does not fit, or the files do not reproduce it.
  std::optional<Error> refused;
  std::optional<PlannedRun> run;  // absent with --allow-loss if the plan cannot be predicted
  ExportLoss loss;                // valid if `run` is present
  std::string unchecked;          // reason why the plan cannot be predicted
};
Result<ExportAnswer> export_answer(const Arguments& arguments, const PlanFile& file);
// Returns the launcher to recommend for a plan: that of the plan's stack, if its files reproduce
// the plan. Nothing if the export would be refused.
std::optional<LaunchStack> advised_export(const NamedScenario& named, const Plan& plan);
// {"version": "tpsim-export-report/1", ...}
JsonValue export_json(const ExportAnswer& answer);

// Plan imported from the folder or file given as positional argument.
struct ImportAnswer {
  PlanFile file;
  std::vector<std::string> outside;     // settings of the files that do not affect a plan
  std::vector<std::string> notes = {};  // where the prediction deviates from the files
};
Result<ImportAnswer> import_answer(const Arguments& arguments);

// Imports a plan from the arguments in a log's text.
Result<ImportAnswer> import_log_answer(const Arguments& arguments, const std::string& text);

// Contents of a log file. Standard input can be read only once, so the contents are kept.
struct OpenedLog {
  std::string path;
  std::string text;        // empty for a Nsight Systems report, which is read from its file
  bool is_report = false;  // the file is a Nsight Systems report (a database)
};
Result<OpenedLog> open_log(const std::string& path);
// Returns `first` if it has this path, since standard input can be read only once. Otherwise opens
// the log.
Result<OpenedLog> open_or_reuse(const OpenedLog& first, const std::string& path);
// Returns the plan that the arguments printed in the log describe; nothing if it prints none.
Result<std::optional<PlanFile>> plan_printed_in_log(const Arguments& arguments,
                                                    const OpenedLog& log);

// A change of software or machine that may explain the measured step.
struct LikelyCause {
  std::string what;  // "norm_kernel=torch", "links between nodes at a half of their bandwidth"
  Seconds step;      // predicted step with the change
};

// The part of the step that a change affects. kAny: the log does not show which part is slow.
enum class CauseClass { kAny, kCompute, kLinks, kHost };

// Returns at most `most` changes of a class, by distance of their step to `measured`. Each change
// is predicted alone, and only changes that close at least a tenth of the gap are returned.
Result<std::vector<LikelyCause>> likely_causes(const Scenario& scenario, const Plan& plan,
                                               Seconds predicted, Seconds measured,
                                               CauseClass acts_on, std::size_t most);

struct KernelRow {
  std::string what;
  Seconds measured, predicted;  // seconds per step
  CauseClass explained_by;      // class of changes to try if `measured` is larger
};
// Compares measured kernel times with the prediction, by kind of work. The sum of the rows exceeds
// the step by the overlapped time.
std::vector<KernelRow> kernel_rows(const KernelTimes& kernels, const Plan& plan,
                                   const Prediction& predicted);

// Returns the row with the largest (measured - predicted).
const KernelRow& largest_excess(const std::vector<KernelRow>& rows);

std::string kernel_view(const Terminal& terminal, const KernelTimes& kernels,
                        const std::vector<KernelRow>& rows);
JsonValue kernel_json(const KernelTimes& kernels, const std::vector<KernelRow>& rows);

// Result of check-log; the log is the positional argument.
struct CheckedLog {
  PlanFile file;
  NamedScenario named;
  Prediction predicted;
  LogCheck check;
  std::vector<LikelyCause> likely;     // possible explanations of a gap; empty without one
  std::optional<KernelTimes> kernels;  // of a profiler trace
  std::vector<KernelRow> kernel_rows;  // for a profiler trace
};
// Returns the text of a log: a plain or gzip file, or standard input for "-". Error if the text
// exceeds 256 MiB, also after decompression.
Result<std::string> read_log_text(const std::string& path);

// Returns an error for a .nsys-rep file, which must be converted with nsys export first.
Status refuse_reports(const std::string& file);
Result<CheckedLog> check_log_answer(const Arguments& arguments, const OpenedLog& opened,
                                    const PlanFile& file);
// Checks the log given as positional argument.
Result<CheckedLog> check_log_answer(const Arguments& arguments, const PlanFile& file);
// {"version": "tpsim-log-report/1", ...}
JsonValue check_log_json(const CheckedLog& checked);

// Returns a loader for rows of run tables, with the shipped environments. --cluster, --stack and
// --profile override those of the rows.
Result<RunLoader> run_loader(const Arguments& arguments);

// Returns the path of the table that --runs names, which is a file or a shipped table.
Result<std::filesystem::path> run_table(const Arguments& arguments);

// A row of a run table with its scenario and prediction.
struct ExplainedRow {
  PublishedRun run;
  RunOutcome outcome;
  NamedScenario named;
  PlannedRun planned;
};
// Returns the row that --row names in the table --runs. Error if the row cannot be predicted.
Result<ExplainedRow> explained_row(const Arguments& arguments);

// Predicts every row of the table --runs.
Result<std::vector<RunOutcome>> validate_answer(const Arguments& arguments,
                                                const Progress& progress);
// {"version": "tpsim-validate-report/1", ...}
JsonValue validate_json(const std::vector<RunOutcome>& outcomes);

// Report of `tpsim explain` as JSON and as text, and the plan it explains.
struct Explanation {
  JsonValue document;
  std::string text;
  PlanFile plan;
};

// Returns the explanation that the options request: every term of a plan, its program, or the
// answer to --why-not or --what-if.
Result<Explanation> explain_answer(const Arguments& arguments, const std::optional<PlanFile>& file,
                                   const Terminal& terminal);

// Compares the best plan of the search with the best plan that has the settings of --why-not.
Result<Explanation> explain_why_not(const Arguments& arguments, NamedScenario named,
                                    const std::optional<PlanFile>& file, const Terminal& terminal);

// Returns how the step changes with each machine constant, and advice on model dimensions. With a
// plan file or --gpus, also returns the memory, bandwidth and other constants from which on another
// plan is the best.
Result<Explanation> explain_what_if(const Arguments& arguments, const NamedScenario& named,
                                    const std::optional<PlanFile>& file, const PlannedRun& run,
                                    const Terminal& terminal);

// Lists every op, collective and allocation of a rank, grouped by part of the model.
Explanation explain_program(const NamedScenario& named, const PlannedRun& run,
                            const Terminal& terminal);

}  // namespace tpsim::cli
