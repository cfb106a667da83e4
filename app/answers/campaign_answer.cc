#include "app/answers/campaign_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/scenario/field.h"
#include "app/scenario/fitting_search.h"
#include "app/scenario/open_inputs.h"
#include "app/scenario/untried_parts.h"
#include "core/base/numbers.h"
#include "core/scenario/catalogue.h"
#include "core/software/optimizer_kinds.h"
#include "plans/search/usual_batch.h"
#include "sim/step/simulate.h"

namespace tpsim::app {
namespace {

constexpr double kHour = 3600;
constexpr double kDay = 24 * kHour;

std::string days_text(Seconds time) { return fmt::format("{:.1f}", time.value() / kDay); }
std::string span_text(Seconds time) {
  return time.value() < 2 * kDay ? fmt::format("{:.1f} h", time.value() / 3600)
                                 : days_text(time) + " days";
}
std::string money_text(double usd) { return count_text(std::llround(usd)); }

Error goal_missed(const CampaignGoal& goal, const GoalAnswer& answer) {
  std::string message =
      fmt::format("no number of GPUs of the cluster ends the run {}", goal_text(goal));
  std::string hint;
  if (answer.nearest) {
    const GoalSize& near = answer.sizes[*answer.nearest];
    message += "; in the closest case, " + shortfall_text(goal, *near.campaign);
    hint = "reduce --tokens, or allow more time, money or GPUs";
  } else if (!answer.sizes.empty()) {
    message += fmt::format(": on {} GPUs {}", count_text(answer.sizes.back().gpus),
                           answer.sizes.back().why_none);
    hint = "tpsim plan shows why nothing fits";
  }
  return Error{ErrorKind::kDoesNotFit, message,
               option_of(goal.deadline > Seconds() ? Field::kDeadline : Field::kBudget), hint};
}

// The searches for a goal: numbers of GPUs, and the plans of each. All use the same batch.
struct GoalSearch {
  std::vector<std::int64_t> sizes;
  SearchSpace space;
};

// Returns the searches for the numbers of GPUs of the request, or for all sizes of the cluster.
// Parts of the software that make likely plans faster become those of `named`.
Result<GoalSearch> goal_search(const WholeRunRequest& request, NamedScenario& named) {
  const Scenario& scenario = named.scenario;
  GoalSearch search{request.gpus, {}};
  SearchRequest asked = *request.search;
  if (search.sizes.empty()) {
    search.sizes = goal_sizes(scenario, asked.settings.values[Setting::kPrecision], *request.goal,
                              request.run.tokens);
  }
  asked.gpus = search.sizes.front();
  std::vector<std::int64_t>& batch = asked.settings.values[Setting::kGlobalBatch];
  if (batch.empty()) {
    batch = {searched_global_batch(scenario.model, host_size(scenario.cluster))};
  }
  TPSIM_TRY(search.space, search_space(asked, scenario, std::nullopt));
  adopt_parts({{faster_parts(named, search.space), {}}}, named);
  return search;
}

Result<Plan> plan_of(const WholeRunRequest& request, NamedScenario& named) {
  const Scenario& scenario = named.scenario;
  const std::optional<PlanFile>& file = request.scenario.file;
  if (!request.search || file) {
    return single_plan(request.settings, scenario.model, file, plan_defaults(scenario));
  }
  TPSIM_TRY(const SearchSpace space, search_space(*request.search, scenario, file));
  const auto find = [&](const Scenario& one, const Progress& progress) {
    return search(one, space, 1, progress);
  };
  TPSIM_TRY(const SearchResult found, search_until_fit(named, space, {}, find));
  if (found.plans.empty()) return nothing_fits(named, space, found);
  return found.plans.front().plan;
}

// Returns which weights a checkpoint contains in addition to the optimizer's moments.
const char* saved_weights(const CampaignReport& report) {
  const SoftwareParts& parts = report.named.scenario.stack.parts;
  const DType dtype = report.plan.dtype;
  if (dtype == DType::kFloat32 || !updates_fp32_weights(parts, dtype)) return "weights";
  return keeps_two_copies(parts, dtype) ? "weights, fp32 master weights" : "fp32 weights";
}

// Chooses the number of GPUs that meets the goal, with its plan and campaign.
Status choose_size(const WholeRunRequest& request, const GoalSearch& search, OpenInputs& open,
                   CampaignReport& report, Assumed& assumed) {
  TPSIM_TRY(
      const GoalAnswer answer,
      plan_for_goal(report.named.scenario, search.space, search.sizes, report.request,
                    report.assumptions, *request.goal, request.search->threads, request.progress));
  if (!answer.chosen) return goal_missed(*request.goal, answer);
  const GoalSize& size = answer.sizes[*answer.chosen];
  adopt_parts(size.tried, report.named);
  report.plan = size.best->plan;
  report.campaign = *size.campaign;
  PlannedRun chosen = *size.best;
  assumed = open.widen(chosen);
  report.goal = GoalReport{*request.goal, size.standing, answer};
  return Ok{};
}

// Checks that the stated number of spare nodes exists.
Status check_spares(const WholeRunRequest& request, const CampaignReport& report) {
  if (!request.assumptions.values.contains(Assumption::kSpareNodes)) return Ok{};
  const auto spare = static_cast<std::int64_t>(report.assumptions[Assumption::kSpareNodes]);
  const Status enough = check_spare_nodes(spare, report.named.scenario.cluster, report.plan);
  if (enough.ok()) return Ok{};
  return field_error(Assumption::kSpareNodes, enough.error().message, enough.error().hint);
}

// Returns the scenario of the search or of the plan. A goal states its numbers of GPUs itself.
Result<NamedScenario> load_named(const WholeRunRequest& request) {
  if (!request.search) return load_scenario(request.scenario, request.settings);
  SearchRequest search = *request.search;
  if (!request.gpus.empty()) {
    search.gpus = *std::max_element(request.gpus.begin(), request.gpus.end());
  }
  return load_scenario(request.scenario, search);
}

}  // namespace

Result<Assumptions> load_assumptions(const StatedAssumptions& stated, const NamedScenario& named) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  const std::string& profile = named.scenario.profile.name;
  const std::string name =
      stated.name.empty() ? assumptions_name_of(catalogue, named.cluster, profile) : stated.name;
  if (name.empty()) {
    return field_error(Field::kAssumptions,
                       fmt::format("the assumptions are missing: the catalogue has no power and "
                                   "price of {}",
                                   profile),
                       "name those of a similar GPU (tpsim list assumptions), and give --price and "
                       "--gpu-power of yours");
  }
  Result<Assumptions> loaded = tpsim::load_assumptions(catalogue, name);
  if (!loaded.ok()) {
    const Error& error = loaded.error();
    if (!error.where.empty()) return error;
    return field_error(Field::kAssumptions, error.message, error.hint);
  }
  Assumptions assumptions = std::move(loaded).value();
  for (const auto& [assumption, value] : stated.values) {
    assumptions.set(assumption, value, fmt::format("given with {}", option_of(assumption)));
  }
  if (!stated.offers.empty()) {
    if (assumptions.gpu.empty()) assumptions.gpu = profile;
    const Status priced = set_offered_price(assumptions, stated.offers);
    if (!priced.ok()) {
      return field_error(Assumption::kPrice, priced.error().message, priced.error().hint);
    }
  }
  if (stated.chooses_spares) assumptions.set(Assumption::kSpareNodes, 0, "");
  return assumptions;
}

Result<CampaignReport> campaign_answer(const WholeRunRequest& request) {
  CampaignReport report;
  report.request = request.run;
  const std::optional<PlanFile>& file = request.scenario.file;
  TPSIM_TRY(report.named, load_named(request));
  NamedScenario& named = report.named;
  named.settings_left = request.search ? settings_left(*request.search, file.has_value())
                                       : settings_left(request.settings, file.has_value());
  const Scenario& scenario = named.scenario;
  TPSIM_TRY(report.assumptions, load_assumptions(request.assumptions, named));
  const bool chooses_size = request.goal && !file;
  GoalSearch search;
  if (chooses_size) {
    TPSIM_TRY(search, goal_search(request, named));
  }
  Assumed assumed;  // inputs assumed for the plan that was predicted last
  TPSIM_TRY(OpenInputs open, open_inputs(named));
  if (report.request.step <= Seconds()) {
    report.request.widen = [&](PlannedRun& run) { assumed = open.widen(run); };
  }
  if (chooses_size) {
    TPSIM_TRY_STATUS(choose_size(request, search, open, report, assumed));
  } else {
    TPSIM_TRY(report.plan, plan_of(request, named));
  }
  TPSIM_TRY(const Prediction predicted, simulate(scenario, report.plan));
  TPSIM_TRY_STATUS(check_fit(request.risk, named, {report.plan, predicted}));
  TPSIM_TRY_STATUS(check_spares(request, report));
  if (!chooses_size) {
    TPSIM_TRY(report.campaign,
              plan_campaign(scenario, report.plan, report.request, report.assumptions));
    if (request.goal) {
      report.goal = GoalReport{*request.goal, standing_of(*request.goal, report.campaign), {}};
    }
  }
  report.assumptions.set(Assumption::kSpareNodes, static_cast<double>(report.campaign.spare_nodes),
                         report.campaign.spare_nodes_source);
  if (request.lost_nodes > 0) {
    TPSIM_TRY(report.replanned,
              replan(scenario, report.plan, request.lost_nodes, request.progress));
  }
  named.assumed = std::move(assumed);
  report.request.widen = {};
  return report;
}

std::string goal_text(const CampaignGoal& goal) {
  std::string text;
  if (goal.deadline > Seconds()) text = "within " + span_text(goal.deadline);
  if (goal.budget > 0) {
    text += fmt::format("{}for {} USD", text.empty() ? "" : " ", money_text(goal.budget));
  }
  return text;
}

std::string shortfall_text(const CampaignGoal& goal, const Campaign& campaign) {
  std::string text =
      fmt::format("{} GPUs take {}", count_text(campaign.gpus), span_text(campaign.time.wall()));
  return goal.budget > 0 ? text + fmt::format(" and {} USD", money_text(campaign.cost.usd)) : text;
}

std::vector<ShownAssumption> shown_assumptions(const CampaignReport& report) {
  std::vector<ShownAssumption> shown;
  for (const AssumptionRow& row : assumption_rows()) {
    const auto& value = report.assumptions.values[static_cast<std::size_t>(row.assumption)];
    shown.push_back({row.key, assumption_text(row, value.value), value.source});
  }
  const CampaignRequest& request = report.request;
  const auto given = [](bool is_given, const char* option, const char* otherwise) {
    return is_given ? fmt::format("given with {}", option) : std::string(otherwise);
  };
  shown.push_back({"step", time_text(report.campaign.step),
                   given(request.step > Seconds(), "--step-time",
                         "predicted; tpsim explain shows the sources")});
  const BatchRamp& ramp = request.ramp;
  shown.push_back(
      {"batch_ramp", ramp.start == 0 ? "none" : "given",
       ramp.start == 0
           ? "no --ramp"
           : fmt::format("from {} sequences in increments of {} over {} samples, given with --ramp",
                         ramp.start, ramp.increment, count_text(ramp.samples))});
  shown.push_back({"checkpoint_every", duration_text(report.campaign.checkpoints.interval),
                   given(request.checkpoint_interval > Seconds(), "--checkpoint-every",
                         "optimal interval of the closed form")});
  const bool sync = request.checkpoints == CheckpointKind::kSync;
  shown.push_back({"checkpoint_holds", to_string(report.campaign.checkpoints.size),
                   fmt::format("{} and {}; training waits while they are ", saved_weights(report),
                               moments_text(report.named.scenario.stack.training.optimizer_kind,
                                            report.named.scenario.stack.parts.optimizer_dtype)) +
                       (sync ? "written (Le Scao et al. 2022, arXiv 2211.05100: 2.3 TB)"
                             : "copied to the hosts, over the host link of the cluster file")});
  shown.push_back({"idle_draw", percent_text(kIdleDraw),
                   "power of a spare GPU relative to a working one, an estimate: 50 of 400 W for "
                   "an A100, 70 of 700 W for an H100; the rest of a spare node draws full power"});
  shown.push_back(
      {"failure_process", "Poisson",
       "single nodes fail independently at a constant rate, also during restarts: Young 1974; "
       "Daly 2006, doi:10.1016/j.future.2004.11.016"});
  return shown;
}

std::string duration_text(Seconds time) {
  const double s = time.value();
  if (s >= 2 * kDay) return fmt::format("{:.1f} days", s / kDay);
  if (s >= 2 * kHour) return fmt::format("{:.1f} h", s / kHour);
  if (s >= 120) return fmt::format("{:.1f} min", s / 60);
  return fmt::format("{:.1f} s", s);
}

}  // namespace tpsim::app
