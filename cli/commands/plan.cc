// tpsim plan: searches the layouts of a model on a number of GPUs and prints the best ones.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/answers/plan_answers.h"
#include "app/reports/report_json.h"
#include "app/scenario/available_part.h"
#include "cli/commands/commands.h"
#include "cli/options/plan_requests.h"
#include "cli/options/values.h"
#include "cli/views/plan_view.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/scenario/measured_stack.h"
#include "core/scenario/plan_contents.h"

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
  if (space.group == Grouping::kLayout) {
    out.prose("Each row is the best plan of a layout; --group none ranks every plan.", Ink::kDim);
  }
  if (!found.pruned.empty()) out.prose("ruled out: " + pruned_text(found), Ink::kDim);
}

// States what the search did with an offloaded optimizer. Starts with a space; empty if the options
// of the search decided it.
const char* offload_text(const SearchResult& found) {
  switch (found.offload) {
    case OffloadSearch::kAsAsked: return "";
    case OffloadSearch::kLeftOut:
      return " Plans with an offloaded optimizer were not searched (--offload none,optimizer "
             "includes them).";
    case OffloadSearch::kNeeded:
      return " The optimizer is offloaded because no plan fits without it.";
    case OffloadSearch::kSurely: break;
  }
  if (offloads_optimizer(found.plans.front().plan)) {
    return " The optimizer is offloaded because even the slow end of its interval, with the "
           "software "
           "as assumed, is better than the best plan without.";
  }
  return " Measured runs have not confirmed the time of offloaded optimizers yet: such a plan "
         "counts "
         "only if the slow end of its interval is better than the best plan without (--offload "
         "optimizer shows them).";
}

// States what a search that --within ended leaves open.
std::string unproven_text(const SearchResult& found) {
  const std::string part =
      found.visited == 0
          ? "It searched only a likely part of the space"
          : fmt::format("It visited {:.0f} % of the families of plans", 100 * found.visited);
  return fmt::format(
      "--within ended the search: other plans may be better. {}; {} combinations of it were not "
      "compared.",
      part, count_text(found.not_compared));
}

// States how many combinations were excluded, bounded and simulated, and that no other combination
// can be better.
void write_certificate(TextReport& out, const PlanAnswer& answer) {
  const SearchResult& found = answer.found;
  const std::string worse =
      found.not_as_good == 0
          ? ""
          : fmt::format("{} of them because even their best case is worse than the plans shown; ",
                        count_text(found.not_as_good));
  std::string fixed = fmt::format("--stack {}, --seq {}, --global-batch {}", answer.named.stack,
                                  answer.named.scenario.model.seq, answer.space.global_batch);
  for (const auto& [part, value] : held_parts(answer.named)) {
    fixed += fmt::format(", {} {}", option_of(part), text_of(row_of(part), value));
  }
  out.heading("CERTIFICATE");
  // The search does not swap ranks, which may make another layout faster.
  const bool differ = !answer.named.scenario.cluster.unequal_nodes.empty();
  const std::string best =
      differ ? "No other layout can be better with its ranks packed on the nodes; "
               "ranks of the layouts shown were also swapped."
      : answer.space.group == Grouping::kLayout
          ? "No other layout of the searched settings can be better, nor another plan of these "
            "layouts."
          : "No other combination of the searched settings can be better.";
  out.prose(
      fmt::format("{} combinations: {} ruled out, {}{} fit in memory, {} of them simulated. {}{} "
                  "Held fixed, so that other values may be better: {}. Inputs {}",
                  count_text(found.considered),
                  count_text(found.considered - found.feasible - found.not_compared), worse,
                  count_text(found.feasible), count_text(found.simulated),
                  found.is_complete() ? best : unproven_text(found), offload_text(found),
                  printable(fixed), hash_text(answer.named.scenario, answer.space)));
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
  write_allocation(out, named, best);
  write_prediction(out, best.predicted, named.scenario.profile);
  write_tried(out, named);
  write_assumed(out, named);
  write_choice(out, named);
  out.heading("WHERE THE STEP GOES");
  write_breakdown(out, best.predicted, kLargestTerms);
  write_plans(out, answer, arguments.has("--pareto"));
  write_certificate(out, answer);
  write_next(out, arguments, named, best);
}

}  // namespace

Result<Answer> run_plan(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY_STATUS(check_plot(arguments));
  TPSIM_TRY(const auto file, read_plan_argument(arguments));
  if (is_scaling_curve(arguments)) {
    TPSIM_TRY_STATUS(refuse(arguments, {"--nodes", "--rank-file"}, "give one number of GPUs"));
    return run_scaling(arguments, file, terminal);
  }
  TPSIM_TRY_STATUS(refuse(arguments, {"--scaling"},
                          "the option needs several numbers of GPUs: --gpus 64,128,256"));
  if (arguments.has("--within")) {
    TPSIM_TRY_STATUS(refuse(arguments, {"--pareto", "--plot"}, "it needs the whole search"));
  }
  if (arguments.has("--pareto")) {
    TPSIM_TRY_STATUS(
        refuse(arguments, {"--top", "--group"}, "--pareto shows the complete Pareto front"));
  }
  TPSIM_TRY(PlanRequest request, plan_request(arguments, file));
  ProgressBar progress(terminal, "searching");
  request.search.progress = progress.shower();
  TPSIM_TRY(const PlanAnswer planned, plan_answer(request));
  const auto& [named, space, found, drawn, possible] = planned;
  if (found.plans.empty()) {
    const Error error = nothing_fits(named, space, found);
    Answer answer{.outcome = error};
    if (arguments.has("--json")) {
      answer.document = plan_report(named, space, found);
      answer.document.set("none", error.message);
      answer.document.set("hint", error.hint);
    }
    return answer;
  }
  // Write the files before printing the report that names them.
  if (arguments.has("--save")) {
    TPSIM_TRY_STATUS(
        save_with_contents(*arguments["--save"], plan_file_of(named, found.plans.front().plan)));
  }
  TPSIM_TRY_STATUS(write_rank_file(arguments, named, found.plans.front().plan));
  if (arguments.has("--plot")) TPSIM_TRY_STATUS(write_plan_picture(*arguments["--plot"], planned));
  Answer answer = answered(
      arguments, terminal, [&] { return plan_report(planned.named, planned.space, planned.found); },
      [&](TextReport& out) { write_report(out, arguments, planned); });
  for (const PlannedRun& run : found.plans) answer.plans.push_back(plan_file_of(named, run.plan));
  return answer;
}

}  // namespace tpsim::cli
