// tpsim explain --what-if: the change of the step if a constant of the machine changes, the best
// plans with more memory or bandwidth, and model dimensions that are inefficient on the GPU.
#include <fmt/format.h>

#include <cmath>

#include "cli/views/answer_views.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"

namespace tpsim::cli {
namespace {

// Returns the relative change of a step as text: "3.00 % longer".
std::string change_text(double change) {
  const std::string percent = fmt::format("{:.2f} %", 100 * std::abs(change));
  if (percent == "0.00 %") return "none";
  return percent + (change > 0 ? " longer" : " shorter");
}

void write_sensitivities(TextReport& out, const WhatIfAnswer& answers) {
  Table table(columns_of("<|step|change"));
  for (const Sensitivity& one : answers.sensitivities) {
    table.add_row({std::string(name_of(one.constant)), time_text(one.step),
                   Cell(change_text(one.change), one.change > 0 ? Ink::kBad : Ink::kGood)});
  }
  out.table(table);
}

void write_break_even(TextReport& out, const WhatIfAnswer& answers) {
  for (const MemoryBreakEven& one : answers.memory) {
    out.line("  {} GiB more per GPU allows {}: {}",
             gib_text(one.memory - answers.run.predicted.capacity), short_name(one.run.plan),
             one.gain ? "a step " + change_text(1 / (1 + *one.gain) - 1) : "no plan fits today");
  }
  for (const PlanBreakEven& one : answers.plans) {
    out.line("  {} x {:.3f}: {} becomes the best", name_of(one.constant), one.factor,
             short_name(one.after));
  }
  if (answers.memory.empty() && answers.plans.empty()) {
    out.line("  none: the best plan stays the same");
  }
}

void write_shapes(TextReport& out, const WhatIfAnswer& answers) {
  for (const ShapeFinding& finding : answers.shapes) {
    out.prose(finding.what);
    for (const ShapeFinding::Better& better : finding.better) {
      out.line("    {} {} in place of {}: {:.1f} % more model FLOP/s", better.change.size,
               better.change.to, better.change.from, 100 * better.gain);
    }
    if (finding.better.empty()) out.line("    no nearby size is 1 % better");
  }
  if (answers.shapes.empty()) out.line("  no problem found");
}

void write_precisions(TextReport& out, const WhatIfAnswer& answers) {
  for (const PrecisionBreakEven& one : answers.precisions) {
    const std::string from =
        one.width == 0
            ? fmt::format("never pays off, up to a hidden size of {}",
                          fmt::group_digits(kWidestTried))
            : fmt::format("pays off from a hidden size of {}", fmt::group_digits(one.width));
    out.line("  {:<12} {}; this model's layers {:+.1f} % speed", name_of(one.precision), from,
             100 * one.gain);
  }
}

}  // namespace

void write_what_if(TextReport& out, const WhatIfAnswer& answers) {
  const PlannedRun& run = answers.run;
  write_scenario(out, answers.named, run.plan);
  out.heading("PLAN", time_text(run.predicted.step));
  write_plan(out, run.plan);
  out.heading("SENSITIVITIES", "the same plan, one constant 10 % larger");
  write_sensitivities(out, answers);
  if (answers.searched) {
    out.heading("BREAK-EVEN POINTS", "from searches with other hardware");
    if (!answers.best.empty()) out.line("  the search finds a better plan: {}", answers.best);
    write_break_even(out, answers);
  } else {
    out.heading("BREAK-EVEN POINTS", answers.not_searched.empty()
                                         ? "add --gpus to search for them"
                                         : "no search: " + printable(answers.not_searched));
  }
  if (!answers.precisions.empty()) {
    out.heading("PRECISION",
                "cost of quantization against the speed-up of GEMMs, at this micro-batch");
    write_precisions(out, answers);
  }
  out.heading("SHAPE", "sizes that are inefficient on this GPU with this plan");
  write_shapes(out, answers);
}

}  // namespace tpsim::cli
