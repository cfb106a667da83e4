// tpsim campaign: time, cost and energy of a whole training run.
//
// The plan comes from --plan, from options as for simulate, or with --gpus from a search. With
// --deadline or --budget all cluster sizes are searched.
#include "app/answers/campaign_answer.h"
#include "app/reports/campaign_json.h"
#include "cli/commands/commands.h"
#include "cli/options/campaign_request.h"
#include "cli/options/values.h"
#include "cli/views/answer_views.h"
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

Result<Answer> run_campaign(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY(const auto file, read_plan_option(arguments));
  TPSIM_TRY(WholeRunRequest request, campaign_request(arguments, file));
  ProgressBar progress(terminal, "planning");
  request.progress = progress.shower();
  TPSIM_TRY(const CampaignReport report, campaign_answer(request));
  Answer answer = answered(
      arguments, terminal, [&] { return campaign_json(report); },
      [&](TextReport& out) { write_campaign(out, report); });
  if (report.goal && report.goal->standing == GoalStanding::kMissed) {
    answer.verdict = Error{
        ErrorKind::kDoesNotFit,
        "the plan does not meet the goal: " + shortfall_text(report.goal->goal, report.campaign),
        "", "leave out the plan file to search for a number of GPUs that meets the goal"};
  }
  return answer;
}

}  // namespace tpsim::cli
