// tpsim explain --what-if: the change of the step if a constant of the machine changes, the best
// plans with more memory or bandwidth, and model dimensions that are inefficient on the GPU.
#include <fmt/format.h>

#include <cmath>

#include "cli/options/table.h"
#include "cli/options/wrapping.h"
#include "cli/views/explain_view.h"
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

std::string sensitivity_view(const Terminal& terminal, const WhatIfAnswer& answers) {
  Table table({{"", Align::kLeft}, {"step"}, {"change"}});
  for (const Sensitivity& one : answers.sensitivities) {
    table.add_row({std::string(name_of(one.constant)), time_text(one.step),
                   Cell(change_text(one.change), one.change > 0 ? Ink::kBad : Ink::kGood)});
  }
  return table.text(terminal);
}

std::string break_even_view(const WhatIfAnswer& answers, Bytes today) {
  std::string text;
  for (const MemoryBreakEven& one : answers.memory) {
    text += fmt::format(
        "  {} GiB more per GPU allows {}: {}\n", gib_text(one.memory - today),
        short_name(one.run.plan),
        one.gain ? "a step " + change_text(1 / (1 + *one.gain) - 1) : "no plan fits today");
  }
  for (const PlanBreakEven& one : answers.plans) {
    text += fmt::format("  {} x {:.3f}: {} becomes the best\n", name_of(one.constant), one.factor,
                        short_name(one.after));
  }
  return text.empty() ? "  none: the best plan stays the same\n" : text;
}

std::string shape_view(const Terminal& terminal, const WhatIfAnswer& answers) {
  std::string text;
  for (const ShapeFinding& finding : answers.shapes) {
    text += "  " + wrapped(finding.what, terminal.room(2, 98), 2) + "\n";
    for (const ShapeFinding::Better& better : finding.better) {
      text +=
          fmt::format("    {} {} in place of {}: {:.1f} % more model FLOP/s\n", better.change.size,
                      better.change.to, better.change.from, 100 * better.gain);
    }
    if (finding.better.empty()) text += "    no nearby size is 1 % better\n";
  }
  return text.empty() ? "  no problem found\n" : text;
}

std::string precision_view(const WhatIfAnswer& answers) {
  std::string text;
  for (const PrecisionBreakEven& one : answers.precisions) {
    const std::string from =
        one.width == 0
            ? fmt::format("never pays off, up to a hidden size of {}",
                          fmt::group_digits(kWidestTried))
            : fmt::format("pays off from a hidden size of {}", fmt::group_digits(one.width));
    text += fmt::format("  {:<12} {}; this model's layers {:+.1f} % speed\n",
                        name_of(one.precision), from, 100 * one.gain);
  }
  return text;
}

}  // namespace

std::string what_if_text(const Terminal& terminal, const WhatIfAnswer& answers) {
  const PlannedRun& run = answers.run;
  std::string text = scenario_view(terminal, answers.named, run.plan) + "\n";
  text += heading(terminal, "PLAN", time_text(run.predicted.step));
  text += plan_view(terminal, run.plan) + "\n";
  text += heading(terminal, "SENSITIVITIES", "the same plan, one constant 10 % larger");
  text += sensitivity_view(terminal, answers) + "\n";
  if (answers.searched) {
    text += heading(terminal, "BREAK-EVEN POINTS", "from searches with other hardware");
    if (!answers.best.empty()) text += "  the search finds a better plan: " + answers.best + "\n";
    text += break_even_view(answers, run.predicted.capacity) + "\n";
  } else {
    text += heading(terminal, "BREAK-EVEN POINTS",
                    answers.not_searched.empty() ? "add --gpus to search for them"
                                                 : "no search: " + printable(answers.not_searched));
    text += "\n";
  }
  if (!answers.precisions.empty()) {
    text += heading(terminal, "PRECISION",
                    "cost of quantization against the speed-up of GEMMs, at this micro-batch");
    text += precision_view(answers) + "\n";
  }
  return text +
         heading(terminal, "SHAPE", "sizes that are inefficient on this GPU with this plan") +
         shape_view(terminal, answers);
}

}  // namespace tpsim::cli
