// tpsim explain: every term of a prediction with formula, inputs and source. The plan comes from a
// plan file or options, as for simulate; with --gpus it is the best plan of a search.
#include <fmt/format.h>

#include <iterator>

#include "app/answers/memory_answer.h"
#include "app/reports/answer_json.h"
#include "app/reports/program_json.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "cli/options/values.h"
#include "cli/views/answer_views.h"
#include "core/base/files.h"
#include "core/plan/rank_layout.h"
#include "core/scenario/plan_json.h"
#include "evidence/logs/pickle.h"

namespace tpsim::cli {
namespace {

// Returns "trace" and the passes over a layer, by the number of passes that have run.
std::vector<std::string_view> names_by_count() {
  std::vector<std::string_view> names{"trace"};
  for (const LoweringPass& pass : lowering_passes()) names.push_back(pass.name);
  return names;
}

// Returns the passes that --after and --without leave: all of them by default.
Result<PassChoice> passes_of(const Arguments& arguments) {
  TPSIM_TRY(const std::vector<std::size_t> last,
            chosen_names(arguments, "--after", names_by_count()));
  TPSIM_TRY_STATUS(check_single(arguments, "--after", last.size()));
  PassChoice choice;
  if (!last.empty()) choice = first_passes(last.front());
  std::vector<std::string_view> names;
  for (const LoweringPass& pass : lowering_passes()) names.push_back(pass.name);
  for (const StepEndPass& pass : step_end_passes()) names.push_back(pass.name);
  TPSIM_TRY(const std::vector<std::size_t> without, chosen_names(arguments, "--without", names));
  for (const std::size_t pass : without) leave_out(names[pass], choice);
  return choice;
}

// Whether --diff has two passes instead of a plan file.
bool compares_passes(const std::string& text) {
  return text.find(',') != std::string::npos && text.find_first_of("./") == std::string::npos;
}

// Compares the program after two passes.
Result<Answer> explain_passes(const Arguments& arguments, const SimulatedPlan& plan,
                              const Terminal& terminal) {
  const std::vector<std::string_view> names = names_by_count();
  TPSIM_TRY(const std::vector<std::size_t> chosen, chosen_names(arguments, "--diff", names));
  if (chosen.size() != 2) {
    return bad_input(fmt::format("got {} passes", chosen.size()), "--diff",
                     "give two passes, e.g. trace,overlap");
  }
  const ComparedPasses passes{names[chosen.front()], names[chosen.back()]};
  LayerPricer pricer(plan.named.scenario);
  const std::vector<PartDifference> parts =
      pass_differences(pricer, plan.run.plan, chosen.front(), chosen.back());
  return answered(
      arguments, terminal,
      [&] { return pass_difference_report(plan.named, plan.run, passes, parts); },
      [&](TextReport& out) { write_pass_difference(out, plan, passes, parts); });
}

// Compares the program with that of the plan in --diff.
Result<Answer> explain_difference(const Arguments& arguments, const SimulatedPlan& plan,
                                  const Terminal& terminal) {
  TPSIM_TRY_STATUS(
      refuse(arguments, {"--after", "--without"}, "--diff names the passes that it compares"));
  const std::string& path = *arguments["--diff"];
  if (compares_passes(path)) return explain_passes(arguments, plan, terminal);
  TPSIM_TRY(PlanFile file, read_plan(path));
  const ScenarioRequest scenario{.file = std::move(file),
                                 .origin = path,
                                 .ignore_stack_limits = arguments.has("--ignore-stack-limits")};
  TPSIM_TRY(const SimulatedPlan other, explain_answer({.scenario = scenario}));
  LayerPricer first(plan.named.scenario), second(other.named.scenario);
  const std::vector<PartDifference> parts =
      program_differences(first, plan.run.plan, second, other.run.plan);
  return answered(
      arguments, terminal,
      [&] { return program_difference_report(plan.named, plan.run, other, parts); },
      [&](TextReport& out) { write_difference(out, plan, other, parts); });
}

Result<Answer> explain_program(const Arguments& arguments, const SimulatedPlan& plan,
                               const Terminal& terminal) {
  if (arguments.has("--diff")) return explain_difference(arguments, plan, terminal);
  TPSIM_TRY(const PassChoice passes, passes_of(arguments));
  LayerPricer pricer(plan.named.scenario);
  const std::vector<PartProgram> programs = rank_programs(pricer, plan.run.plan, passes);
  return answered(
      arguments, terminal, [&] { return program_report(plan.named, plan.run, programs); },
      [&](TextReport& out) { write_program(out, plan.named, plan.run, programs); });
}

// Writes the snapshot that --save-snapshot asks for: of the stage of --rank, else of the fullest.
Result<std::string> write_snapshot(const Arguments& arguments, const NamedScenario& named,
                                   const Plan& plan, const MemoryAnswer& answer,
                                   const MemoryRequest& request) {
  if (!arguments.has("--save-snapshot")) return std::string();
  const std::string& path = *arguments["--save-snapshot"];
  const std::int64_t stage = arguments.has("--rank") ? coordinates(plan, request.rank).pp
                                                     : fullest_stage(answer.peaks).stage;
  TPSIM_TRY_STATUS(
      write_file_atomically(path, to_pickle(predicted_snapshot(named.scenario, plan, stage))));
  return fmt::format("\nwrote the memory of stage {} to {}: open it at pytorch.org/memory_viz\n",
                     stage, printable(path));
}

Result<Answer> explain_memory(const Arguments& arguments, const SimulatedPlan& plan,
                              const Terminal& terminal) {
  const auto& [named, run] = plan;
  TPSIM_TRY(const std::int64_t rank,
            integer_of(arguments, "--rank", 0, {0, gpu_count(run.plan) - 1}));
  const MemoryRequest request{{named, run}, arguments["--snapshot"].value_or(""), rank};
  TPSIM_TRY(const MemoryAnswer memory, memory_answer(request));
  TPSIM_TRY(const std::string wrote, write_snapshot(arguments, named, run.plan, memory, request));
  Answer answer = answered(
      arguments, terminal, [&] { return memory_report(plan.named, plan.run, memory); },
      [&](TextReport& out) { write_peak_memory(out, plan.named, plan.run, memory); });
  if (!arguments.has("--json")) answer.text += wrote;
  return answer;
}

// Refuses options that have no effect without --program or --memory.
Status check_details(const Arguments& arguments) {
  if (!arguments.has("--program")) {
    TPSIM_TRY_STATUS(refuse(arguments, {"--after", "--without", "--diff"}, "add --program"));
  }
  if (arguments.has("--memory")) return Ok{};
  return refuse(arguments, {"--snapshot", "--save-snapshot", "--rank"}, "add --memory");
}

// Returns what --memory or --program asks for, else the terms of the step, after the row of a table
// that the plan comes from.
Result<Answer> explain_plan(const Arguments& arguments, const SimulatedPlan& plan,
                            const Terminal& terminal, const ExplainedRow* row = nullptr) {
  if (arguments.has("--memory")) return explain_memory(arguments, plan, terminal);
  if (arguments.has("--program")) return explain_program(arguments, plan, terminal);
  return answered(
      arguments, terminal, [&] { return explain_report(plan.named, plan.run); },
      [&](TextReport& out) {
        if (row != nullptr) write_row(out, *row);
        write_explanation(out, plan.named, plan.run);
      });
}

Result<Answer> explain_row(const Arguments& arguments, const std::optional<PlanFile>& file,
                           const Terminal& terminal) {
  TPSIM_TRY_STATUS(
      refuse_others(arguments,
                    {"--runs", "--row", "--cluster", "--stack", "--profile", "--node-gbps",
                     "--program", "--after", "--diff", "--without", "--memory", "--rank",
                     "--snapshot", "--save-snapshot", "--json", "--quiet", "--color"},
                    "the row of the table states this value"));
  if (file) {
    return bad_input("cannot be combined with a plan file", "--runs", "give only one of them");
  }
  if (!arguments.has("--row")) {
    return bad_input("the row to explain is missing", "--row", "give the id of a row of the table");
  }
  TPSIM_TRY(const RunsRequest request, runs_request(arguments));
  TPSIM_TRY(const ExplainedRow row, explained_row(request));
  return explain_plan(arguments, {row.named, row.planned}, terminal, &row);
}

Result<Answer> explain_why_not(const Arguments& arguments, ExplainRequest request,
                               const Terminal& terminal) {
  ProgressBar progress(terminal, "searching");
  request.search->progress = progress.shower();
  TPSIM_TRY(const WhyNotAnswer found, why_not_answer(request));
  Answer answer = answered(
      arguments, terminal, [&] { return why_not_json(found.why_not); },
      [&](TextReport& out) { write_why_not(out, found); });
  answer.plans = {plan_file_of(found.named, found.why_not.best.plan)};
  return answer;
}

Result<Answer> explain_what_if(const Arguments& arguments, const ExplainRequest& request,
                               const Terminal& terminal) {
  ProgressBar progress(terminal, "searching with other hardware");
  TPSIM_TRY(const WhatIfAnswer found, what_if_answer(request, progress.shower()));
  Answer answer = answered(
      arguments, terminal, [&] { return what_if_json(found); },
      [&](TextReport& out) { write_what_if(out, found); });
  answer.plans = {plan_file_of(found.named, found.run.plan)};
  return answer;
}

}  // namespace

Result<Answer> run_explain(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY(const auto file, read_plan_argument(arguments));
  TPSIM_TRY_STATUS(check_details(arguments));
  if (arguments.has("--runs")) return explain_row(arguments, file, terminal);
  TPSIM_TRY_STATUS(refuse(arguments, {"--row"}, "add --runs: the option names a row of its table"));
  if (arguments.has("--program")) {
    TPSIM_TRY_STATUS(refuse(arguments, {"--why-not", "--what-if", "--memory"},
                            "give either this option or --program"));
  }
  if (arguments.has("--memory")) {
    TPSIM_TRY_STATUS(
        refuse(arguments, {"--why-not", "--what-if"}, "give either this option or --memory"));
  }
  TPSIM_TRY(ExplainRequest request, explain_request(arguments, file));
  if (arguments.has("--why-not")) return explain_why_not(arguments, request, terminal);
  ProgressBar progress(terminal, "searching");
  if (request.search) request.search->progress = progress.shower();
  if (arguments.has("--what-if")) return explain_what_if(arguments, request, terminal);
  TPSIM_TRY(const SimulatedPlan plan, explain_answer(request));
  TPSIM_TRY(Answer answer, explain_plan(arguments, plan, terminal));
  answer.plans = {plan_file_of(plan.named, plan.run.plan)};
  return answer;
}

}  // namespace tpsim::cli
