// tpsim campaign: time, cost and energy of a whole training run.
//
// The plan comes from --plan, from options as for simulate, or with --gpus from a search. With
// --deadline or --budget all cluster sizes are searched.
#include "app/answers/campaign_answer.h"
#include "app/reports/answer_json.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "cli/options/values.h"
#include "cli/views/campaign_view.h"
#include "core/json/json_document.h"
#include "core/scenario/plan_json.h"

namespace tpsim::cli {
namespace {

Result<std::optional<PlanFile>> read_plan_option(const Arguments& arguments) {
  if (!arguments.has("--plan")) return read_plan_argument(arguments);
  if (!arguments.positional.empty()) {
    return option_error("--plan", "a second plan is given", "give one plan");
  }
  TPSIM_TRY(PlanFile file, read_plan(*arguments["--plan"]));
  return std::optional<PlanFile>(std::move(file));
}

}  // namespace

Status run_campaign(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY(const auto file, read_plan_option(arguments));
  TPSIM_TRY(WholeRunRequest request, campaign_request(arguments, file));
  const Result<CampaignReport> report = [&] {
    ProgressBar progress(terminal, "planning");
    request.progress = progress.shower();
    return campaign_answer(request);
  }();
  if (!report.ok()) return report.error();
  TPSIM_TRY_STATUS(print(terminal, arguments.has("--json") ? to_text(campaign_json(*report))
                                                           : campaign_text(terminal, *report)));
  if (!report->goal || report->goal->standing != GoalStanding::kMissed) return Ok{};
  return Error{
      ErrorKind::kDoesNotFit,
      "the plan does not meet the goal: " + shortfall_text(report->goal->goal, report->campaign),
      "", "leave out the plan file to search for a number of GPUs that meets the goal"};
}

}  // namespace tpsim::cli
