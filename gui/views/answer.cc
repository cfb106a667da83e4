#include "gui/views/answer.h"

#include <fmt/format.h>

#include <cmath>

#include "campaigns/campaign.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "gui/views/plan_table.h"
#include "sim/step/order.h"

namespace tpsim::gui {
namespace {

constexpr std::size_t kOtherLayouts = 2;  // shown in addition to the best one without pipeline

std::string plan_text(const Plan& plan) {
  std::string text = fmt::format("{}, ZeRO {}, micro-batch {}, {}", degrees_text(plan), plan.zero,
                                 plan.micro_batch, recompute_text(plan));
  if (plan.virtual_stages > 1) text += fmt::format(", {} chunks a stage", plan.virtual_stages);
  return text;
}

// Formats a number of tokens: "1 T", "300 B".
std::string tokens_text(double tokens) {
  return tokens >= 1e12 ? fmt::format("{:g} T", tokens / 1e12)
                        : fmt::format("{:g} B", tokens / 1e9);
}

// Returns an amount with three digits that are not zero, since its interval is wide.
std::string money_text(double usd) {
  const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(usd)) - 2));
  return count_text(std::llround(std::round(usd / unit) * unit));
}

// Texts of unknown length have a line from the start, so that panels below do not move.
std::string cost_text(const PlanView& view) {
  const RunCost& cost = view.cost;
  if (!fits_in_memory(view.predicted)) return "";
  if (!cost.missing.empty()) return fmt::format("The cost is unknown: {}.", cost.missing);
  if (cost.tokens <= 0) return "Time and cost of a whole run: being predicted.";
  const double days = cost.wall.value() / 86'400;
  return fmt::format("{} tokens: {:.{}f} days, {} USD (90 %: {} to {}) with {}, at {}.",
                     tokens_text(cost.tokens), days, days < 100 ? 1 : 0, money_text(cost.usd),
                     money_text(cost.usd_low), money_text(cost.usd_high),
                     counted_text(cost.spare_nodes, "spare node"), cost.price);
}

// Returns a sentence that compares the plan with the best plan; empty for the best plan.
std::string rank_text(const Views& views, const PlanView& view) {
  const std::vector<PlannedRun>& plans = views.found.plans;
  if (views.is_stale || plans.empty() || plans.front().plan == view.plan) return "";
  const Seconds best = plans.front().predicted.step;
  const Seconds step = view.predicted.step;
  if (step < best) return "";
  return fmt::format("Not the best plan: {}, P(faster than the best) {}. ", loss_text(step, best),
                     chance_text(probability_faster(step, best)));
}

std::string use_text(const Views& views, const PlanView& view) {
  const Prediction& p = view.predicted;
  const bool fits = fits_in_memory(p);
  const TimeScale scale = time_scale(p.step);
  const std::string interval = view.has_interval
                                   ? fmt::format("{} to {} {}", scaled_text(p.step_low, scale),
                                                 scaled_text(p.step_high, scale), scale.unit)
                                   : std::string("…");
  const bool is_best = !views.found.plans.empty() && views.found.plans.front().plan == view.plan;
  return fmt::format("{} {}: {} {} a step (90 %: {}), MFU {}, {} of {} GiB, P(OOM) {}.",
                     !fits     ? "Does not fit:"
                     : is_best ? "Use"
                               : "Plan A:",
                     plan_text(view.plan), scaled_text(p.step, scale), scale.unit, interval,
                     percent_text(p.mfu), gib_text(p.peak), gib_text(p.capacity),
                     chance_text(p.p_oom));
}

std::string share_text(double share) { return fmt::format("+{:.0f} %", 100 * share); }

std::string assumed_text(const Views& views, const PlanView& view) {
  if (!view.has_interval) {
    return views.unstated == Unstated{} ? "" : "Unstated inputs: their effect is being predicted.";
  }
  std::string text;
  for (const OpenChoice& one : view.assumed.open) {
    std::string name(name_of(one.input));
    name.front() = static_cast<char>(name.front() - 'a' + 'A');
    text += fmt::format("{}{} assumed: {} (upper end {} if stated).", text.empty() ? "" : " ", name,
                        one.taken, share_text(one.half_width_if_stated));
  }
  if (text.empty()) return text;
  return text + fmt::format(" Upper end of the interval: {} now, {} if all inputs are stated.",
                            share_text(view.assumed.half_width_all_open),
                            share_text(view.assumed.half_width_all_stated));
}

// Returns sentences about the rank of the plan, the next best layouts and the best layout without
// pipeline.
std::string others_text(const Views& views, const PlanView& view) {
  const std::vector<PlannedRun>& plans = views.found.plans;
  if (views.is_searching && (views.is_stale || plans.empty())) return "Other layouts: searching…";
  if (views.is_stale || plans.empty()) return "";
  const std::vector<LayoutGroup> groups = layout_groups(plans, TableState());
  const Prediction& best = plans.front().predicted;
  std::string text;
  const auto add = [&](const LayoutGroup& group, const char* what) {
    const PlannedRun& run = plans[group.best];
    text += fmt::format("{}{}{} {}, {} GiB, P(faster) {}", text.empty() ? "" : "; ", what,
                        degrees_text(run.plan), loss_text(run.predicted.step, best.step),
                        gib_text(run.predicted.peak),
                        chance_text(probability_faster(run.predicted.step, best.step)));
  };
  bool has_no_pipeline = plans.front().plan.degrees.pp == 1;
  for (std::size_t i = 1; i < groups.size(); ++i) {
    const bool lacks_pipeline = plans[groups[i].best].plan.degrees.pp == 1;
    if (i > kOtherLayouts && (has_no_pipeline || !lacks_pipeline)) continue;
    const bool is_first_without = lacks_pipeline && !has_no_pipeline;
    add(groups[i], is_first_without ? "without pipeline: " : "");
    has_no_pipeline = has_no_pipeline || lacks_pipeline;
  }
  if (!text.empty()) {
    text = "Other layouts: " + text + ".";
  } else if (views.found.is_complete) {
    text = "No other layout fits.";
  }
  return fits_in_memory(view.predicted) ? rank_text(views, view) + text : text;
}

std::string limits_text(const SearchLimits& limits) {
  const SearchLimits open;
  std::vector<std::string> parts;
  for (const SettingRow& row : setting_rows()) {
    const std::vector<std::int64_t>& values = limits.asked[row.setting];
    if (values.empty()) continue;
    parts.push_back(fmt::format("{}={}", row.key, joined_text(values, ",", [&](auto value) {
                                  return text_of(SettingValue{row.setting, value});
                                })));
  }
  for (const SettingValue& value : limits.excluded) parts.push_back("not " + to_string(value));
  if (limits.uneven_ends != open.uneven_ends) {
    parts.push_back(fmt::format("end stages up to {} layers shorter", limits.uneven_ends));
  }
  if (limits.memory_limit > Bytes()) {
    parts.push_back("at most " + to_string(limits.memory_limit) + " per GPU");
  }
  if (limits.oom_risk != open.oom_risk) {
    parts.push_back("p(OOM) up to " + percent_text(limits.oom_risk));
  }
  return parts.empty() ? "" : fmt::format("Searched only: {}.", fmt::join(parts, ", "));
}

std::string setup_text(const Views& views, const PlanView& view) {
  const Plan& plan = view.plan;
  std::string numbers = text_of(plan, Setting::kDtype);
  if (plan.precision != Precision::kNone)
    numbers += ", precision " + text_of(plan, Setting::kPrecision);
  if (plan.gradient_dtype != plan.dtype) {
    numbers += ", gradients " + text_of(plan, Setting::kGradientDtype);
  }
  std::string text = fmt::format("Sequence length {}, global batch {}, {}; software {}",
                                 count_text(view.scenario->model.seq),
                                 count_text(plan.global_batch), numbers, views.names.stack);
  if (!views.names.parts.empty()) text += " with " + to_string(views.names.parts);
  if (view.predicted.host_memory > Bytes()) {
    text +=
        fmt::format("; {} of {} GiB host memory per node for offloaded state",
                    gib_text(view.predicted.host_memory), gib_text(view.predicted.host_capacity));
  }
  return text + ".";
}

Result<RunCost> predicted_cost(const Catalogue& catalogue, const std::string& cluster,
                               const Scenario& scenario, const PlannedRun& run, double tokens) {
  TPSIM_TRY(
      const Assumptions assumptions,
      load_assumptions(catalogue, assumptions_name_of(catalogue, cluster, scenario.profile.name)));
  CampaignRequest request;
  request.tokens = tokens;
  request.widen = [&](PlannedRun& predicted) { predicted = run; };
  TPSIM_TRY(const Campaign campaign, plan_campaign(scenario, run.plan, request, assumptions));
  RunCost cost;
  cost.tokens = tokens;
  cost.wall = campaign.time.wall();
  cost.usd = campaign.cost.usd;
  cost.usd_low = campaign.usd_of(campaign.wall_low);
  cost.usd_high = campaign.usd_of(campaign.wall_high);
  cost.spare_nodes = campaign.spare_nodes;
  const auto& price = assumptions.values[static_cast<std::size_t>(Assumption::kPrice)];
  cost.price = assumption_text(row_of(Assumption::kPrice), price.value) + " a GPU, " + price.source;
  return cost;
}

}  // namespace

RunCost run_cost(const Catalogue& catalogue, const std::string& cluster, const Scenario& scenario,
                 const PlannedRun& run, double tokens) {
  Result<RunCost> cost = predicted_cost(catalogue, cluster, scenario, run, tokens);
  if (cost.ok()) return std::move(cost).value();
  RunCost none;
  none.missing = cost.error().message;
  return none;
}

Answer answer_of(const Views& views) {
  Answer answer;
  if (!views.a || views.a->error) return answer;
  answer.use = use_text(views, *views.a);
  answer.cost = cost_text(*views.a);
  answer.setup = setup_text(views, *views.a);
  answer.limits = limits_text(views.found.choice.limits);
  answer.assumed = assumed_text(views, *views.a);
  answer.others = others_text(views, *views.a);
  return answer;
}

}  // namespace tpsim::gui
