// tpsim plan: searches the layouts of a model on a number of GPUs and prints the best ones.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/answers/export_answer.h"
#include "app/answers/plan_answers.h"
#include "app/reports/report_json.h"
#include "campaigns/assumptions.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "cli/options/values.h"
#include "cli/views/plan_view.h"
#include "core/base/files.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/measured_stack.h"
#include "core/scenario/plan_contents.h"
#include "gui/views/plan_picture.h"

namespace tpsim::cli {
namespace {

constexpr std::size_t kLargestTerms = 7;
constexpr std::size_t kReasonsShown = 4;

// Returns the most frequent reasons for excluded plans with their counts: "interleaved schedule
// needs micro-batches in multiples of pp (75,360), ..., other reasons (12)".
std::string pruned_text(const SearchResult& found) {
  std::vector<std::pair<std::int64_t, std::string>> reasons;
  for (const auto& [reason, count] : found.pruned) reasons.emplace_back(count, reason);
  std::sort(reasons.rbegin(), reasons.rend());
  if (reasons.size() > kReasonsShown) {
    std::pair<std::int64_t, std::string> others{0, "other reasons"};
    for (std::size_t i = kReasonsShown - 1; i < reasons.size(); ++i)
      others.first += reasons[i].first;
    reasons.resize(kReasonsShown - 1);
    reasons.push_back(std::move(others));
  }
  return joined_text(reasons, ", ", [](const auto& one) {
    return fmt::format("{} ({})", one.second, count_text(one.first));
  });
}

// Whether the catalogue has the assumptions that a campaign on this cluster needs.
bool has_assumptions(const std::string& cluster) {
  const Result<Catalogue> catalogue = Catalogue::open();
  if (!catalogue.ok()) return false;
  const std::vector<std::string> names = assumption_names(*catalogue);
  return std::find(names.begin(), names.end(), assumptions_name_of(cluster)) != names.end();
}

// Writes commands that continue from the saved plan.
void write_next(TextReport& out, const Arguments& arguments, const std::string& cluster,
                std::optional<LaunchStack> launcher) {
  const std::string quoted = shell_quoted(arguments["--save"].value_or("plan.json"));
  const std::string program = printable(arguments.program);
  const std::size_t columns = out.terminal().columns;
  out.heading("NEXT");
  const auto add = [&](const std::string& command) {
    out.line("{}", columns == 0 ? "  " + command : continued("  " + command, columns));
  };
  if (!arguments.has("--save")) {
    add(fmt::format("{} --save {}", printable(arguments.command_line), quoted));
  }
  add(fmt::format("{} simulate {} --trace timeline.json   # for ui.perfetto.dev", program, quoted));
  add(fmt::format("{} explain {}   # every term with its formula and source", program, quoted));
  if (launcher) {
    add(fmt::format("{} export {} --to {} -o launch   # and check-log launch.log {} once it runs",
                    program, quoted, name_of(*launcher), quoted));
  }
  if (cluster == kThisMachine) {
    add(fmt::format("{} validate {}   # train a few steps here and compare", program, quoted));
  }
  if (has_assumptions(cluster)) {
    add(fmt::format("{} campaign {} --tokens 1T   # days, energy, money", program, quoted));
  }
}

// Writes the table of plans and the reasons for excluded plans. Ties are marked only if the
// objective is time.
void write_plans(TextReport& out, const PlanAnswer& answer, bool shows_front) {
  const auto& [named, space, found, drawn, possible] = answer;
  const UsedColumns used = shows_front ? UsedColumns{} : used_columns(named, space, found);
  const bool marks_ties =
      !shows_front && space.objective == Objective::kTime && found.plans.size() > 1;
  out.heading("RANKING", std::string("TFLOP/s per GPU: hw counts recompute, model does not") +
                             (marks_ties ? "; =: not distinguishable from the best" : "") +
                             used.note);
  write_ranking(out, found.plans, marks_ties, used);
  if (!found.pruned.empty()) out.prose("ruled out: " + pruned_text(found), Ink::kDim);
}

// States how many combinations were excluded, bounded and simulated, and that no other combination
// can be better.
void write_certificate(TextReport& out, const PlanAnswer& answer) {
  const SearchResult& found = answer.found;
  const char* left_out = found.offload_left_out
                             ? " Plans with an offloaded optimizer were not searched (--offload "
                               "none,optimizer includes them)."
                             : "";
  const std::string worse =
      found.not_as_good == 0
          ? ""
          : fmt::format("{} of them because even their best case is worse than the plans shown; ",
                        count_text(found.not_as_good));
  out.heading("CERTIFICATE");
  out.prose(fmt::format(
      "{} combinations: {} ruled out, {}{} fit in memory, {} of them simulated. No other "
      "combination of the searched settings can be better.{} Inputs {}",
      count_text(found.considered), count_text(found.considered - found.feasible), worse,
      count_text(found.feasible), count_text(found.simulated), left_out,
      hash_text(answer.named.scenario, answer.space)));
}

// Returns a remark if the best plan uses fewer GPUs than available, which is possible if the
// objective is cost or energy.
std::string fewer_gpus_text(const SearchSpace& space, const Plan& best) {
  if (gpu_count(best) == space.gpus) return "";
  return fmt::format("; least {2} per token on {0} of the {1} GPUs", count_text(gpu_count(best)),
                     count_text(space.gpus), name_of(space.objective));
}

void write_report(TextReport& out, const Arguments& arguments, const PlanAnswer& answer) {
  const auto& [named, space, found, drawn, possible] = answer;
  const PlannedRun& best = found.plans.front();
  write_scenario(out, named, best.plan);
  out.heading("BEST PLAN",
              fmt::format("of {} considered in {}{}", count_text(found.considered),
                          time_text(found.elapsed), fewer_gpus_text(space, best.plan)));
  write_plan(out, best.plan);
  write_prediction(out, best.predicted, named.scenario.profile);
  write_tried(out, named);
  write_assumed(out, named);
  out.heading("WHERE THE STEP GOES");
  write_breakdown(out, best.predicted, kLargestTerms);
  write_plans(out, answer, arguments.has("--pareto"));
  write_certificate(out, answer);
  write_next(out, arguments, named.cluster, advised_export(named, best.plan));
}

Status write_picture(const std::string& path, const PlanAnswer& answer) {
  TPSIM_TRY(const gui::Drawing picture,
            gui::plan_picture(answer.named.scenario, answer.drawn, answer.possible));
  return write_file_atomically(path, gui::svg_text(picture));
}

Result<PlanAnswer> answer_of(PlanRequest request, const Terminal& terminal) {
  std::optional<ProgressBar> bar, front_bar;
  request.search.progress = [&](double share) {
    if (!bar) bar.emplace(terminal, "searching");
    bar->show(share);
  };
  request.front_progress = [&](double share) {
    bar.reset();
    if (!front_bar) front_bar.emplace(terminal, "searching the Pareto front");
    front_bar->show(share);
  };
  return plan_answer(request);
}

}  // namespace

Result<Answer> run_plan(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY_STATUS(check_plot(arguments));
  TPSIM_TRY(const auto file, read_plan_argument(arguments));
  if (is_scaling_curve(arguments)) return run_scaling(arguments, file, terminal);
  TPSIM_TRY_STATUS(refuse(arguments, {"--scaling"},
                          "the option needs several numbers of GPUs: --gpus 64,128,256"));
  if (arguments.has("--pareto")) {
    TPSIM_TRY_STATUS(refuse(arguments, {"--top"}, "--pareto shows the complete Pareto front"));
  }
  TPSIM_TRY(const PlanRequest request, plan_request(arguments, file));
  TPSIM_TRY(const PlanAnswer planned, answer_of(request, terminal));
  const auto& [named, space, found, drawn, possible] = planned;
  if (found.plans.empty()) {
    Answer answer{.outcome = nothing_fits(named.scenario, space, found)};
    if (arguments.has("--json")) answer.document = plan_report(named, space, found);
    return answer;
  }
  // Write the files before printing the report that names them.
  if (arguments.has("--save")) {
    TPSIM_TRY_STATUS(
        save_with_contents(*arguments["--save"], plan_file_of(named, found.plans.front().plan)));
  }
  if (arguments.has("--plot")) TPSIM_TRY_STATUS(write_picture(*arguments["--plot"], planned));
  Answer answer = answered(
      arguments, terminal, [&] { return plan_report(planned.named, planned.space, planned.found); },
      [&](TextReport& out) { write_report(out, arguments, planned); });
  for (const PlannedRun& run : found.plans) answer.plans.push_back(plan_file_of(named, run.plan));
  return answer;
}

}  // namespace tpsim::cli
