// tpsim explain --what-if: the change of the step if a constant of the machine changes, the best
// plans with more memory or bandwidth, and model dimensions that are inefficient on the GPU.
#include "plans/questions/what_if.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/options/answers.h"
#include "cli/options/table.h"
#include "cli/options/wrapping.h"
#include "cli/views/plan_view.h"
#include "cli/views/report_json.h"
#include "core/base/numbers.h"
#include "plans/questions/precision_break_even.h"
#include "plans/questions/shape_advice.h"

namespace tpsim::cli {
namespace {

constexpr double kMostMemory = 2;  // largest memory to search with, relative to the GPU's memory

struct Answers {
  std::vector<Sensitivity> sensitivities;
  std::vector<MemoryBreakEven> memory;
  std::vector<PlanBreakEven> plans;
  std::vector<ShapeFinding> shapes;
  std::vector<PrecisionBreakEven> precisions;
  bool searched = false;
  std::string not_searched;  // reason why no search ran
  std::string best;          // best plan of the search, if it is not the explained plan
};

// Returns the relative change of a step as text: "3.00 % longer".
std::string change_text(double change) {
  const std::string percent = fmt::format("{:.2f} %", 100 * std::abs(change));
  if (percent == "0.00 %") return "none";
  return percent + (change > 0 ? " longer" : " shorter");
}

std::string sensitivity_view(const Terminal& terminal, const Answers& answers) {
  Table table({{"", Align::kLeft}, {"step"}, {"change"}});
  for (const Sensitivity& one : answers.sensitivities) {
    table.add_row({std::string(name_of(one.constant)), time_text(one.step),
                   Cell(change_text(one.change), one.change > 0 ? Ink::kBad : Ink::kGood)});
  }
  return table.text(terminal);
}

std::string break_even_view(const Answers& answers, Bytes today) {
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

std::string shape_view(const Terminal& terminal, const Answers& answers) {
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

std::string precision_view(const Answers& answers) {
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

std::string report_text(const Terminal& terminal, const NamedScenario& named, const PlannedRun& run,
                        const Answers& answers) {
  std::string text = scenario_view(terminal, named, run.plan) + "\n";
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

JsonValue shape_json(const ShapeFinding& finding) {
  return json_object(
      {{"what", finding.what}, {"better", json_array(finding.better, [](const auto& better) {
                                  return json_object({{"size", better.change.size},
                                                      {"from", better.change.from},
                                                      {"to", better.change.to},
                                                      {"gain", better.gain}});
                                })}});
}

JsonValue report_json(const PlannedRun& run, const Answers& answers) {
  JsonValue json = json_object({{"version", "tpsim-what-if-report/1"}, {"plan", run_json(run)}});
  json.set("sensitivities", json_array(answers.sensitivities, [](const Sensitivity& one) {
             return json_object({{"constant", name_of(one.constant)},
                                 {"factor", kNudge},
                                 {"step_s", one.step.value()},
                                 {"change", one.change}});
           }));
  if (answers.searched) {
    json.set("memory_break_evens", json_array(answers.memory, [](const MemoryBreakEven& one) {
               return json_object({{"memory_gib", one.memory.value() / kGiB},
                                   {"gain", one.gain ? JsonValue(*one.gain) : JsonValue()},
                                   {"plan", run_json(one.run)}});
             }));
    json.set("plan_break_evens", json_array(answers.plans, [](const PlanBreakEven& one) {
               return json_object({{"constant", name_of(one.constant)},
                                   {"factor", one.factor},
                                   {"plan", short_name(one.after)}});
             }));
  }
  json.set(
      "precision_break_evens", json_array(answers.precisions, [](const PrecisionBreakEven& one) {
        return json_object(
            {{"precision", name_of(one.precision)}, {"hidden", one.width}, {"gain", one.gain}});
      }));
  json.set("shape", json_array(answers.shapes, shape_json));
  return json;
}

Status search_break_evens(const Arguments& arguments, const NamedScenario& named,
                          const std::optional<PlanFile>& file, const PlannedRun& run,
                          const Terminal& terminal, Answers& answers) {
  constexpr double kMemorySearchShare = 0.2;  // share of this search in the progress bar
  Scenario scenario = named.scenario;
  TPSIM_TRY(const SearchSpace space, search_space(arguments, scenario, file));
  TPSIM_TRY(const int threads, threads_of(arguments));
  ProgressBar progress(terminal, "searching with other hardware");
  std::optional<Plan> today = run.plan;
  if (file) {  // the plan of a file may not be the best one
    TPSIM_TRY(const SearchResult found, search(scenario, space, 1, {}, threads));
    scenario = with_found_parts(std::move(scenario), found);
    today.reset();
    if (!found.plans.empty()) today = found.plans.front().plan;
    if (today && *today != run.plan) answers.best = short_name(*today);
  }
  TPSIM_TRY(answers.memory,
            memory_break_evens(scenario, space, kMostMemory, threads,
                               [&](double share) { progress.show(kMemorySearchShare * share); }));
  const auto show = [&](double share) {
    progress.show(kMemorySearchShare + (1 - kMemorySearchShare) * share);
  };
  TPSIM_TRY(answers.plans, plan_break_evens(scenario, space, threads, show, today));
  return Ok{};
}

}  // namespace

Result<Explanation> explain_what_if(const Arguments& arguments, const NamedScenario& named,
                                    const std::optional<PlanFile>& file, const PlannedRun& run,
                                    const Terminal& terminal) {
  Answers answers;
  answers.sensitivities = sensitivities(named.scenario, run.plan);
  answers.shapes = shape_findings(named.scenario, run.plan);
  answers.precisions = precision_break_evens(named.scenario, run.plan);
  answers.searched = file || arguments.has(Opt::kGpus);
  if (answers.searched) {
    const Status found = search_break_evens(arguments, named, file, run, terminal, answers);
    // A plan file may have a number of GPUs that a search rejects. The other questions are still
    // answered.
    if (!found.ok() && !file) return found.error();
    answers.searched = found.ok();
    if (!found.ok()) answers.not_searched = found.error().message;
  }
  return Explanation{report_json(run, answers), report_text(terminal, named, run, answers),
                     plan_file_of(named, run.plan)};
}

}  // namespace tpsim::cli
