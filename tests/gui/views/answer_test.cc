// The answer in sentences, and layouts grouped in the table.
#include "gui/views/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "campaigns/campaign.h"
#include "core/base/numbers.h"
#include "gui/views/choice.h"
#include "gui/views/plan_table.h"
#include "gui/views/saved_view.h"
#include "gui/views/search_job.h"
#include "tests/gui/gui_fixture.h"

namespace tpsim::gui {
namespace {

Catalogue catalogue() { return Catalogue(std::string(TPSIM_SOURCE_DIR) + "/data"); }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("every plan is a variant of one layout, and the best variant stands for it") {
  GuiFixture gui;
  REQUIRE(gui.run("wait") == "");
  const std::vector<PlannedRun>& plans = gui.views().found.plans;
  const std::vector<LayoutGroup> groups = layout_groups(plans, TableState());
  REQUIRE(groups.size() > 3);
  std::vector<int> seen(plans.size());
  for (const LayoutGroup& group : groups) {
    for (const std::size_t i : group.variants) {
      ++seen[i];
      CHECK(plans[i].plan.degrees == group.key);
      CHECK(plans[group.best].predicted.step <= plans[i].predicted.step);
    }
  }
  CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<std::ptrdiff_t>(plans.size()));
  for (std::size_t i = 1; i < groups.size(); ++i) CHECK(groups[i].key != groups[i - 1].key);
  CHECK(groups.front().best == 0);
}

TEST_CASE("limits of a search hold in the window and in saved views") {
  AppState state;
  Choice& choice = state.choice;
  choice.model = "bloom-7b1";
  choice.gpus = 16;
  choice.global_batch = 64;
  choice.limits.asked[Setting::kTp] = {2, 4};
  choice.limits.asked[Setting::kRecompute] = {static_cast<std::int64_t>(Recompute::kFull)};
  choice.limits.excluded = {{Setting::kZero, 1}};
  choice.limits.uneven_ends = 0;
  choice.limits.memory_limit = Bytes(60e9);
  choice.limits.oom_risk = 0.01;
  choice.ignores_stack_limits = true;
  AppState read;
  REQUIRE(read_view(view_to_json(state, std::nullopt), "view.json", read).ok());
  CHECK(read.choice == choice);
  const auto loaded = load_choice(catalogue(), choice);
  REQUIRE(loaded.ok());
  const auto scenario = std::make_shared<const Scenario>(loaded->scenario);
  const Findings found = found_by(SearchJob(choice, scenario));
  REQUIRE_FALSE(found.plans.empty());
  for (const PlannedRun& run : found.plans) {
    CHECK((run.plan.degrees.tp == 2 || run.plan.degrees.tp == 4));
    CHECK(run.plan.recompute == Recompute::kFull);
    CHECK(run.plan.zero != 1);
    CHECK(run.predicted.peak <= choice.limits.memory_limit);
  }
}

TEST_CASE("a view without a plan keeps an opened model") {
  AppState state;
  ModelSpec model = *catalogue().load_model("bloom-560m");
  model.name = "mine";
  model.seq = 1024;
  state.choice.opened_model = std::make_shared<const ModelSpec>(model);
  AppState read;
  REQUIRE(read_view(view_to_json(state, std::nullopt), "view.json", read).ok());
  REQUIRE(read.choice.opened_model);
  CHECK(*read.choice.opened_model == model);
}

TEST_CASE("a click on the count shows the variants of a layout, and hides them again") {
  GuiFixture gui;
  REQUIRE(gui.run("wait") == "");
  const auto groups = layout_groups(gui.views().found.plans, TableState());
  REQUIRE(groups.front().variants.size() > 1);
  const std::string variant = fmt::format("\"plan {}\"", groups.front().variants[1] + 1);
  CHECK(gui.run("click " + variant) != "");
  REQUIRE(gui.run("click \"variants 1\"\nclick " + variant) == "");
  CHECK(gui.views().a->plan == gui.views().found.plans[groups.front().variants[1]].plan);
  CHECK(gui.run("click \"variants 1\"\nclick " + variant) != "");
}

TEST_CASE("the answer has the numbers of the prediction and of the campaign") {
  GuiFixture gui;
  REQUIRE(gui.run("wait") == "");
  const PlanView& view = *gui.views().a;
  const Prediction& p = view.predicted;
  const Answer answer = answer_of(gui.views());
  const TimeScale scale = time_scale(p.step);
  CHECK(answer.use.starts_with("Use " + degrees_text(view.plan)));
  for (const std::string& part :
       {scaled_text(p.step, scale) + " " + scale.unit + " a step",
        fmt::format("90 %: {} to {}", scaled_text(p.step_low, scale),
                    scaled_text(p.step_high, scale)),
        "MFU " + percent_text(p.mfu), gib_text(p.peak) + " of " + gib_text(p.capacity) + " GiB",
        "P(OOM) " + chance_text(p.p_oom)}) {
    INFO(part << " in " << answer.use);
    CHECK(contains(answer.use, part));
  }
  CampaignRequest request;
  request.tokens = 1e12;
  const auto assumptions = load_assumptions(catalogue(), "jean-zay-a100");
  REQUIRE(assumptions.ok());
  const auto campaign = plan_campaign(*view.scenario, view.plan, request, *assumptions);
  REQUIRE(campaign.ok());
  const double days = campaign->time.wall().value() / 86'400;
  CHECK(contains(answer.cost, fmt::format("1 T tokens: {:.{}f} days, ", days, days < 100 ? 1 : 0)));
  CHECK(contains(answer.cost, counted_text(campaign->spare_nodes, "spare node")));
  const RunCost& cost = view.cost;
  CHECK(cost.usd == campaign->cost.usd);
  // The interval is as wide as that of the time, and so at most as wide as the step's.
  CHECK(cost.usd_low < cost.usd);
  CHECK(cost.usd_high > cost.usd);
  CHECK(cost.usd_high / cost.usd < 1.001 * (p.step_high / p.step));
  CHECK(contains(answer.cost, "2 USD/h a GPU, judgement: "));
}

TEST_CASE("the answer names what is assumed, other layouts, and the cost of not taking the best") {
  GuiFixture gui;
  REQUIRE(gui.run("wait") == "");
  Answer answer = answer_of(gui.views());
  CHECK(answer.assumed.starts_with("Software assumed: "));
  CHECK(contains(answer.assumed, " (upper end +"));
  const auto groups = layout_groups(gui.views().found.plans, TableState());
  const PlannedRun& second = gui.views().found.plans[groups[1].best];
  CHECK(contains(answer.others, degrees_text(second.plan)));
  CHECK(contains(answer.others,
                 loss_text(second.predicted.step, gui.views().found.plans.front().predicted.step)));
  REQUIRE(gui.run("click \"layout 3\"\nwait") == "");
  answer = answer_of(gui.views());
  CHECK(answer.use.starts_with("Plan A: "));
  CHECK(contains(answer.others, "Not the best plan: +"));
}

TEST_CASE("a plan that does not fit is not called the best") {
  AppState state = small_state();
  state.choice.model = "gpt-1t";
  state.choice.gpus = 8;
  GuiFixture gui(state);
  REQUIRE(gui.run("wait\nexpect plans 0") == "");
  CHECK(answer_of(gui.views()).use.starts_with("Does not fit:"));
}

TEST_CASE("the sequence length is shown, changes the prediction, and stays with the view") {
  GuiFixture gui;
  REQUIRE(gui.run("wait\nexpect seq 2048") == "");
  const Seconds before = gui.views().a->predicted.step;
  REQUIRE(gui.run("double-click \"sequence length\"\npress Ctrl+A\ntype 4096\npress Enter\nwait\n"
                  "expect seq 4096\nexpect error no") == "");
  CHECK(gui.views().a->predicted.step > before);
  REQUIRE(gui.run("click model\nclick bloom-3b\nwait\nexpect seq 2048") == "");
}

}  // namespace tpsim::gui
