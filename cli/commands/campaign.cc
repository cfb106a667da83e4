// tpsim campaign: time, cost and energy of a whole training run.
//
// The plan comes from --plan, from options as for simulate, or with --gpus from a search. With
// --deadline or --budget all cluster sizes are searched.
#include <fmt/format.h>

#include <array>

#include "cli/commands/commands.h"
#include "cli/options/answers.h"
#include "cli/options/assumed.h"
#include "cli/options/fit.h"
#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "cli/views/campaign_view.h"
#include "core/base/leading_number.h"
#include "core/json/json_document.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_json.h"
#include "sim/step/simulate.h"

namespace tpsim::cli {
namespace {

constexpr ValueRange kReplayRange{2, 1'000'000};
constexpr std::int64_t kDefaultReplays = 2000;

// Command-line options that override the assumptions, in the order of Assumption.
constexpr std::array<Opt, kAssumptionCount> kAssumptionOptions = {
    Opt::kGpuPower,  Opt::kOtherPower,       Opt::kPue,         Opt::kCarbon,     Opt::kPrice,
    Opt::kNodeMtbf,  Opt::kStorageBandwidth, Opt::kRestartTime, Opt::kRepairTime, Opt::kDowntime,
    Opt::kSpareNodes};

Error about(Opt opt, const Error& error) { return option_error(opt, error.message, error.hint); }

Result<double> tokens_of(const Arguments& arguments) {
  if (!arguments.has(Opt::kTokens)) {
    return option_error(Opt::kTokens, "the number of training tokens is missing",
                        "write 366e9, 366B or 1T");
  }
  const std::string& text = *arguments[Opt::kTokens];
  // Accepts a number with an optional unit: "366e9", "366B", "1.5T".
  const LeadingNumber number = leading_number(text).value_or(LeadingNumber{});
  const std::string_view unit = std::string_view(text).substr(number.length);
  const double factor = unit.empty()  ? 1
                        : unit == "M" ? 1e6
                        : unit == "B" ? 1e9
                        : unit == "T" ? 1e12
                                      : 0;
  if (number.length == 0 || !(number.value * factor > 0)) {
    return option_error(Opt::kTokens, fmt::format("'{}' is not a token count", text),
                        "write 366e9, 366B or 1T");
  }
  return number.value * factor;
}

Result<BatchRamp> ramp_of(const Arguments& arguments) {
  TPSIM_TRY(const std::vector<std::int64_t> numbers,
            integers_of(arguments, Opt::kRamp, {1, std::int64_t{1} << 50}));
  if (numbers.empty()) return BatchRamp{};
  if (numbers.size() != 3) {
    return option_error(Opt::kRamp,
                        fmt::format("'{}' is not three numbers", *arguments[Opt::kRamp]),
                        "write START,INCREMENT,SAMPLES, for example 192,16,9765625");
  }
  return BatchRamp{numbers[0], numbers[1], numbers[2]};
}

// Whether --spare-nodes names what to minimize (cost or time) and not a number. The number of spare
// nodes is then optimized.
bool chooses_spares(const Arguments& arguments) {
  if (!arguments.has(Opt::kSpareNodes)) return false;
  const std::string& text = *arguments[Opt::kSpareNodes];
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z';
}

Result<CampaignRequest> request_of(const Arguments& arguments) {
  CampaignRequest request;
  TPSIM_TRY(request.tokens, tokens_of(arguments));
  TPSIM_TRY(request.ramp, ramp_of(arguments));
  TPSIM_TRY(request.step, time_of(arguments, Opt::kStepTime));
  TPSIM_TRY(request.checkpoint_interval, time_of(arguments, Opt::kCheckpointEvery));
  TPSIM_TRY(request.checkpoints, choice_of(arguments, Opt::kCheckpoint, request.checkpoints));
  if (chooses_spares(arguments)) {
    TPSIM_TRY(request.spares_for, choice_of(arguments, Opt::kSpareNodes, request.spares_for));
  }
  TPSIM_TRY(request.replays, integer_of(arguments, Opt::kReplays, kDefaultReplays, kReplayRange));
  TPSIM_TRY(const std::int64_t seed, integer_of(arguments, Opt::kSeed, 1, {0, 1 << 30}));
  request.seed = static_cast<std::uint64_t>(seed);
  return request;
}

// Returns the entry of data/campaigns to use: --assumptions, else the entry with the cluster's name
// or with that name without "-node" (data/README.md). Error for a cluster file without
// --assumptions.
Result<std::string> assumptions_name(const Arguments& arguments, const std::string& cluster) {
  if (arguments.has(Opt::kAssumptions)) return *arguments[Opt::kAssumptions];
  if (cluster.ends_with(".json") || cluster.find('/') != std::string::npos) {
    return option_error(
        Opt::kAssumptions,
        fmt::format("the assumptions are missing: {} has no power, prices or failure rates",
                    cluster),
        "give an entry of data/campaigns, e.g. jean-zay-a100, or a file of that kind");
  }
  return assumptions_name_of(cluster);
}

Result<std::optional<PlanFile>> read_plan_option(const Arguments& arguments) {
  if (!arguments.has(Opt::kPlanFile)) return read_plan_argument(arguments);
  if (!arguments.positional.empty()) {
    return option_error(Opt::kPlanFile, "a second plan is given", "give one plan");
  }
  TPSIM_TRY(PlanFile file, read_plan(*arguments[Opt::kPlanFile]));
  return std::optional<PlanFile>(std::move(file));
}

Result<Plan> plan_of(const Arguments& arguments, NamedScenario& named,
                     const std::optional<PlanFile>& file) {
  const Scenario& scenario = named.scenario;
  if (!arguments.has(Opt::kGpus)) {
    TPSIM_TRY_STATUS(refuse(arguments,
                            {Opt::kObjective, Opt::kMaxMemory, Opt::kExclude, Opt::kUnevenEnds},
                            "add --gpus: the option applies to a search"));
    return single_plan(arguments, scenario.model, file, plan_defaults(scenario));
  }
  if (file)
    return refuse(arguments, {Opt::kGpus}, "the plan file states the number of GPUs").error();
  TPSIM_TRY(const SearchSpace space, search_space(arguments, scenario, file));
  TPSIM_TRY(const SearchResult found, search(scenario, space, 1, {}));
  if (found.plans.empty()) return nothing_fits(scenario, space, found);
  adopt_parts(found.tried, named);
  return found.plans.front().plan;
}

Result<std::vector<Replanned>> replanned_of(const Arguments& arguments, const Scenario& scenario,
                                            const Plan& plan, const Progress& progress) {
  TPSIM_TRY(const std::int64_t lost, integer_of(arguments, Opt::kLostNodes, 0, {0, 1 << 20}));
  if (lost == 0) return std::vector<Replanned>();
  return replan(scenario, plan, lost, progress);
}

}  // namespace

Result<Assumptions> assumptions_of(const Arguments& arguments, const std::string& cluster) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  TPSIM_TRY(const std::string name, assumptions_name(arguments, cluster));
  Result<Assumptions> loaded = load_assumptions(catalogue, name);
  if (!loaded.ok()) {
    return loaded.error().where.empty() ? about(Opt::kAssumptions, loaded.error()) : loaded.error();
  }
  Assumptions assumptions = std::move(loaded).value();
  for (const AssumptionRow& row : assumption_rows()) {
    const Opt opt = kAssumptionOptions[static_cast<std::size_t>(row.assumption)];
    if (!arguments.has(opt)) continue;
    if (row.assumption == Assumption::kSpareNodes && chooses_spares(arguments)) {
      assumptions.set(row.assumption, 0, "");
      continue;
    }
    const Result<double> value = parse_assumption(row, *arguments[opt]);
    if (!value.ok()) return about(opt, value.error());
    assumptions.set(row.assumption, *value, fmt::format("given with {}", row_of(opt).name));
  }
  return assumptions;
}

Result<CampaignReport> campaign_answer(const Arguments& arguments,
                                       const std::optional<PlanFile>& file,
                                       const Progress& progress) {
  CampaignReport report;
  TPSIM_TRY(report.request, request_of(arguments));
  TPSIM_TRY(report.named, load_scenario(arguments, file));
  const Scenario& scenario = report.named.scenario;
  TPSIM_TRY(report.assumptions, assumptions_of(arguments, report.named.cluster));
  Assumed assumed;  // inputs assumed for the plan that was predicted last
  TPSIM_TRY(OpenInputs open, open_inputs(report.named));
  if (report.request.step <= Seconds()) {
    report.request.widen = [&](PlannedRun& run) { assumed = open.widen(run); };
  }
  TPSIM_TRY(const auto goal, goal_of(arguments));
  const bool chooses_size = goal && !file;
  if (chooses_size) {
    TPSIM_TRY(const GoalAnswer answer, goal_answer(arguments, scenario, report.request,
                                                   report.assumptions, *goal, progress));
    if (!answer.chosen) return goal_missed(*goal, answer);
    const GoalSize& size = answer.sizes[*answer.chosen];
    adopt_parts(size.tried, report.named);
    report.plan = size.best->plan;
    report.campaign = *size.campaign;
    PlannedRun chosen = *size.best;
    assumed = open.widen(chosen);
    report.goal = GoalReport{*goal, size.standing, answer};
  } else {
    TPSIM_TRY(report.plan, plan_of(arguments, report.named, file));
  }
  TPSIM_TRY(const Prediction predicted, simulate(scenario, report.plan));
  TPSIM_TRY_STATUS(check_fit(arguments, scenario, {report.plan, predicted}));
  if (arguments.has(Opt::kSpareNodes) && !chooses_spares(arguments)) {
    const auto spare = static_cast<std::int64_t>(report.assumptions[Assumption::kSpareNodes]);
    const Status enough = check_spare_nodes(spare, scenario.cluster, report.plan);
    if (!enough.ok()) return about(Opt::kSpareNodes, enough.error());
  }
  if (!chooses_size) {
    TPSIM_TRY(report.campaign,
              plan_campaign(scenario, report.plan, report.request, report.assumptions));
    if (goal) report.goal = GoalReport{*goal, standing_of(*goal, report.campaign), {}};
  }
  report.assumptions.set(Assumption::kSpareNodes, static_cast<double>(report.campaign.spare_nodes),
                         report.campaign.spare_nodes_source);
  TPSIM_TRY(report.replanned, replanned_of(arguments, scenario, report.plan, progress));
  report.named.assumed = std::move(assumed);
  report.request.widen = {};
  return report;
}

Status run_campaign(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY(const auto file, read_plan_option(arguments));
  const Result<CampaignReport> report = [&] {
    ProgressBar progress(terminal, "planning");
    return campaign_answer(arguments, file, progress.shower());
  }();
  if (!report.ok()) return report.error();
  TPSIM_TRY_STATUS(print(terminal, arguments.has(Opt::kJson) ? to_text(campaign_json(*report))
                                                             : campaign_text(terminal, *report)));
  if (!report->goal || report->goal->standing != GoalStanding::kMissed) return Ok{};
  return Error{
      ErrorKind::kDoesNotFit,
      "the plan does not meet the goal: " + shortfall_text(report->goal->goal, report->campaign),
      "", "leave out the plan file to search for a number of GPUs that meets the goal"};
}

}  // namespace tpsim::cli
