// The answers of the commands as values. The commands print them and `tpsim call` returns them, so
// both give the same answers.
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

// Hears the done share in [0, 1]; may be empty.
using Progress = std::function<void(double)>;

// One plan, predicted.
struct SimulatedPlan {
  NamedScenario named;
  PlannedRun run;
};
Result<SimulatedPlan> simulate_answer(const Arguments& arguments,
                                      const std::optional<PlanFile>& file);

// `file` is the plan of --plan, when there is one.
Result<CampaignReport> campaign_answer(const Arguments& arguments,
                                       const std::optional<PlanFile>& file,
                                       const Progress& progress);

// The stack that --to or --from names.
Result<LaunchStack> launch_stack_of(const Arguments& arguments, Opt opt);
// The launch files of --to, read back and held against the plan.
struct ExportAnswer {
  LaunchStack stack{};
  std::vector<LaunchFile> files;  // empty where they are refused
  std::optional<Error> refused;   // exit code 3: the plan does not fit, or the files lose too much
  std::optional<PlannedRun> run;  // none where the plan cannot be predicted, with --allow-loss
  ExportLoss loss;                // of that
  std::string unchecked;          // why it cannot
};
Result<ExportAnswer> export_answer(const Arguments& arguments, const PlanFile& file);
// The launcher to advise for a plan: its stack's own, where its files give the plan again. Nothing
// where an export would be refused.
std::optional<LaunchStack> advised_export(const NamedScenario& named, const Plan& plan);
// {"version": "tpsim-export-report/1", ...}
JsonValue export_json(const ExportAnswer& answer);

// The plan that lies in the folder or file that the positional names.
struct ImportAnswer {
  PlanFile file;
  std::vector<std::string> outside;     // settings that no plan is made of
  std::vector<std::string> notes = {};  // what is predicted otherwise than the files say
};
Result<ImportAnswer> import_answer(const Arguments& arguments);

// The plan whose arguments stand in the text of a log.
Result<ImportAnswer> import_log_answer(const Arguments& arguments, const std::string& text);

// What lies at a path that a log is asked of. It is read once: standard input comes but once.
struct OpenedLog {
  std::string path;
  std::string text;        // of a report that is read where it lies: nothing
  bool is_report = false;  // of Nsight Systems, a database
};
Result<OpenedLog> open_log(const std::string& path);
// The log at `path`: `first` if it is that log, since standard input can be read once only.
Result<OpenedLog> open_or_reuse(const OpenedLog& first, const std::string& path);
// The plan whose arguments the log prints; nothing where it prints none.
Result<std::optional<PlanFile>> plan_printed_in_log(const Arguments& arguments,
                                                    const OpenedLog& log);

// What would make a step take as long as it took: the prediction with one thing changed at a time.
struct LikelyCause {
  std::string what;  // "norm_kernel=torch", "links between nodes at a half"
  Seconds step;      // predicted with it
};

// What a cause acts on, as far as a log can tell it apart.
enum class CauseClass { kAny, kCompute, kLinks, kHost };

// Those that move the prediction towards `measured` by a tenth of the gap at least, nearest first,
// at most `most` of them, of one class unless it is kAny. Each is tried alone.
Result<std::vector<LikelyCause>> likely_causes(const Scenario& scenario, const Plan& plan,
                                               Seconds predicted, Seconds measured,
                                               CauseClass acts_on, std::size_t most);

struct KernelRow {
  std::string what;
  Seconds measured, predicted;  // of a step
  CauseClass explained_by;      // what to look for where it takes longer
};
// The parts of a step: they add up to it but for what runs side by side.
std::vector<KernelRow> kernel_rows(const KernelTimes& kernels, const Plan& plan,
                                   const Prediction& predicted);

// What takes longest over its prediction.
const KernelRow& largest_excess(const std::vector<KernelRow>& rows);

std::string kernel_view(const Terminal& terminal, const KernelTimes& kernels,
                        const std::vector<KernelRow>& rows);
JsonValue kernel_json(const KernelTimes& kernels, const std::vector<KernelRow>& rows);

// The log is the positional.
struct CheckedLog {
  PlanFile file;
  NamedScenario named;
  Prediction predicted;
  LogCheck check;
  std::vector<LikelyCause> likely;     // of a gap; empty where there is none
  std::optional<KernelTimes> kernels;  // of a trace
  std::vector<KernelRow> kernel_rows;  // likewise
};
// The text of a log: a file, one that gzip compressed, or with "-" what comes in on standard input.
// What unpacks to more than 256 MiB is an error, as a larger file is.
Result<std::string> read_log_text(const std::string& path);

// An error for a file that holds a run in a form that is not read.
Status refuse_reports(const std::string& file);
Result<CheckedLog> check_log_answer(const Arguments& arguments, const OpenedLog& opened,
                                    const PlanFile& file);
// Of the log that the positional names.
Result<CheckedLog> check_log_answer(const Arguments& arguments, const PlanFile& file);
// {"version": "tpsim-log-report/1", ...}
JsonValue check_log_json(const CheckedLog& checked);

// Rows of a table of measured runs, as the command line names them.
// Over the shipped environments; --cluster, --stack and --profile come before theirs.
Result<RunLoader> run_loader(const Arguments& arguments);

// The table that --runs names: a file, or one that ships.
Result<std::filesystem::path> run_table(const Arguments& arguments);

// One row, set up and predicted.
struct ExplainedRow {
  PublishedRun run;
  RunOutcome outcome;
  NamedScenario named;
  PlannedRun planned;
};
// The row --row of the table --runs. An error where it cannot be priced.
Result<ExplainedRow> explained_row(const Arguments& arguments);

// Every row of --runs.
Result<std::vector<RunOutcome>> validate_answer(const Arguments& arguments,
                                                const Progress& progress);
// {"version": "tpsim-validate-report/1", ...}
JsonValue validate_json(const std::vector<RunOutcome>& outcomes);

// The report of `tpsim explain`, with or without --program, --why-not or --what-if, as JSON and as
// text, and the plan that the report explains.
struct Explanation {
  JsonValue document;
  std::string text;
  PlanFile plan;
};

// By the options: every term of a plan, its program, or an answer to --why-not or --what-if.
Result<Explanation> explain_answer(const Arguments& arguments, const std::optional<PlanFile>& file,
                                   const Terminal& terminal);

// Compares the best plan of the search that the options describe with the best that has what
// --why-not asks for.
Result<Explanation> explain_why_not(const Arguments& arguments, NamedScenario named,
                                    const std::optional<PlanFile>& file, const Terminal& terminal);

// Sensitivities and shape advice of a plan; break-even points where a plan file or --gpus says what
// to search.
Result<Explanation> explain_what_if(const Arguments& arguments, const NamedScenario& named,
                                    const std::optional<PlanFile>& file, const PlannedRun& run,
                                    const Terminal& terminal);

// Every op, collective and allocation of a rank, by part of the model.
Explanation explain_program(const NamedScenario& named, const PlannedRun& run,
                            const Terminal& terminal);

}  // namespace tpsim::cli
