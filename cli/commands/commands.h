// Functions that run the commands of tpsim. The table of commands (cli/commands/command_table.cc)
// describes each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "cli/options/terminal.h"
#include "cli/options/text_report.h"
#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/scenario/plan_file.h"

namespace tpsim {
class TokenSource;
struct TrainingRun;
namespace app {
struct NamedScenario;
struct PlanAnswer;
}  // namespace app
}  // namespace tpsim

namespace tpsim::cli {

// The answer of a command, which run_program() prints. `tpsim call` returns the document.
struct Answer {
  JsonValue document = {};  // report with --json; null without, or if the command printed it
  std::string text = {};    // report without --json
  bool is_prose = true;     // whether lines of the text may be wrapped
  std::vector<PlanFile> plans = {};  // plans of the document, in the same order
  // Errors after the report. The kind of error determines the exit code. For `tpsim call` a failed
  // outcome replaces the document, and a failed verdict is part of the document.
  Status outcome = Ok{};
  Status verdict = Ok{};
};

// Makes the document with --json, and otherwise the text: `write` gets a TextReport.
template <class Document, class Write>
Answer answered(const Arguments& arguments, const Terminal& terminal, Document document,
                Write write) {
  Answer answer;
  if (arguments.has("--json")) {
    answer.document = document();
    return answer;
  }
  TextReport report(terminal);
  write(report);
  answer.text = report.text();
  return answer;
}

// The functions return the command's answer, or an error if the command fails.
Result<Answer> run_plan(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_simulate(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_explain(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_profile(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_training(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_validate(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_campaign(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_export(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_import(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_check_log(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_list(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_gui(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_report(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_show(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_compare(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_completion(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_calibrate(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_call(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_batch(const Arguments& arguments, const Terminal& terminal);
Result<Answer> run_mcp(const Arguments& arguments, const Terminal& terminal);

// plan --gpus 64,128,...,4096: the best plan for each number of GPUs; --plot draws the curve. The
// outcome is kDoesNotFit if no size has a plan.
Result<Answer> run_scaling(const Arguments& arguments, const std::optional<PlanFile>& file,
                           const Terminal& terminal);

// plan and simulate --rank-file: writes the host of each rank.
Status write_rank_file(const Arguments& arguments, const NamedScenario& named, const Plan& plan);

// plan --plot: draws the plans of a search, the memory of the best one and its timeline.
Status write_plan_picture(const std::string& path, const PlanAnswer& answer);

// validate plan.json: trains the plan for a few steps on all ranks, and compares step time, memory
// by stage, waiting time, each kind of op and each collective with the prediction.
Result<Answer> validate_plan(const Arguments& arguments, const Terminal& terminal);

// run --rank: executes the program of one rank alone.
Result<Answer> run_rank_alone(const Arguments& arguments, const Terminal& terminal,
                              const NamedScenario& planned, const TrainingRun& run,
                              const TokenSource& tokens);

}  // namespace tpsim::cli
