// tpsim check-log: a training log held against the plan's prediction.
#include <fmt/format.h>

#include "cli/answers.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/plan_view.h"
#include "cli/table.h"
#include "cli/values.h"
#include "core/files.h"
#include "core/json_document.h"
#include "core/numbers.h"
#include "core/plan_json.h"
#include "sim/simulate.h"
#include "stacks/log_check.h"

namespace tpsim::cli {
namespace {

constexpr std::size_t kMostLogBytes = std::size_t{256} << 20;

std::string verdict(const Terminal& terminal, bool as_predicted) {
  return as_predicted ? terminal.paint("as predicted", Ink::kGood)
                      : terminal.paint("not as predicted", Ink::kBad);
}

std::string time_view(const Terminal& terminal, const LogCheck& check) {
  const TimeScale scale = time_scale(check.high);
  return fmt::format("  step time  {}: {} {} ({} steps), predicted {} ({} to {})\n",
                     verdict(terminal, check.time_as_predicted),
                     terminal.paint(scaled_text(check.measured, scale), Ink::kBold), scale.unit,
                     check.steps_used, scaled_text(check.predicted, scale),
                     scaled_text(check.low, scale), scaled_text(check.high, scale));
}

std::string memory_view(const Terminal& terminal, const LogCheck& check) {
  if (check.memory.empty()) return "  memory     not in the log\n";
  Table table({{"stage"}, {"reserved"}, {"predicted"}, {"off"}});
  for (const StageReserved& row : check.memory) {
    table.add_row({Cell(std::to_string(row.stage)), Cell(gib_text(row.measured)),
                   Cell(gib_text(row.predicted)),
                   Cell(fmt::format("{:+.1f} %", 100 * (row.measured / row.predicted - 1)))});
  }
  return fmt::format("  memory     {}, GiB held by the allocator:\n",
                     verdict(terminal, check.memory_as_predicted)) +
         table.text(terminal);
}

std::string check_text(const Terminal& terminal, const PlanFile& file, const LogCheck& check) {
  std::string text = heading(terminal, "LOG", fmt::format("against {}", short_name(file.plan)));
  text += time_view(terminal, check) + memory_view(terminal, check);
  if (check.findings.empty()) return text;
  text += "\n" + heading(terminal, "WHY", "the main cause first");
  for (const Finding& finding : check.findings) {
    text += fmt::format("  {}: {}\n", terminal.paint(name_of(finding.cause), Ink::kBold),
                        printable(finding.evidence));
  }
  return text;
}

Result<TrainingLog> read_log(const Arguments& arguments) {
  if (arguments.positional.empty()) {
    return Error{ErrorKind::kBadInput, "which log? None was given", "check-log",
                 "tpsim check-log training.log --plan plan.json"};
  }
  TPSIM_TRY(const std::string text, read_file(arguments.positional, kMostLogBytes));
  return parse_training_log(text, arguments.positional);
}

}  // namespace

JsonValue check_log_json(const LogCheck& check) {
  return json_object({
      {"version", "tpsim-log-report/1"},
      {"as_predicted", check.as_predicted()},
      {"steps", check.steps_used},
      {"measured_step_s", check.measured.value()},
      {"predicted_step_s", check.predicted.value()},
      {"step_s_low", check.low.value()},
      {"step_s_high", check.high.value()},
      {"time_as_predicted", check.time_as_predicted},
      {"memory_as_predicted", check.memory_as_predicted},
      {"memory_gib", json_array(check.memory,
                                [](const StageReserved& row) {
                                  return json_object({{"stage", row.stage},
                                                      {"reserved", row.measured.value() / kGiB},
                                                      {"predicted", row.predicted.value() / kGiB}});
                                })},
      {"findings", json_array(check.findings,
                              [](const Finding& finding) {
                                return json_object({{"cause", name_of(finding.cause)},
                                                    {"evidence", finding.evidence}});
                              })},
  });
}

Result<LogCheck> check_log_answer(const Arguments& arguments, const PlanFile& file) {
  TPSIM_TRY(const TrainingLog log, read_log(arguments));
  TPSIM_TRY(const NamedScenario named, load_scenario(arguments, file));
  TPSIM_TRY(const Prediction predicted, simulate(named.scenario, file.plan));
  return check_log(named.scenario, file.plan, predicted, log);
}

Status run_check_log(const Arguments& arguments, const Terminal& terminal) {
  if (!arguments.has(Opt::kPlanFile)) {
    return option_error(Opt::kPlanFile, "is missing: which plan should be running?",
                        "a file saved with --save");
  }
  TPSIM_TRY(const PlanFile file, read_plan(*arguments[Opt::kPlanFile]));
  TPSIM_TRY(const LogCheck check, check_log_answer(arguments, file));
  return print(arguments.has(Opt::kJson) ? to_text(check_log_json(check))
                                         : check_text(terminal, file, check));
}

}  // namespace tpsim::cli
