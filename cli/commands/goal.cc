#include <fmt/format.h>

#include <cmath>

#include "cli/options/table.h"
#include "cli/options/values.h"
#include "cli/options/wrapping.h"
#include "cli/views/campaign_view.h"
#include "cli/views/plan_view.h"
#include "core/base/leading_number.h"
#include "core/base/numbers.h"
#include "core/scenario/plan_json.h"
#include "plans/search/usual_batch.h"

namespace tpsim::cli {
namespace {

constexpr double kDay = 24 * 3600;

std::string days_text(Seconds time) { return fmt::format("{:.1f}", time.value() / kDay); }
std::string span_text(Seconds time) {
  return time.value() < 2 * kDay ? fmt::format("{:.1f} h", time.value() / 3600)
                                 : days_text(time) + " days";
}
std::string money_text(double usd) { return count_text(std::llround(usd)); }

// Parses --budget, an amount in USD: "3000000USD", "3 MUSD", "250kUSD". Zero if absent.
Result<double> budget_of(const Arguments& arguments) {
  if (!arguments.has(Opt::kBudget)) return 0.0;
  const std::string& text = *arguments[Opt::kBudget];
  const LeadingNumber number = leading_number(text).value_or(LeadingNumber{});
  std::string_view unit = std::string_view(text).substr(number.length);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  double factor = 0;
  if (unit == "USD") factor = 1;
  if (unit == "kUSD") factor = 1e3;
  if (unit == "MUSD") factor = 1e6;
  if (number.length == 0 || factor == 0) {
    return option_error(Opt::kBudget, fmt::format("'{}' is not an amount in USD", text),
                        "write 3000000USD or 3MUSD; prices are in USD/h");
  }
  if (!(number.value > 0 && number.value * factor < 1e15)) {
    return option_error(Opt::kBudget, fmt::format("'{}' is out of range", text),
                        "write a value above zero");
  }
  return number.value * factor;
}

std::string asked_text(const CampaignGoal& goal) {
  std::string text;
  if (goal.deadline > Seconds()) text = "within " + span_text(goal.deadline);
  if (goal.budget > 0) {
    text += fmt::format("{}for {} USD", text.empty() ? "" : " ", money_text(goal.budget));
  }
  return text;
}

const char* standing_text(GoalStanding standing) {
  switch (standing) {
    case GoalStanding::kSure: return "met";
    case GoalStanding::kAsPredicted:
      return "met at the predicted step, not at the slow end of the interval";
    case GoalStanding::kMissed: return "missed";
  }
  return "?";
}

std::string sizes_view(const Terminal& terminal, const GoalAnswer& answer) {
  Table table(columns_of("|GPUs|spare|days|90 % interval|USD|<plan|<goal"));
  for (std::size_t i = 0; i < answer.sizes.size(); ++i) {
    const GoalSize& size = answer.sizes[i];
    const bool chosen = answer.chosen == i;
    if (!size.campaign) {
      table.add_row({"", count_text(size.gpus), "-", "-", "-", "-", printable(size.why_none), ""});
      continue;
    }
    const Campaign& campaign = *size.campaign;
    table.add_row(
        {chosen ? ">" : "", count_text(size.gpus), count_text(campaign.spare_nodes),
         days_text(campaign.time.wall()),
         fmt::format("{}-{}", days_text(campaign.wall_low), days_text(campaign.wall_high)),
         money_text(campaign.cost.usd), short_name(size.best->plan),
         Cell(standing_text(size.standing),
              size.standing == GoalStanding::kMissed ? Ink::kDim : Ink::kPlain)});
  }
  return table.text(terminal);
}

JsonValue size_json(const GoalSize& size) {
  JsonValue json = json_object({{"gpus", size.gpus}});
  if (!size.campaign) return json.set("none", size.why_none), json;
  const Campaign& campaign = *size.campaign;
  json.set("plan", plan_to_json(size.best->plan));
  json.set("step_s", campaign.step.value());
  json.set("spare_nodes", campaign.spare_nodes);
  json.set("checkpoint_interval_s", campaign.checkpoints.interval.value());
  json.set("wall_days", campaign.time.wall().value() / kDay);
  json.set("wall_days_low", campaign.wall_low.value() / kDay);
  json.set("wall_days_high", campaign.wall_high.value() / kDay);
  json.set("reserved_gpu_hours", campaign.cost.reserved_hours);
  json.set("usd", campaign.cost.usd);
  json.set("standing", name_of(size.standing));
  return json;
}

}  // namespace

Result<Seconds> time_of(const Arguments& arguments, Opt opt) {
  if (!arguments.has(opt)) return Seconds();
  const std::string& text = *arguments[opt];
  const LeadingNumber number = leading_number(text).value_or(LeadingNumber{});
  std::string_view unit = std::string_view(text).substr(number.length);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const double factor = unit == "d"     ? kDay
                        : unit == "h"   ? 3600
                        : unit == "min" ? 60
                        : unit == "s"   ? 1
                                        : 0;
  if (number.length == 0 || factor == 0) {
    return option_error(opt, fmt::format("'{}' is not a time", text),
                        "write 105s, 30min, 3h or 60d");
  }
  if (!(number.value > 0 && number.value < 1e9)) {
    return option_error(opt, fmt::format("'{}' is out of range", text), "write a value above zero");
  }
  return Seconds(number.value * factor);
}

Result<std::optional<CampaignGoal>> goal_of(const Arguments& arguments) {
  CampaignGoal goal;
  TPSIM_TRY(goal.deadline, time_of(arguments, Opt::kDeadline));
  TPSIM_TRY(goal.budget, budget_of(arguments));
  const bool none = goal.deadline <= Seconds() && goal.budget <= 0;
  return none ? std::optional<CampaignGoal>() : goal;
}

Result<GoalAnswer> goal_answer(const Arguments& arguments, const Scenario& scenario,
                               const CampaignRequest& request, const Assumptions& assumptions,
                               const CampaignGoal& goal,
                               const std::function<void(double)>& progress) {
  TPSIM_TRY_STATUS(
      refuse(arguments, {Opt::kStepTime, Opt::kObjective},
             "with --deadline or --budget, plans are compared by predicted time and cost"));
  std::vector<std::int64_t> sizes;
  if (arguments.has(Opt::kGpus)) {
    TPSIM_TRY(sizes, gpu_counts(arguments));
  } else {
    sizes = goal_sizes(scenario, goal, request.tokens);
  }
  Arguments one = arguments;
  one.set(Opt::kGpus, std::to_string(sizes.front()));
  if (!arguments.has(opt_of(Setting::kGlobalBatch))) {  // all cluster sizes use the same batch
    one.set(opt_of(Setting::kGlobalBatch),
            std::to_string(searched_global_batch(scenario.model, host_size(scenario.cluster))));
  }
  TPSIM_TRY(const SearchSpace space, search_space(one, scenario, std::nullopt));
  TPSIM_TRY(const int threads, threads_of(arguments));
  return plan_for_goal(scenario, space, sizes, request, assumptions, goal, threads, progress);
}

std::string shortfall_text(const CampaignGoal& goal, const Campaign& campaign) {
  std::string text =
      fmt::format("{} GPUs take {}", count_text(campaign.gpus), span_text(campaign.time.wall()));
  return goal.budget > 0 ? text + fmt::format(" and {} USD", money_text(campaign.cost.usd)) : text;
}

Error goal_missed(const CampaignGoal& goal, const GoalAnswer& answer) {
  std::string message =
      fmt::format("no number of GPUs of the cluster ends the run {}", asked_text(goal));
  std::string hint;
  if (answer.nearest) {
    const GoalSize& near = answer.sizes[*answer.nearest];
    message += "; in the closest case, " + shortfall_text(goal, *near.campaign);
    hint = "reduce --tokens, or allow more time, money or GPUs";
  } else if (!answer.sizes.empty()) {
    message += fmt::format(": on {} GPUs {}", count_text(answer.sizes.back().gpus),
                           answer.sizes.back().why_none);
    hint = "tpsim plan shows why nothing fits";
  }
  return Error{ErrorKind::kDoesNotFit, message,
               row_of(goal.deadline > Seconds() ? Opt::kDeadline : Opt::kBudget).name, hint};
}

std::string goal_view(const Terminal& terminal, const GoalReport& report) {
  const bool one = report.answer.sizes.empty();
  const char* rule = report.goal.deadline > Seconds()
                         ? "the cheapest number of GPUs that meets the goal"
                         : "the number of GPUs that meets the goal soonest";
  std::string text =
      heading(terminal, "GOAL",
              fmt::format("{}: {}{}", asked_text(report.goal), standing_text(report.standing),
                          one ? "" : fmt::format("; > marks {}", rule)));
  return one ? text : text + sizes_view(terminal, report.answer);
}

JsonValue goal_json(const GoalReport& report) {
  JsonValue json = json_object();
  if (report.goal.deadline > Seconds()) {
    json.set("deadline_days", report.goal.deadline.value() / kDay);
  }
  if (report.goal.budget > 0) json.set("budget_usd", report.goal.budget);
  json.set("standing", name_of(report.standing));
  json.set("sizes", json_array(report.answer.sizes, size_json));
  return json;
}

}  // namespace tpsim::cli
