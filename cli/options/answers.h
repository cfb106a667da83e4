// Results of the commands as values. Commands print them and `tpsim call` returns them, so that
// both agree.
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

// Prediction of one plan.
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
// Launch files of --to, with the result of reading them back.
struct ExportAnswer {
  LaunchStack stack{};
  std::vector<LaunchFile> files;  // empty if refused
  std::optional<Error> refused;   // exit code 3: the plan does not fit, or the files lose too much
  std::optional<PlannedRun> run;  // absent if the plan cannot be predicted, with --allow-loss
  ExportLoss loss;                // valid if `run` is present
  std::string unchecked;          // reason why the plan cannot be predicted
};
Result<ExportAnswer> export_answer(const Arguments& arguments, const PlanFile& file);
// Returns the recommended launcher for a plan: its stack's own, if its files reproduce the plan.
// Nothing if an export would be refused.
std::optional<LaunchStack> advised_export(const NamedScenario& named, const Plan& plan);
// {"version": "tpsim-export-report/1", ...}
JsonValue export_json(const ExportAnswer& answer);

// Plan imported from the folder or file given as positional argument.
struct ImportAnswer {
  PlanFile file;
  std::vector<std::string> outside;     // settings that do not affect a plan
  std::vector<std::string> notes = {};  // differences between the files and the prediction
};
Result<ImportAnswer> import_answer(const Arguments& arguments);

// Imports a plan from the arguments in a log's text.
Result<ImportAnswer> import_log_answer(const Arguments& arguments, const std::string& text);

// Contents of a log's path. Read once only, since standard input cannot be read again.
struct OpenedLog {
  std::string path;
  std::string text;        // empty for a report, which is read from its file
  bool is_report = false;  // a Nsight Systems report, which is a database
};
Result<OpenedLog> open_log(const std::string& path);
// Returns `first` if its path is `path`, since standard input can only be read once. Otherwise
// opens the log.
Result<OpenedLog> open_or_reuse(const OpenedLog& first, const std::string& path);
// Returns the plan whose arguments the log prints; nothing if it prints none.
Result<std::optional<PlanFile>> plan_printed_in_log(const Arguments& arguments,
                                                    const OpenedLog& log);

// A possible cause of the measured step: the prediction with one change.
struct LikelyCause {
  std::string what;  // "norm_kernel=torch", "links between nodes at a half"
  Seconds step;      // predicted with the change
};

// The part of a step that a cause affects, as far as a log distinguishes it.
enum class CauseClass { kAny, kCompute, kLinks, kHost };

// Returns at most `most` causes of a class, nearest to `measured` first. kAny: all classes. Each
// cause is tried alone, and must close at least a tenth of the gap.
Result<std::vector<LikelyCause>> likely_causes(const Scenario& scenario, const Plan& plan,
                                               Seconds predicted, Seconds measured,
                                               CauseClass acts_on, std::size_t most);

struct KernelRow {
  std::string what;
  Seconds measured, predicted;  // per step
  CauseClass explained_by;      // class of causes if it takes longer
};
// Returns the parts of a step. Their sum exceeds the step by overlapped time.
std::vector<KernelRow> kernel_rows(const KernelTimes& kernels, const Plan& plan,
                                   const Prediction& predicted);

// Returns the row with the largest excess over its prediction.
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
  std::vector<LikelyCause> likely;     // causes of a gap; empty without a gap
  std::optional<KernelTimes> kernels;  // of a trace
  std::vector<KernelRow> kernel_rows;  // likewise
};
// Returns the text of a log: a file, a gzip file, or standard input for "-". More than 256 MiB,
// also after unpacking, is an error.
Result<std::string> read_log_text(const std::string& path);

// Returns an error for a file with a run in an unsupported format.
Status refuse_reports(const std::string& file);
Result<CheckedLog> check_log_answer(const Arguments& arguments, const OpenedLog& opened,
                                    const PlanFile& file);
// Checks the log given as positional argument.
Result<CheckedLog> check_log_answer(const Arguments& arguments, const PlanFile& file);
// {"version": "tpsim-log-report/1", ...}
JsonValue check_log_json(const CheckedLog& checked);

// Loads rows of measured runs with the shipped environments. --cluster, --stack and --profile
// override the environments.
Result<RunLoader> run_loader(const Arguments& arguments);

// Returns the path of the table that --runs names: a file, or a shipped table.
Result<std::filesystem::path> run_table(const Arguments& arguments);

// A row of a table, set up and predicted.
struct ExplainedRow {
  PublishedRun run;
  RunOutcome outcome;
  NamedScenario named;
  PlannedRun planned;
};
// Returns the row --row of the table --runs. Error if it cannot be predicted.
Result<ExplainedRow> explained_row(const Arguments& arguments);

// Predicts every row of --runs.
Result<std::vector<RunOutcome>> validate_answer(const Arguments& arguments,
                                                const Progress& progress);
// {"version": "tpsim-validate-report/1", ...}
JsonValue validate_json(const std::vector<RunOutcome>& outcomes);

// Report of `tpsim explain` as JSON and text, and the explained plan.
struct Explanation {
  JsonValue document;
  std::string text;
  PlanFile plan;
};

// Explains, depending on the options: every term of a plan, its program, or the answer to --why-not
// or --what-if.
Result<Explanation> explain_answer(const Arguments& arguments, const std::optional<PlanFile>& file,
                                   const Terminal& terminal);

// Compares the best plan of the search with the best plan that has the settings of --why-not.
Result<Explanation> explain_why_not(const Arguments& arguments, NamedScenario named,
                                    const std::optional<PlanFile>& file, const Terminal& terminal);

// Returns sensitivities and shape advice of a plan. With a plan file or --gpus, also break-even
// points.
Result<Explanation> explain_what_if(const Arguments& arguments, const NamedScenario& named,
                                    const std::optional<PlanFile>& file, const PlannedRun& run,
                                    const Terminal& terminal);

// Lists every op, collective and allocation of a rank, by part of the model.
Explanation explain_program(const NamedScenario& named, const PlannedRun& run,
                            const Terminal& terminal);

}  // namespace tpsim::cli
