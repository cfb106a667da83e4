// tpsim explain: every term of a prediction with formula, inputs and source.
#include "cli/views/explain_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "app/scenario/fit.h"
#include "cli/options/wrapping.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"
#include "sim/step/terms.h"
#include "sim/step/top_ops.h"

namespace tpsim::cli {
namespace {

constexpr std::size_t kTextWidth = 86;  // 100 columns minus the width of labels
std::string labelled(const Terminal& terminal, std::string_view label, const std::string& text) {
  if (text.empty()) return "";
  return fmt::format("    {}{}\n", terminal.paint(fmt::format("{:<10}", label), Ink::kDim),
                     wrapped(printable(text), terminal.room(14, kTextWidth), 14));
}

// Collects the sources of terms, numbered by first use.
class SourceList {
 public:
  // Returns the reference "[2]" of a source; an empty text for an empty source.
  std::string mark(const std::string& source) {
    if (source.empty()) return "";
    auto found = std::find(sources_.begin(), sources_.end(), source);
    if (found == sources_.end()) found = sources_.insert(sources_.end(), source);
    return fmt::format("[{}]", found - sources_.begin() + 1);
  }
  bool mention(std::string_view text) const {
    return std::any_of(sources_.begin(), sources_.end(), [&](const std::string& source) {
      return source.find(text) != std::string::npos;
    });
  }
  std::string view(const Terminal& terminal) const {
    std::string text;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      text += labelled(terminal, fmt::format("[{}]", i + 1), sources_[i]);
    }
    return text;
  }

 private:
  std::vector<std::string> sources_;
};

// Returns the software options that affect a term: "norm_kernel torch (requested), rotary_kernel
// fused; others from stack nemo".
std::string parts_text(const NamedScenario& named, StepTerm term) {
  std::string text;
  bool asked_for_any = false;
  for (const StackPart part : parts_of(term)) {
    const PartRow& row = row_of(part);
    asked_for_any = asked_for_any || named.parts.contains(part);
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", row.key,
                        text_of(row, row.get(named.scenario.stack)),
                        named.parts.contains(part) ? " (requested)" : "");
  }
  if (text.empty()) return text;
  return fmt::format("{}; {}from stack {}", text, asked_for_any ? "others " : "",
                     named.scenario.stack.name);
}

std::string term_view(const Terminal& terminal, const Term& term, const PlannedRun& run,
                      const NamedScenario& named, SourceList& sources) {
  const Prediction& predicted = run.predicted;
  const TimeScale scale = time_scale(predicted.step);
  std::string text = fmt::format(
      "  {}{:>9} {} {:>8}\n",
      terminal.paint(fmt::format("{:<26}", printable(name_of(term.kind))), Ink::kBold),
      scaled_text(term.time, scale), scale.unit, percent_text(term.time / predicted.step));
  text += labelled(terminal, "formula", term.formula);
  text += labelled(terminal, "inputs", term.inputs);
  const std::string parts = parts_text(named, term.kind);
  if (!parts.empty() && term.time > Seconds()) text += labelled(terminal, "parts", parts);
  return text + labelled(terminal, "source", sources.mark(term.source));
}

// Returns the sources that terms refer to, then the scenario's other sources.
std::string sources_view(const Terminal& terminal, const Scenario& scenario,
                         const SourceList& quoted) {
  const Profile& profile = scenario.profile;
  std::string text = quoted.view(terminal);
  const auto add = [&](const char* label, const std::string& name, const std::string& source) {
    if (!quoted.mention(source)) text += labelled(terminal, label, name + ": " + source);
  };
  add("profile",
      fmt::format("{} ({}, date: {})", profile.name, name_of(profile.provenance), profile.date),
      profile.source);
  add("constants", fmt::format("of the profile ({})", name_of(profile.model.provenance)),
      profile.model.source);
  add("device", profile.device.name, profile.device.source);
  add("cluster", scenario.cluster.name, scenario.cluster.source);
  add("stack", scenario.stack.name, scenario.stack.source);
  add("model", scenario.model.name, scenario.model.source);
  return text;
}

// Returns the ops of one block and micro-batch with the largest device times.
std::string top_ops_view(const Terminal& terminal, const NamedScenario& named, const Plan& plan) {
  constexpr std::size_t kMost = 8;
  LayerPricer pricer(named.scenario);
  std::string text = heading(terminal, "HEAVIEST WORK",
                             "device times of the longest ops of one block and micro-batch");
  for (const TopOp& work : top_ops(pricer, plan, kMost)) {
    text += fmt::format("  {}{:>9} {:>8}   x {}\n",
                        terminal.paint(fmt::format("{:<26}", printable(work.label)), Ink::kBold),
                        time_text(work.time), percent_text(work.share), work.calls);
    text += labelled(terminal, "each", work.how);
  }
  return text;
}

}  // namespace

std::string row_view(const Terminal& terminal, const ExplainedRow& row) {
  std::string text = heading(
      terminal, "ROW", fmt::format("{} of {}", printable(row.run.id), printable(row.run.source)));
  const RunOutcome& outcome = row.outcome;
  if (outcome.measured_step_s) {
    const double measured = *outcome.measured_step_s;
    const bool held = outcome.low_s <= measured && measured <= outcome.high_s;
    text += fmt::format("  measured {}, predicted {} ({:+.1f} %), {} the 90 % interval{}\n",
                        time_text(Seconds(measured)), time_text(Seconds(outcome.step_s)),
                        100 * *outcome.error(), held ? "inside" : "outside",
                        outcome.calibration ? "; constants were fitted on this row" : "");
  }
  if (!outcome.skipped_because.empty()) {
    text += "  not counted: " + printable(outcome.skipped_because) + "\n";
  }
  return text + labelled(terminal, "notes", row.run.notes) + "\n";
}

std::string explanation_text(const Terminal& terminal, const NamedScenario& named,
                             const PlannedRun& run) {
  constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
  const Prediction& predicted = run.predicted;
  std::string text = scenario_view(terminal, named, run.plan) + "\n";
  text += heading(terminal, "PLAN");
  text += plan_view(terminal, run.plan, named.settings_left);
  text += prediction_view(terminal, predicted, named.scenario.profile);
  text += assumed_view(terminal, named);
  if (!fits_in_memory(predicted)) {
    text +=
        "  " +
        terminal.paint("does not fit: it " + misfit_text(predicted, kRefusedChance), Ink::kBad) +
        "\n";
  }
  text += "\n" + heading(terminal, "TERMS",
                         fmt::format("their sum is the step of {}", time_text(predicted.step)));
  SourceList sources;
  std::string idle;
  for (const Term& term : predicted.breakdown) {
    if (term.time > Seconds()) {
      text += term_view(terminal, term, run, named, sources);
    } else {
      idle += (idle.empty() ? "" : ", ") + std::string(name_of(term.kind));
    }
  }
  if (!idle.empty()) text += "  terms that are zero\n" + labelled(terminal, "terms", idle);
  text += "\n" + top_ops_view(terminal, named, run.plan);
  text += "\n" + heading(terminal, "MEMORY", "GiB at the peak of each stage");
  text += memory_view(terminal, predicted, kNoLimit);
  text += "\n" + heading(terminal, "SOURCES");
  return text + sources_view(terminal, named.scenario, sources);
}

}  // namespace tpsim::cli
