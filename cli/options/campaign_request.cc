#include "cli/options/campaign_request.h"

#include <fmt/format.h>

#include "cli/options/plan_requests.h"
#include "cli/options/values.h"

namespace tpsim::cli {
namespace {

constexpr ValueRange kReplayRange{2, 1'000'000};
constexpr std::int64_t kDefaultReplays = 2000;

constexpr Opt kSpares = opt_of(Assumption::kSpareNodes);
// Parses --budget: "3000000USD", "3 MUSD", "250kUSD". Zero if absent.
Result<double> budget_of(const Arguments& arguments) {
  constexpr AmountUnit kUnits[] = {{"USD", 1}, {"kUSD", 1e3}, {"MUSD", 1e6}};
  if (!arguments.has("--budget")) return 0.0;
  return amount_of(arguments, "--budget", kUnits, "an amount in USD",
                   "write 3000000USD or 3MUSD; prices are in USD/h");
}

// Returns the goal that --deadline and --budget state; nothing without them.
Result<std::optional<CampaignGoal>> goal_of(const Arguments& arguments) {
  CampaignGoal goal;
  TPSIM_TRY(goal.deadline, time_of(arguments, "--deadline"));
  TPSIM_TRY(goal.budget, budget_of(arguments));
  const bool none = goal.deadline <= Seconds() && goal.budget <= 0;
  return none ? std::optional<CampaignGoal>() : goal;
}

Result<double> tokens_of(const Arguments& arguments) {
  if (!arguments.has("--tokens")) {
    return option_error("--tokens", "the number of training tokens is missing",
                        "write 366e9, 366B or 1T");
  }
  constexpr AmountUnit kUnits[] = {{"", 1}, {"M", 1e6}, {"B", 1e9}, {"T", 1e12}};
  return amount_of(arguments, "--tokens", kUnits, "a token count", "write 366e9, 366B or 1T");
}

Result<BatchRamp> ramp_of(const Arguments& arguments) {
  TPSIM_TRY(const std::vector<std::int64_t> numbers,
            integers_of(arguments, "--ramp", {1, std::int64_t{1} << 50}));
  if (numbers.empty()) return BatchRamp{};
  if (numbers.size() != 3) {
    return option_error("--ramp", fmt::format("'{}' is not three numbers", *arguments["--ramp"]),
                        "write START,INCREMENT,SAMPLES, for example 192,16,9765625");
  }
  return BatchRamp{numbers[0], numbers[1], numbers[2]};
}

// Whether --spare-nodes names what to minimize (cost or time) and not a number. The number of spare
// nodes is then optimized.
bool chooses_spares(const Arguments& arguments) {
  if (!arguments.has(kSpares)) return false;
  const std::string& text = *arguments[kSpares];
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z';
}

Result<CampaignRequest> request_of(const Arguments& arguments) {
  CampaignRequest request;
  TPSIM_TRY(request.tokens, tokens_of(arguments));
  TPSIM_TRY(request.ramp, ramp_of(arguments));
  TPSIM_TRY(request.step, time_of(arguments, "--step-time"));
  TPSIM_TRY(request.checkpoint_interval, time_of(arguments, "--checkpoint-every"));
  TPSIM_TRY(request.checkpoints, choice_of(arguments, "--checkpoint", request.checkpoints));
  if (chooses_spares(arguments)) {
    TPSIM_TRY(request.spares_for, choice_of(arguments, kSpares, request.spares_for));
  }
  TPSIM_TRY(request.replays, integer_of(arguments, "--replays", kDefaultReplays, kReplayRange));
  TPSIM_TRY(const std::int64_t seed, integer_of(arguments, "--seed", 1, {0, 1 << 30}));
  request.seed = static_cast<std::uint64_t>(seed);
  return request;
}

Result<StatedAssumptions> stated_assumptions(const Arguments& arguments) {
  StatedAssumptions stated{.name = arguments["--assumptions"].value_or("")};
  for (const AssumptionRow& row : assumption_rows()) {
    const Opt opt = opt_of(row.assumption);
    if (!arguments.has(opt)) continue;
    if (row.assumption == Assumption::kSpareNodes && chooses_spares(arguments)) {
      stated.chooses_spares = true;
      continue;
    }
    const std::string text = arguments[opt].value_or("");
    if (names_offers(row.assumption, text)) {
      stated.offers = text;
      continue;
    }
    const std::optional<double> number =
        arguments.values(opt) == nullptr ? std::nullopt : number_of(arguments, opt);
    const Result<double> value =
        number ? assumption_value(row, *number) : parse_assumption(row, text);
    if (!value.ok()) return option_error(opt, value.error().message, value.error().hint);
    stated.values[row.assumption] = *value;
  }
  return stated;
}

// Checks that options of a search have one, and that no other option contradicts the goal.
Status check_options(const Arguments& arguments, bool has_file, bool has_goal) {
  if (has_goal && !has_file) {
    return refuse(arguments, {"--step-time", "--objective"},
                  "with --deadline or --budget, plans are compared by predicted time and cost");
  }
  if (!arguments.has("--gpus")) {
    return refuse(arguments, {"--objective", "--max-memory", "--exclude", "--uneven-ends"},
                  "add --gpus: the option applies to a search");
  }
  if (!has_file) return Ok{};
  return refuse(arguments, {"--gpus"}, "the plan file states the number of GPUs");
}

}  // namespace

Result<WholeRunRequest> campaign_request(const Arguments& arguments,
                                         const std::optional<PlanFile>& file) {
  WholeRunRequest request;
  TPSIM_TRY(request.run, request_of(arguments));
  TPSIM_TRY(request.scenario, scenario_request(arguments, file));
  TPSIM_TRY(request.assumptions, stated_assumptions(arguments));
  TPSIM_TRY(request.goal, goal_of(arguments));
  TPSIM_TRY_STATUS(check_options(arguments, file.has_value(), request.goal.has_value()));
  const bool chooses_size = request.goal && !file;
  if (chooses_size && arguments.has("--gpus")) {
    TPSIM_TRY(request.gpus, gpu_counts(arguments));
  }
  if (chooses_size) {
    TPSIM_TRY(request.search, sizes_request(arguments));
  } else if (arguments.has("--gpus")) {
    TPSIM_TRY(request.search, search_request(arguments));
  } else {
    TPSIM_TRY(request.settings, single_settings(arguments));
  }
  TPSIM_TRY(request.lost_nodes, integer_of(arguments, "--lost-nodes", 0, {0, 1 << 20}));
  TPSIM_TRY(request.risk, accepted_risk(arguments));
  return request;
}

}  // namespace tpsim::cli
