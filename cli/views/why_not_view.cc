// tpsim explain --why-not: compares the requested settings with the best plan, term by term. If no
// plan has these settings, names the obstacle and the smallest change that removes it.
#include <fmt/format.h>

#include <cmath>

#include "app/scenario/fit.h"
#include "cli/options/table.h"
#include "cli/options/wrapping.h"
#include "cli/views/explain_view.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"

namespace tpsim::cli {
namespace {

std::string signed_text(Seconds time, const TimeScale& scale) {
  const std::string text = scaled_text(Seconds(std::abs(time.value())), scale);
  return (time.value() < 0 ? "-" : "+") + text;
}

std::string waterfall_view(const Terminal& terminal, const WhyNot& answer) {
  const Prediction& best = answer.best.predicted;
  const Prediction& other = answer.other->predicted;
  const TimeScale scale = time_scale(std::max(best.step, other.step));
  Table table({{"", Align::kLeft}, {"best " + std::string(scale.unit)}, {"requested"}, {"change"}});
  for (const TermDifference& term : answer.waterfall) {
    if (term.best.value() == 0 && term.other.value() == 0) continue;
    table.add_row({printable(term.name), scaled_text(term.best, scale),
                   scaled_text(term.other, scale),
                   Cell(signed_text(term.difference(), scale),
                        term.difference() > Seconds() ? Ink::kBad : Ink::kGood)});
  }
  table.add_row({Cell("step", Ink::kBold), Cell(scaled_text(best.step, scale), Ink::kBold),
                 Cell(scaled_text(other.step, scale), Ink::kBold),
                 Cell(signed_text(other.step - best.step, scale), Ink::kBold)});
  return table.text(terminal);
}

std::string fixes_view(const WhyNot& answer) {
  std::string text;
  for (const Fix& fix : answer.fixes) {
    text += fmt::format("  {} instead of {}: {} takes {}\n", to_string(fix.instead),
                        to_string(fix.given_up), short_name(fix.run.plan),
                        time_text(fix.run.predicted.step));
  }
  if (answer.enough_gpus > 0) {
    text += fmt::format("  use {}: a plan with these settings fits there\n",
                        gpus_text(answer.enough_gpus));
  }
  return text.empty() ? "  no change found\n" : text;
}

std::string obstacle_view(const WhyNot& answer, const Scenario& scenario,
                          const SearchSpace& space) {
  if (!answer.nearest_miss) return fmt::format("  no such plan is valid: {}\n", answer.illegal);
  const Prediction& predicted = answer.nearest_miss->predicted;
  return fmt::format("  the closest plan, {},\n  {}; it would fit on a GPU of {} GiB\n",
                     short_name(answer.nearest_miss->plan),
                     shortage_text(predicted, memory_limit(scenario, space)),
                     gib_text(memory_for(scenario, space, predicted.peak)));
}

}  // namespace

std::string why_not_text(const Terminal& terminal, const WhyNotAnswer& all) {
  const auto& [named, space, answer] = all;
  std::string text = scenario_view(terminal, named, answer.best.plan) + "\n";
  text += heading(terminal, "BEST PLAN", time_text(answer.best.predicted.step));
  text += plan_view(terminal, answer.best.plan) + "\n";
  const std::string asked = to_string(answer.asked);
  if (answer.other) {
    const double slower = answer.other->predicted.step / answer.best.predicted.step - 1;
    text += heading(terminal, "BEST WITH " + asked,
                    fmt::format("{}, {} slower{}", time_text(answer.other->predicted.step),
                                percent_text(slower),
                                answer.ties ? ": not distinguishable (less than 90 % sure)" : ""));
    text += plan_view(terminal, answer.other->plan) + "\n";
    return text + heading(terminal, "WHY", "term by term; the changes add up to the difference") +
           waterfall_view(terminal, answer);
  }
  text += heading(terminal, "WHAT PREVENTS " + asked);
  text += obstacle_view(answer, named.scenario, space) + "\n";
  return text + heading(terminal, "WHAT WOULD HELP", "fewest changes first") + fixes_view(answer);
}

}  // namespace tpsim::cli
