// Questions that a user answers in the window, each in at most six interactions.
#include <algorithm>
#include <string>

#include "app/answers/term_texts.h"
#include "core/base/text.h"
#include "gui/views/answer.h"
#include "gui/views/breakdown.h"
#include "gui/views/differences.h"
#include "gui/views/plan_table.h"
#include "tests/gui/gui_fixture.h"
#include "tests/gui/painted_texts.h"

namespace tpsim::gui {
namespace {

// Runs a script whose lines are interactions, and returns how many there are.
int interactions(GuiFixture& gui, const std::string& script) {
  REQUIRE(gui.run("wait") == "");
  REQUIRE(gui.run(script) == "");
  REQUIRE(gui.run("wait") == "");
  return static_cast<int>(std::count(script.begin(), script.end(), '\n'));
}

AppState state_of(const char* model, const char* cluster, std::int64_t gpus) {
  AppState state;
  state.choice.model = model;
  state.choice.cluster = cluster;
  state.choice.gpus = gpus;
  return state;
}

// Searches in which the questions are asked: a dense model and a mixture of experts.
std::vector<AppState> asked() {
  return {small_state(), state_of("llama-3-70b", "dgx-h200", 64),
          state_of("mixtral-8x7b", "dgx-h100", 16)};
}

}  // namespace

TEST_CASE("task: name the best layout that needs no pipeline, and what it costs") {
  for (const AppState& state : asked()) {
    INFO(state.choice.model);
    GuiFixture gui(state);
    const int count = interactions(gui,
                                   "click \"filter plans\"\n"
                                   "type pp=1\n"
                                   "click \"layout 1\"\n");
    CHECK(count <= 6);
    const std::vector<PlannedRun>& plans = gui.views().found.plans;
    const auto best = std::find_if(plans.begin(), plans.end(),
                                   [](const PlannedRun& run) { return run.plan.degrees.pp == 1; });
    REQUIRE(best != plans.end());
    CHECK(gui.views().a->plan == best->plan);
    const Answer answer = answer_of(gui.views());
    if (best == plans.begin()) {
      CHECK(answer.use.starts_with("Use " + degrees_text(best->plan)));
      continue;
    }
    const std::string loss = loss_text(best->predicted.step, plans.front().predicted.step);
    CHECK(answer.others.find("Not the best plan: " + loss) != std::string::npos);
    CHECK(is_painted(loss));
    // The headline names the layout without any interaction.
    CHECK(answer.others.find("without pipeline: " + degrees_text(best->plan)) != std::string::npos);
  }
}

TEST_CASE("task: find the largest exposed communication and its link") {
  for (const AppState& state : asked()) {
    INFO(state.choice.model);
    GuiFixture gui(state);
    REQUIRE(gui.run("wait") == "");
    const Term* term = largest_communication(gui.views().a->predicted);
    REQUIRE(term != nullptr);
    const std::string name(name_of(term->kind));
    // Its row is on the screen, and the tooltip has the inputs.
    CHECK(interactions(gui, "move \"term " + name + "\"\n") <= 6);
    CHECK(is_painted(plain(name)));
    const PlanView& view = *gui.views().a;
    const std::string inputs =
        app::term_text(*view.scenario, view.plan, view.predicted, view.costs.transfer, term->kind)
            .inputs;
    INFO(inputs);
    CHECK((inputs.find("inside a node") != std::string::npos ||
           inputs.find("nodes") != std::string::npos));
    for (const Term& other : gui.views().a->predicted.breakdown) {
      const bool is_communication = class_of(other.kind) == TermClass::kCommunication;
      CHECK((!is_communication || other.time <= term->time));
    }
    CHECK(gui.run("expect communication.term " + name) == "");
  }
}

TEST_CASE("task: say why a layout is slower") {
  for (const AppState& state : asked()) {
    INFO(state.choice.model);
    GuiFixture gui(state);
    const int count = interactions(gui,
                                   "click \"Pin as B\"\n"
                                   "click \"layout 3\"\n");
    CHECK(count <= 6);
    const auto terms = largest_differences(gui.views().a->predicted, gui.views().b->predicted);
    REQUIRE_FALSE(terms.empty());
    CHECK(is_painted(plain(terms.front().name)));
    CHECK(is_painted("faster"));
  }
}

}  // namespace tpsim::gui
