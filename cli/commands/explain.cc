// tpsim explain: every term of a prediction with formula, inputs and source. The plan comes from a
// plan file or options, as for simulate; with --gpus it is the best plan of a search.
#include <algorithm>
#include <array>

#include "app/reports/answer_json.h"
#include "app/reports/report_json.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "cli/views/explain_view.h"
#include "core/json/json_document.h"

namespace tpsim::cli {
namespace {

Explanation explain_program(const NamedScenario& named, const PlannedRun& run,
                            const Terminal& terminal) {
  const std::vector<PartProgram> programs = rank_programs(LayerPricer(named.scenario), run.plan);
  return {program_report(named, run, programs), program_text(terminal, named, run, programs),
          plan_file_of(named, run.plan)};
}

Result<Explanation> explain_row(const Arguments& arguments, const std::optional<PlanFile>& file,
                                const Terminal& terminal) {
  constexpr std::array kOfRows = {Opt::kRuns,    Opt::kRow,      Opt::kCluster, Opt::kStack,
                                  Opt::kProfile, Opt::kNodeGbps, Opt::kProgram, Opt::kJson};
  for (const OptionRow& option : option_rows()) {
    const bool meant = std::find(kOfRows.begin(), kOfRows.end(), option.opt) != kOfRows.end();
    if (!meant)
      TPSIM_TRY_STATUS(refuse(arguments, {option.opt}, "the row of the table states this value"));
  }
  if (file) {
    return bad_input("cannot be combined with a plan file", "--runs", "give only one of them");
  }
  if (!arguments.has(Opt::kRow)) {
    return bad_input("the row to explain is missing", "--row", "give the id of a row of the table");
  }
  TPSIM_TRY(const RunsRequest request, runs_request(arguments));
  TPSIM_TRY(const ExplainedRow row, explained_row(request));
  if (arguments.has(Opt::kProgram)) return explain_program(row.named, row.planned, terminal);
  return Explanation{explain_report(row.named, row.planned),
                     row_view(terminal, row) + explanation_text(terminal, row.named, row.planned),
                     plan_file_of(row.named, row.planned.plan)};
}

Result<Explanation> explain_why_not(ExplainRequest request, const Terminal& terminal) {
  ProgressBar progress(terminal, "searching");
  request.search->progress = progress.shower();
  TPSIM_TRY(const WhyNotAnswer answer, why_not_answer(request));
  return Explanation{why_not_json(answer.why_not), why_not_text(terminal, answer),
                     plan_file_of(answer.named, answer.why_not.best.plan)};
}

Result<Explanation> explain_what_if(const ExplainRequest& request, const Terminal& terminal) {
  ProgressBar progress(terminal, "searching with other hardware");
  TPSIM_TRY(const WhatIfAnswer answer, what_if_answer(request, progress.shower()));
  return Explanation{what_if_json(answer), what_if_text(terminal, answer),
                     plan_file_of(answer.named, answer.run.plan)};
}

}  // namespace

Result<Explanation> explain(const Arguments& arguments, const std::optional<PlanFile>& file,
                            const Terminal& terminal) {
  if (arguments.has(Opt::kRuns)) return explain_row(arguments, file, terminal);
  TPSIM_TRY_STATUS(
      refuse(arguments, {Opt::kRow}, "add --runs: the option names a row of its table"));
  if (arguments.has(Opt::kProgram)) {
    TPSIM_TRY_STATUS(
        refuse(arguments, {Opt::kWhyNot, Opt::kWhatIf}, "give either this option or --program"));
  }
  TPSIM_TRY(ExplainRequest request, explain_request(arguments, file));
  if (arguments.has(Opt::kWhyNot)) return explain_why_not(std::move(request), terminal);
  ProgressBar progress(terminal, "searching");
  if (request.search) request.search->progress = progress.shower();
  if (arguments.has(Opt::kWhatIf)) return explain_what_if(request, terminal);
  TPSIM_TRY(const SimulatedPlan answer, explain_answer(request));
  const auto& [named, run] = answer;
  if (arguments.has(Opt::kProgram)) return explain_program(named, run, terminal);
  return Explanation{explain_report(named, run), explanation_text(terminal, named, run),
                     plan_file_of(named, run.plan)};
}

Status run_explain(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY(const auto file, read_plan_argument(arguments));
  TPSIM_TRY(const Explanation answer, explain(arguments, file, terminal));
  return print(terminal, arguments.has(Opt::kJson) ? to_text(answer.document) : answer.text);
}

}  // namespace tpsim::cli
