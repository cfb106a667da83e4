// tpsim explain: every term of a prediction with its formula, inputs and source. The plan comes
// from a plan file or options, as for simulate; with --gpus it is the best one of a search.
#include <fmt/format.h>

#include <array>
#include <limits>

#include "cli/commands.h"
#include "cli/fit.h"
#include "cli/inputs.h"
#include "cli/numbers.h"
#include "cli/plan_view.h"
#include "cli/report_json.h"
#include "core/json_document.h"
#include "sim/simulate.h"

namespace tpsim {
namespace {

constexpr std::size_t kTextWidth = 84;  // what is left of 100 columns beside the labels
constexpr std::array kSearchOnly = {Opt::kObjective, Opt::kMaxMemory};
constexpr std::array kSingleOnly = {Opt::kStageLayers, Opt::kCountEmbedding,
                                    Opt::kNoCountEmbedding, Opt::kRankOrder};

// Breaks at spaces; lines after the first are indented by `indent`.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const std::size_t width = display_width(word);
    if (column > 0 && column + 1 + width > kTextWidth) {
      out += "\n" + std::string(indent, ' ');
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += width;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string labelled(const Terminal& terminal, const char* label, const std::string& text) {
  if (text.empty()) return "";
  return fmt::format("    {}{}\n", terminal.paint(fmt::format("{:<9}", label), Ink::kDim),
                     wrapped(printable(text), 13));
}

std::string term_view(const Terminal& terminal, const Term& term, const Prediction& predicted) {
  const TimeScale scale = time_scale(predicted.step);
  std::string text = fmt::format(
      "  {}  {} {}  {}\n",
      terminal.paint(fmt::format("{:<28}", printable(term.name)), Ink::kBold),
      scaled_text(term.time, scale), scale.unit, percent_text(term.time / predicted.step));
  text += labelled(terminal, "formula", term.formula);
  text += labelled(terminal, "inputs", term.inputs);
  return text + labelled(terminal, "source", term.source);
}

std::string sources_view(const Terminal& terminal, const Scenario& scenario,
                         const Prediction& predicted) {
  const Profile& profile = scenario.profile;
  std::string text = labelled(terminal, "device time", "");
  text += labelled(terminal, "priced", sources_text(predicted.sources));
  text += labelled(terminal, "ops", fmt::format("profile {} ({}, {}): {}", profile.name,
                                                name_of(profile.provenance), profile.date,
                                                profile.source));
  text += labelled(terminal, "constants", fmt::format("({}) {}", name_of(profile.model.provenance),
                                                      profile.model.source));
  text += labelled(terminal, "device", profile.device.source);
  text += labelled(terminal, "cluster", scenario.cluster.name + ": " + scenario.cluster.source);
  text += labelled(terminal, "stack", scenario.stack.name + ": " + scenario.stack.source);
  return text + labelled(terminal, "model", scenario.model.name + ": " + scenario.model.source);
}

std::string report_text(const Terminal& terminal, const NamedScenario& named,
                        const PlannedRun& run) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  const Prediction& predicted = run.predicted;
  std::string text = scenario_view(terminal, named, run.plan) + "\n";
  text += heading(terminal, "PLAN");
  text += plan_view(terminal, run.plan);
  text += prediction_view(terminal, predicted, named.scenario.profile);
  if (predicted.p_oom > kRefusedChance) {
    text += "  " + terminal.paint("does not fit: " + shortage_text(predicted, predicted.capacity),
                                  Ink::kBad) + "\n";
  }
  text += "\n" + heading(terminal, "TERMS",
                         fmt::format("they add up to the step of {}", time_text(predicted.step)));
  for (const Term& term : predicted.breakdown) text += term_view(terminal, term, predicted);
  text += "\n" + heading(terminal, "MEMORY", "GiB at the peak of each stage");
  text += memory_view(terminal, predicted, kAll);
  text += "\n" + heading(terminal, "SOURCES");
  return text + sources_view(terminal, named.scenario, predicted);
}

Result<PlannedRun> best_run(const Arguments& arguments, const Scenario& scenario) {
  TPSIM_TRY_STATUS(refuse(arguments, kSingleOnly, "with --gpus the search cuts the stages"));
  TPSIM_TRY(const SearchSpace space, search_space(arguments, scenario.cluster));
  TPSIM_TRY(const SearchResult found, search(scenario, space, 1, {}));
  if (found.plans.empty()) return nothing_fits(scenario, space, found);
  return found.plans.front();
}

Result<PlannedRun> chosen_run(const Arguments& arguments, const Scenario& scenario,
                              const std::optional<PlanFile>& file) {
  if (arguments.has(Opt::kGpus)) {
    if (!file) return best_run(arguments, scenario);
    return refuse(arguments, std::array{Opt::kGpus}, "the plan file says how many").error();
  }
  TPSIM_TRY_STATUS(refuse(arguments, kSearchOnly, "it steers a search: give --gpus"));
  PlannedRun run;
  TPSIM_TRY(run.plan, single_plan(arguments, scenario.model, file));
  TPSIM_TRY(run.predicted, simulate(scenario, run.plan));
  return run;
}

}  // namespace

Status run_explain(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY(const auto file, read_plan_argument(arguments));
  TPSIM_TRY(const NamedScenario named, load_scenario(arguments, file));
  TPSIM_TRY(const PlannedRun run, chosen_run(arguments, named.scenario, file));
  return print(arguments.has(Opt::kJson) ? to_text(explain_report(named, run))
                                         : report_text(terminal, named, run));
}

}  // namespace tpsim
