// Scripted input on the windowless renderer changes the state like a user's input.
#include <unistd.h>

#include <filesystem>

#include "core/base/files.h"
#include "core/scenario/plan_json.h"
#include "gui/panels/actions.h"
#include "gui/views/answer.h"
#include "gui/views/plan_table.h"
#include "plans/search/usual_batch.h"
#include "sim/step/simulate.h"
#include "tests/gui/gui_fixture.h"

namespace tpsim::gui {
namespace {

namespace fs = std::filesystem;

std::string scratch(const std::string& name) {
  const fs::path folder = fs::temp_directory_path() / ("tpsim_gui_" + std::to_string(getpid()));
  fs::create_directories(folder);
  return (folder / name).string();
}

Plan bloom_plan() {
  Plan plan;
  plan.degrees = {2, 4, 2, 1};
  plan.micro_batch = 2;
  plan.global_batch = 64;
  plan.stage_layers = default_stage_layers(30, 4);
  return plan;
}

}  // namespace

TEST_CASE("the search fills the table and the fastest plan is shown") {
  GuiFixture gui;
  CHECK(
      gui.run("wait\nexpect plans > 10\nexpect front > 1\nexpect chosen no\nexpect searching no") ==
      "");
  REQUIRE(gui.views().a);
  CHECK(gui.views().a->plan == gui.views().found.plans.front().plan);
}

TEST_CASE("a click on a row chooses its plan") {
  GuiFixture gui;
  CHECK(gui.run("wait\nclick \"layout 3\"\nexpect chosen yes") == "");
  const auto groups = layout_groups(gui.views().found.plans, TableState());
  CHECK(gui.views().a->plan == gui.views().found.plans[groups[2].best].plan);
  CHECK(gui.run("click \"Reset to best\"\nexpect chosen no") == "");
}

TEST_CASE("dragging a slider changes the plan and its prediction in the next frame") {
  GuiFixture gui;
  REQUIRE(gui.run("wait\nslide \"tensor parallel\" 0.02\nexpect plan.tp 1") == "");
  const Seconds with_one = gui.views().a->predicted.step;
  REQUIRE(gui.run("slide \"tensor parallel\" 0.98\nexpect plan.tp 16\nexpect plan.dp 1") == "");
  CHECK(gui.views().a->predicted.step != with_one);
  CHECK(gpu_count(gui.views().a->plan) == 16);
}

TEST_CASE("switches change the settings that they name") {
  GuiFixture gui;
  CHECK(gui.run("wait\nclick \"recompute=full\"\nexpect plan.recompute full\n"
                "click \"attention=unfused\"\nexpect plan.attention unfused\n"
                "click \"ZeRO=1\"\nexpect plan.zero 1") == "");
}

TEST_CASE("a slower network makes the same plan slower") {
  GuiFixture gui;
  REQUIRE(gui.run("wait\nclick \"plan 1\"") == "");
  const Seconds before = gui.views().a->predicted.step;
  REQUIRE(gui.run("slide \"between nodes\" 0.02\nexpect inter_node < 0.2\nwait") == "");
  CHECK(gui.views().a->predicted.step > before);
}

TEST_CASE("dragging a stage's boundary moves blocks to the neighbour") {
  AppState state = small_state();
  state.choice.gpus = 8;
  GuiFixture gui(state);
  REQUIRE(gui.run("wait\nslide \"tensor parallel\" 0.02\nslide \"pipeline stages\" 0.98\n"
                  "expect plan.pp 8") == "");
  const auto before = gui.views().a->plan.stage_layers;
  REQUIRE(gui.run("drag \"boundary 3\" 0.5 0.5 3.5 0.5") == "");
  const auto& after = gui.views().a->plan.stage_layers;
  CHECK(after != before);
  CHECK(after[3] + after[4] == before[3] + before[4]);
}

TEST_CASE("a filter keeps the plans for which every word holds") {
  GuiFixture gui;
  REQUIRE(
      gui.run("wait\nclick \"filter plans\"\ntype \"tp=2 flash\"\nexpect filter \"tp=2 flash\"") ==
      "");
  CHECK(gui.run("click \"plan 1\"") != "");  // the fastest plan is filtered out, or has tp 2
}

TEST_CASE("the timeline zooms about the pointer, pans, and goes back to the whole step") {
  GuiFixture gui;
  REQUIRE(gui.run("wait\nwheel timeline 5 0.5 0.5\nexpect timeline.begin > 0") == "");
  const double span = gui.state().timeline.end - gui.state().timeline.begin;
  REQUIRE(gui.run("move timeline 0.5 0.5\npress d 10") == "");
  CHECK(gui.state().timeline.end - gui.state().timeline.begin == Approx(span));
  REQUIRE(gui.run("press w 10") == "");
  CHECK(gui.state().timeline.end - gui.state().timeline.begin < span);
  CHECK(gui.run("click \"Whole step\"\nexpect timeline.end 0\n"
                "click \"Critical path\"\nexpect timeline.critical yes") == "");
}

TEST_CASE("a pinned plan is compared with the shown plan") {
  GuiFixture gui;
  CHECK(gui.run("wait\nclick \"Pin as B\"\nexpect pinned yes\nclick \"layout 3\"\n"
                "expect other.runs yes\nclick \"Pin as B\"\nexpect pinned no") == "");
}

TEST_CASE("another model or number of GPUs starts a new search") {
  GuiFixture gui;
  CHECK(
      gui.run("wait\nclick \"layout 2\"\nclick model\nclick bloom-3b\nwait\nexpect model bloom-3b\n"
              "expect chosen no\nexpect plan.runs yes") == "");
  CHECK(
      gui.run("double-click GPUs\ntype \"8\"\npress Enter\nwait\nexpect gpus 8\nexpect error no") ==
      "");
}

TEST_CASE("another model sets the batch that tpsim plan assumes for it") {
  AppState state = small_state();
  state.choice.global_batch = 48;
  GuiFixture gui(state);
  REQUIRE(gui.run("wait 2\nexpect global_batch 48") == "");
  REQUIRE(gui.run("click model\nclick bloom-3b\nwait 2\nexpect global_batch not 48") == "");
  CHECK(gui.views().global_batch == searched_global_batch(gui.views().scenario->model, 16));
}

TEST_CASE("assumed software is named, and widens the interval once it is priced") {
  AppState state = small_state();
  state.plan = bloom_plan();
  GuiFixture gui(state);
  REQUIRE(gui.run("wait\nexpect software \"megatron-deepspeed-bloom, assumed\"") == "");
  CHECK(gui.views().a->assumed.open.size() == 2);  // plus the network of the cluster
  const Prediction narrow = simulate(*gui.views().scenario, gui.views().a->plan).value();
  CHECK(gui.views().a->predicted.step_low < narrow.step_low);
  CHECK(gui.views().a->predicted.step_high >= narrow.step_high);
  REQUIRE(gui.run("click cluster\nclick jean-zay-a100\nwait") == "");
  gui.state().plan = bloom_plan();
  REQUIRE(gui.run("wait") == "");
  CHECK(gui.views().a->assumed.open.size() == 1);  // a selected cluster counts as stated
}

TEST_CASE("a plan that was opened is shown before the search begins") {
  AppState state = small_state();
  state.plan = bloom_plan();
  GuiFixture gui(state);
  gui.host().frame();
  REQUIRE(gui.views().a);
  CHECK(gui.views().a->plan == *state.plan);
  CHECK(gui.views().is_searching);
  CHECK(gui.views().found.considered == 0);
}

TEST_CASE("panels keep their places while the answer of the best plan completes") {
  AppState state = small_state();
  {
    GuiFixture searched;
    REQUIRE(searched.run("wait") == "");
    state.plan = searched.views().found.plans.front().plan;
  }
  GuiFixture gui(state);
  gui.host().frame();
  CHECK(answer_of(gui.views()).cost == "Time and cost of a whole run: being predicted.");
  const float before = gui.host().session().items().at("headline").max.y;
  REQUIRE(gui.run("wait") == "");
  CHECK(answer_of(gui.views()).cost.starts_with("1 T tokens: "));
  CHECK(gui.host().session().items().at("headline").max.y == before);
}

TEST_CASE("errors of a search are shown in the panel") {
  SECTION("too many GPUs for the cluster") {
    AppState state = small_state();
    state.choice.gpus = 1 << 20;
    GuiFixture gui(state);
    REQUIRE(gui.run("wait\nexpect plans 0") == "");
    CHECK(gui.views().found.error);
  }
  SECTION("a model that does not fit") {
    AppState state = small_state();
    state.choice.model = "gpt-1t";
    state.choice.gpus = 8;
    GuiFixture gui(state);
    CHECK(gui.run("wait\nexpect plans 0") == "");
  }
  SECTION("one GPU") {
    AppState state = small_state();
    state.choice.model = "bloom-560m";
    state.choice.gpus = 1;
    GuiFixture gui(state);
    CHECK(gui.run("wait\nexpect plan.tp 1\nexpect plan.runs yes\nwheel timeline 3") == "");
  }
  SECTION("a cluster that is not there") {
    AppState state = small_state();
    state.choice.cluster = "nowhere";
    GuiFixture gui(state);
    CHECK(gui.run("wait\nexpect error yes") == "");
  }
}

TEST_CASE("a saved view opens unchanged; another file changes nothing") {
  GuiFixture gui;
  gui.state().view_file = scratch("view.json");
  REQUIRE(gui.run("wait\nclick \"layout 2\"\nclick \"Pin as B\"\nclick \"layout 3\"\n"
                  "wheel timeline 3\ntheme dark\nclick Save\nclick \"Save view\"") == "");
  CHECK_FALSE(gui.state().notice_is_error);
  const Plan chosen = *gui.state().plan, pinned = *gui.state().pinned;
  const double begin = gui.state().timeline.begin;

  AppState other = small_state();
  other.view_file = gui.state().view_file;
  REQUIRE(read_file(other.view_file, 1 << 20).ok());
  Status opened = open_file(other.view_file, other);
  REQUIRE(opened.ok());
  CHECK(other.plan == chosen);
  CHECK(other.pinned == pinned);
  CHECK(other.theme == Theme::kDark);
  CHECK(other.timeline.begin == Approx(begin));

  const AppState before = other;
  CHECK_FALSE(open_file(std::string(TPSIM_SOURCE_DIR) + "/data/models/bloom-3b.json", other).ok());
  CHECK_FALSE(open_file(std::string(TPSIM_SOURCE_DIR) + "/LICENSE", other).ok());
  CHECK(other.plan == before.plan);
  CHECK(other.choice == before.choice);
}

TEST_CASE("a plan that the window saves has checksums of the files that it names") {
  GuiFixture gui;
  gui.state().view_file = scratch("plan.json");
  REQUIRE(gui.run("wait\nclick Save\nclick \"Save plan\"") == "");
  INFO(gui.state().notice);
  CHECK_FALSE(gui.state().notice_is_error);
  const PlanFile saved = read_plan(gui.state().view_file).value();
  CHECK(saved.contents.stack.starts_with("fnv1a:"));
  CHECK(saved.contents.profile.starts_with("fnv1a:"));
  CHECK(saved.contents.cluster.starts_with("fnv1a:"));
}

TEST_CASE("plans are exported and copied from the window") {
  AppState state = small_state();
  state.choice.model = "llama-2-7b";
  state.choice.cluster = "dgx-a100";
  GuiFixture gui(state);
  gui.state().export_folder = scratch("launch");
  REQUIRE(gui.run("wait\nclick Export\nclick \"Write files\"") == "");
  INFO(gui.state().notice);
  CHECK(gui.state().notice.find("Wrote") == 0);
  CHECK(fs::exists(gui.state().export_folder));
  REQUIRE(gui.run("click \"Copy command\"") == "");
  CHECK(gui.state().notice.find("tpsim simulate --model llama-2-7b") != std::string::npos);
}

TEST_CASE("a script error has the line and the nearest valid word") {
  GuiFixture gui;
  CHECK(gui.run("wait\nclik model").find("click") != std::string::npos);
  CHECK(gui.run("wait\nclick clustre").find("cluster") != std::string::npos);
  CHECK(gui.run("wait\nexpect plan.tpp 1").find("plan.tp") != std::string::npos);
  CHECK(gui.run("\n\nexpect plans 0").find("script:3") != std::string::npos);
}

}  // namespace tpsim::gui
