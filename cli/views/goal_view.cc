#include <fmt/format.h>

#include <cmath>

#include "cli/options/options.h"
#include "cli/options/table.h"
#include "cli/options/wrapping.h"
#include "cli/views/campaign_view.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"

namespace tpsim::cli {
namespace {

std::string days_text(Seconds time) { return fmt::format("{:.1f}", time.value() / (24 * 3600)); }

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
         count_text(std::llround(campaign.cost.usd)), short_name(size.best->plan),
         Cell(standing_text(size.standing),
              size.standing == GoalStanding::kMissed ? Ink::kDim : Ink::kPlain)});
  }
  return table.text(terminal);
}

}  // namespace

std::string goal_view(const Terminal& terminal, const GoalReport& report) {
  const bool one = report.answer.sizes.empty();
  const char* rule = report.goal.deadline > Seconds()
                         ? "the cheapest number of GPUs that meets the goal"
                         : "the number of GPUs that meets the goal soonest";
  std::string text =
      heading(terminal, "GOAL",
              fmt::format("{}: {}{}", goal_text(report.goal), standing_text(report.standing),
                          one ? "" : fmt::format("; > marks {}", rule)));
  return one ? text : text + sizes_view(terminal, report.answer);
}

}  // namespace tpsim::cli
