// tpsim explain --why-not: compares the requested settings with the best plan, term by term. If no
// plan has these settings, names the obstacle and the smallest change that removes it.
#include <fmt/format.h>

#include <cmath>

#include "app/scenario/fit.h"
#include "cli/views/answer_views.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"

namespace tpsim::cli {
namespace {

std::string signed_text(Seconds time, const TimeScale& scale) {
  const std::string text = scaled_text(Seconds(std::abs(time.value())), scale);
  return (time.value() < 0 ? "-" : "+") + text;
}

void write_waterfall(TextReport& out, const WhyNot& answer) {
  const Prediction& best = answer.best.predicted;
  const Prediction& other = answer.other->predicted;
  const TimeScale scale = time_scale(std::max(best.step, other.step));
  Table table(columns_of(fmt::format("<|best {}|requested|change", scale.unit)));
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
  out.table(table);
}

void write_fixes(TextReport& out, const WhyNot& answer) {
  for (const Fix& fix : answer.fixes) {
    out.line("  {} instead of {}: {} takes {}", to_string(fix.instead), to_string(fix.given_up),
             short_name(fix.run.plan), time_text(fix.run.predicted.step));
  }
  if (answer.enough_gpus > 0) {
    out.line("  use {}: a plan with these settings fits there", gpus_text(answer.enough_gpus));
  } else if (answer.fixes.empty()) {
    out.line("  no change found");
  }
}

void write_obstacle(TextReport& out, const WhyNotAnswer& all) {
  const WhyNot& answer = all.why_not;
  const Scenario& scenario = all.named.scenario;
  if (!answer.nearest_miss) return out.line("  no such plan is valid: {}", answer.illegal);
  const Prediction& predicted = answer.nearest_miss->predicted;
  out.line("  the closest plan, {},", short_name(answer.nearest_miss->plan));
  out.line("  {}; it would fit on a GPU of {} GiB",
           shortage_text(predicted, memory_limit(scenario, all.space)),
           gib_text(memory_for(scenario, all.space, predicted.peak)));
}

}  // namespace

void write_why_not(TextReport& out, const WhyNotAnswer& all) {
  const WhyNot& answer = all.why_not;
  write_scenario(out, all.named, answer.best.plan);
  out.heading("BEST PLAN", time_text(answer.best.predicted.step));
  write_plan(out, answer.best.plan);
  const std::string asked = to_string(answer.asked);
  const Seconds step = answer.best.predicted.step;
  if (answer.other && answer.other->plan == answer.best.plan &&
      answer.other->predicted.step == step) {
    return out.heading("BEST WITH " + asked, "the best plan has these settings");
  }
  if (answer.other) {
    const double slower = answer.other->predicted.step / step - 1;
    out.heading("BEST WITH " + asked,
                fmt::format("{}, {} {}{}", time_text(answer.other->predicted.step),
                            percent_text(std::fabs(slower)), slower < 0 ? "faster" : "slower",
                            answer.ties ? ": not distinguishable (less than 90 % sure)" : ""));
    write_plan(out, answer.other->plan);
    out.heading("WHY", "term by term; the changes add up to the difference");
    return write_waterfall(out, answer);
  }
  out.heading("WHAT PREVENTS " + asked);
  write_obstacle(out, all);
  out.heading("WHAT WOULD HELP", "fewest changes first");
  write_fixes(out, answer);
}

}  // namespace tpsim::cli
