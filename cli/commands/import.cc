// tpsim import: reads launch files and prints or saves the plan that they describe.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/answers/import_answer.h"
#include "app/answers/plan_answers.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "cli/options/values.h"
#include "cli/views/plan_view.h"
#include "core/base/standard_streams.h"
#include "core/scenario/plan_contents.h"
#include "core/scenario/plan_json.h"

namespace tpsim::cli {
namespace {

// Prints which settings of the files the import ignored, and where the prediction deviates from the
// files.
void say_remarks(const Arguments& arguments, const ImportAnswer& answer) {
  if (arguments.has("--quiet")) return;
  const std::vector<std::string>& outside = answer.outside;
  if (!outside.empty()) {
    const std::string number =
        fmt::format("{} setting{}", outside.size(), outside.size() == 1 ? "" : "s");
    const std::string what =
        arguments.has("--verbose")
            ? fmt::format("{} ignored (no effect on time or memory): {}", number,
                          fmt::join(outside, ", "))
            : fmt::format("{} ignored (no effect on time or memory; --verbose lists them)", number);
    say(fmt::format("tpsim: {}\n", printable(what)));
  }
  if (!answer.file.settings_assumed.empty()) {
    say(fmt::format("tpsim: these settings are assumed to have no effect: {}\n",
                    printable(fmt::format("{}", fmt::join(answer.file.settings_assumed, ", ")))));
  }
  for (const std::string& note : answer.notes) say(fmt::format("tpsim: {}\n", printable(note)));
}

Result<PlannedRun> predicted_run(const Arguments& arguments, const PlanFile& file) {
  const bool ignores = arguments.has("--ignore-stack-limits");
  TPSIM_TRY(SimulatedPlan answer,
            simulate_answer(
                {.scenario = {.file = file, .ignore_stack_limits = ignores, .predicts = false}}));
  return std::move(answer.run);
}

Status check_risk(const Arguments& arguments, const PlanFile& file, const PlannedRun& run) {
  TPSIM_TRY(const AcceptedRisk accepted, accepted_risk(arguments));
  return accepted.max_oom ? check_stated_risk(accepted, short_name(file.plan), run.predicted)
                          : Status(Ok{});
}

// The error after the report of a plan that was read and cannot be predicted.
Error unpredicted(Error why) {
  why.message = "the plan cannot be predicted: " + why.message;
  return why;
}

void write_import(TextReport& out, const Arguments& arguments, const PlanFile& file,
                  const Result<PlannedRun>& run) {
  out.heading("PLAN", file.model.name);
  write_plan(out, file.plan);
  out.blank();
  // Launch files do not name the cluster, so the cluster is a default unless an option names it.
  const bool named = arguments.has("--cluster") || arguments.has("--profile");
  out.line("  for {}{} ({}, {})", printable(file.cluster),
           named ? "" : " (default; name yours with --cluster)", printable(file.profile),
           printable(file.stack));
  if (!file.parts.empty()) out.line("  with {}", to_string(file.parts));
  out.blank();
  if (run.ok()) write_headline(out, run->predicted);
  if (!arguments.has("--save")) return;
  out.blank();
  out.line("wrote the plan to {}", printable(*arguments["--save"]));
}

}  // namespace

Result<Answer> run_import(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY(const ImportRequest request, import_request(arguments));
  TPSIM_TRY(const ImportAnswer imported, import_answer(request));
  const PlanFile& file = imported.file;
  if (arguments.has("--save")) TPSIM_TRY_STATUS(save_with_contents(*arguments["--save"], file));
  say_remarks(arguments, imported);
  const Result<PlannedRun> run = predicted_run(arguments, file);
  Answer answer = answered(
      arguments, terminal, [&] { return plan_file_to_json(file); },
      [&](TextReport& out) { write_import(out, arguments, file, run); });
  answer.plans = {file};
  if (run.ok()) answer.outcome = check_risk(arguments, file, *run);
  if (!run.ok()) answer.verdict = unpredicted(run.error());
  return answer;
}

}  // namespace tpsim::cli
