// tpsim explain: every term of a prediction with formula, inputs and source.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "app/answers/term_texts.h"
#include "app/answers/top_ops.h"
#include "app/scenario/fit.h"
#include "cli/views/answer_views.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"

namespace tpsim::cli {
namespace {

void write_detail(TextReport& out, std::string_view label, std::string_view text) {
  if (!text.empty()) out.prose_row({label, 10, 4}, printable(text));
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
  void write(TextReport& out) const {
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      write_detail(out, fmt::format("[{}]", i + 1), sources_[i]);
    }
  }

 private:
  std::vector<std::string> sources_;
};

// Returns the software options that affect a term: "norm_kernel torch (requested), rotary_kernel
// fused; others from stack nemo".
std::string parts_text(const NamedScenario& named, StepTerm term) {
  std::string text;
  bool asked_for_any = false;
  for (const StackPart part : parts_of(term, named.scenario.stack)) {
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

void write_term(TextReport& out, const Term& term, const app::TermText& explained,
                const PlannedRun& run, const NamedScenario& named, SourceList& sources) {
  const Prediction& predicted = run.predicted;
  const TimeScale scale = time_scale(predicted.step);
  out.line("  {}{:>9} {} {:>8}", out.bold(fmt::format("{:<26}", printable(name_of(term.kind)))),
           scaled_text(term.time, scale), scale.unit, percent_text(term.time / predicted.step));
  write_detail(out, "formula", explained.formula);
  write_detail(out, "inputs", explained.inputs);
  if (term.time > Seconds()) write_detail(out, "parts", parts_text(named, term.kind));
  write_detail(out, "source", sources.mark(explained.source));
}

// Writes the sources that terms refer to, then the scenario's other sources.
void write_sources(TextReport& out, const Scenario& scenario, const SourceList& quoted) {
  const Profile& profile = scenario.profile;
  quoted.write(out);
  const auto add = [&](const char* label, const std::string& name, const std::string& source) {
    if (!quoted.mention(source)) write_detail(out, label, name + ": " + source);
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
}

// Writes the ops of one block and micro-batch with the largest device times.
void write_top_ops(TextReport& out, const NamedScenario& named, const Plan& plan) {
  constexpr std::size_t kMost = 8;
  LayerPricer pricer(named.scenario);
  out.heading("HEAVIEST WORK", "device times of the longest ops of one block and micro-batch");
  for (const app::TopOp& work : app::top_ops(pricer, plan, kMost)) {
    out.line("  {}{:>9} {:>8}   x {}", out.bold(fmt::format("{:<26}", printable(work.label))),
             time_text(work.time), percent_text(work.share), work.calls);
    write_detail(out, "each", work.how);
  }
}

}  // namespace

void write_row(TextReport& out, const ExplainedRow& row) {
  out.heading("ROW", fmt::format("{} of {}", printable(row.run.id), printable(row.run.source)));
  const RunOutcome& outcome = row.outcome;
  if (outcome.measured_step_s) {
    const double measured = *outcome.measured_step_s;
    const bool held = outcome.low_s <= measured && measured <= outcome.high_s;
    out.line("  measured {}, predicted {} ({:+.1f} %), {} the 90 % interval{}",
             time_text(Seconds(measured)), time_text(Seconds(outcome.step_s)),
             100 * *outcome.error(), held ? "inside" : "outside",
             outcome.calibration ? "; constants were fitted on this row" : "");
  }
  if (!outcome.skipped_because.empty()) {
    out.line("  not counted: {}", printable(outcome.skipped_because));
  }
  write_detail(out, "notes", row.run.notes);
  out.blank();
}

void write_explanation(TextReport& out, const NamedScenario& named, const PlannedRun& run) {
  constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
  const Prediction& predicted = run.predicted;
  write_scenario(out, named, run.plan);
  out.heading("PLAN");
  write_plan(out, run.plan, named.settings_left);
  write_prediction(out, predicted, named.scenario.profile);
  write_assumed(out, named);
  if (!fits_in_memory(predicted)) {
    out.prose("does not fit: it " + misfit_text(predicted, kRefusedChance), Ink::kBad);
  }
  out.heading("TERMS", fmt::format("their sum is the step of {}", time_text(predicted.step)));
  const app::TermTexts explained = app::term_texts(named.scenario, run);
  SourceList sources;
  std::vector<std::string_view> idle;
  for (const Term& term : predicted.breakdown) {
    if (term.time > Seconds()) {
      write_term(out, term, explained[static_cast<std::size_t>(term.kind)], run, named, sources);
    } else {
      idle.push_back(name_of(term.kind));
    }
  }
  if (!idle.empty()) {
    out.line("  terms that are zero");
    write_detail(out, "terms", fmt::format("{}", fmt::join(idle, ", ")));
  }
  write_top_ops(out, named, run.plan);
  out.heading("MEMORY", "GiB at the peak of each stage");
  write_memory(out, predicted, kNoLimit);
  out.heading("SOURCES");
  write_sources(out, named.scenario, sources);
}

}  // namespace tpsim::cli
