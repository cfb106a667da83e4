// Texts stay inside their cells, Tab reaches every control, no key is lost, changes can be undone.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "gui/panels/key_queue.h"
#include "tests/gui/gui_fixture.h"
#include "tests/gui/painted_texts.h"

namespace tpsim::gui {
namespace {

// Returns the number of painted texts that contain the part, without spaces.
std::int64_t painted_with(std::string_view part) {
  const std::vector<PaintedText> texts = painted_texts();
  return std::count_if(texts.begin(), texts.end(), [&](const PaintedText& one) {
    return one.text.find(part) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("no panel paints a text that its cell clips, at any size") {
  for (const auto& [width, height] : {std::pair(640, 480), std::pair(800, 600), std::pair(900, 700),
                                      std::pair(1280, 800), std::pair(2560, 1440)}) {
    for (const char* model : {"bloom-7b1", "mixtral-8x7b"}) {
      AppState state = small_state();
      state.choice.model = model;
      if (state.choice.model == "mixtral-8x7b") state.choice.cluster = "dgx-h100";
      state.choice.gpus = 64;
      GuiFixture gui(state, width, height);
      INFO(model << " " << width << "x" << height);
      REQUIRE(gui.run("wait\nexpect plan.runs yes") == "");
      CHECK(cut_texts(painted_texts()) == "");
      if (!gui.host().session().items().contains("layout 2")) continue;  // a low window
      REQUIRE(gui.run("click \"Pin as B\"\nclick \"layout 2\"\nwait") == "");
      CHECK(cut_texts(painted_texts()) == "");
    }
  }
}

TEST_CASE("a narrow table names the columns that it hides") {
  {
    GuiFixture wide(small_state(), 2560, 1440);
    REQUIRE(wide.run("wait") == "");
    CHECK(wide.host().session().items().contains("sort by TFLOP/s"));
  }
  GuiFixture narrow(small_state(), 640, 480);
  REQUIRE(narrow.run("wait") == "");
  const Items& items = narrow.host().session().items();
  CHECK_FALSE(items.contains("sort by TFLOP/s"));
  for (const char* column : {"sort by tp", "sort by pp", "sort by step", "sort by GiB"}) {
    INFO(column);
    CHECK(items.contains(column));
  }
}

TEST_CASE("hidden columns are counted, and named in a tooltip") {
  GuiFixture gui(small_state(), 1280, 800);
  REQUIRE(gui.run("wait") == "");
  REQUIRE_FALSE(gui.host().session().items().contains("sort by TFLOP/s"));
  CHECK(painted_with("columnhidden") + painted_with("columnshidden") == 1);
  REQUIRE(gui.run("move \"count of plans\" 0.5 0.5\nwait 2") == "");
  CHECK(painted_with("TFLOP/s") > 0);
}

TEST_CASE("a model's name that is cut is whole in a tooltip") {
  AppState state = small_state();
  state.choice.model = "qwen3-next-80b-a3b";
  state.choice.cluster = "dgx-h100";
  state.choice.gpus = 8;
  GuiFixture gui(state, 1280, 800);
  REQUIRE(gui.run("wait 2") == "");
  CHECK(painted_with("a3b") == 0);
  REQUIRE(gui.run("move model 0.5 0.5\nwait 2") == "");
  CHECK(painted_with("a3b") == 1);
}

TEST_CASE("a plan outside the axes of the scatter plot has a mark") {
  GuiFixture gui;
  REQUIRE(gui.run("wait") == "");
  CHECK_FALSE(gui.host().session().items().contains("A off the axes"));
  REQUIRE(gui.run("slide \"between nodes\" 0.98\nslide \"tensor parallel\" 0.98\n"
                  "slide micro-batch 0.02\nclick \"recompute=full\"\nwait") == "");
  const PlanView& a = *gui.views().a;
  const double ratio = a.predicted.step / gui.views().found.plans.front().predicted.step;
  CHECK(gui.host().session().items().contains("A off the axes") == (ratio > 6.2));
}

TEST_CASE("Tab goes through every control and comes back, Shift+Tab goes the other way") {
  GuiFixture gui;
  REQUIRE(gui.run("wait") == "");
  std::set<std::string> controls;
  for (const TabStop& stop : gui.host().session().stops()) {
    if (!stop.is_disabled) controls.insert(stop.label);
  }
  for (const char* name : {"model", "GPUs", "sequence length", "Export", "tensor parallel",
                           "recompute=full", "filter plans", "plan 1", "find in timeline"}) {
    INFO(name);
    CHECK(controls.contains(name));
  }
  std::set<std::string> reached;
  const auto has_all = [&] {
    return std::includes(reached.begin(), reached.end(), controls.begin(), controls.end());
  };
  for (int i = 0; i < 500 && !has_all(); ++i) {
    REQUIRE(gui.run("press Tab") == "");
    reached.insert(gui.state().focused);
  }
  for (const std::string& name : controls) {
    INFO(name);
    CHECK(reached.contains(name));
  }
  const std::string here = gui.state().focused;
  REQUIRE(gui.run("press Tab\npress Shift+Tab") == "");
  CHECK(gui.state().focused == here);
}

TEST_CASE("Space presses the control that Tab reached") {
  GuiFixture gui;
  REQUIRE(gui.run("wait\nexpect theme light") == "");
  for (int i = 0; i < 100 && gui.state().focused != "Theme"; ++i) {
    REQUIRE(gui.run("press Tab") == "");
  }
  REQUIRE(gui.run("expect focus Theme\npress Space\nexpect theme dark") == "");
}

TEST_CASE("keys that are pressed and released between two frames are not lost") {
  GuiFixture gui;
  REQUIRE(gui.run("wait") == "");
  constexpr int kControl = 341;
  KeyQueue queue;
  queue.add_key(kControl, true);
  queue.add_key('F', true);
  queue.add_key('F', false);
  queue.add_key(kControl, false);
  for (const char letter : std::string("backward 3")) {
    const int key = std::toupper(static_cast<unsigned char>(letter));
    queue.add_key(key, true);
    queue.add_character(static_cast<unsigned>(letter));
    queue.add_key(key, false);
  }
  for (int i = 0; i < 200 && !queue.is_empty(); ++i) {
    queue.pass_to(ImGui::GetIO());
    gui.host().frame();
  }
  CHECK(queue.is_empty());
  REQUIRE(gui.run("wait 2") == "");
  CHECK(gui.state().timeline.search == "backward 3");
  CHECK(gui.state().timeline.end == 0);
  CHECK_FALSE(gui.state().timeline.shows_critical_path);
}

TEST_CASE("a focused text field needs no frames without input") {
  GuiFixture gui;
  REQUIRE(gui.run("wait\nclick \"find in timeline\"") == "");
  CHECK(ImGui::GetIO().WantTextInput);
  CHECK_FALSE(gui.host().session().is_animated());
}

TEST_CASE("a change marks the other settings that it moved, and can be undone and redone") {
  GuiFixture gui;
  REQUIRE(gui.run("wait\nslide \"tensor parallel\" 0.02\nwait 2") == "");
  const Plan before = gui.views().a->plan;
  REQUIRE(gui.run("slide \"pipeline stages\" 0.98\nwait 2") == "");
  const Plan after = gui.views().a->plan;
  REQUIRE(after.degrees.pp != before.degrees.pp);
  const std::vector<MovedSetting> moved = gui.state().moved;
  const auto is_moved = [&](Setting setting) {
    return std::any_of(moved.begin(), moved.end(),
                       [&](const MovedSetting& one) { return one.setting == setting; });
  };
  CHECK(is_moved(Setting::kDp));
  CHECK_FALSE(is_moved(Setting::kPp));
  CHECK(gui.host().session().items().contains("moved data parallel"));
  REQUIRE(gui.run("click Undo\nwait 2") == "");
  CHECK(gui.views().a->plan == before);
  REQUIRE(gui.run("press Ctrl+Y\nwait 2") == "");
  CHECK(gui.views().a->plan == after);
  REQUIRE(gui.run("press Ctrl+Z\npress Ctrl+Z\nwait 2\nexpect chosen no") == "");
}

TEST_CASE("a message does not block the panel below it, and goes at the next click") {
  GuiFixture gui;
  REQUIRE(gui.run("wait\nclick \"Copy command\"\nwait 2") == "");
  CHECK(is_painted(gui.state().notice));
  const Rect lanes = gui.host().session().items().find("timeline")->second;
  bool is_below = false;
  for (const PaintedText& text : painted_texts()) {
    is_below = is_below || (text.root == "notice" && lanes.holds(text.box.center()));
  }
  CHECK(is_below);  // the message is over the timeline
  REQUIRE(gui.run("wheel timeline 5 0.5 0.9\nexpect timeline.begin > 0\nclick \"Whole step\"") ==
          "");
  CHECK(gui.state().notice.empty());
}

TEST_CASE("the search text of the timeline is matched once, not in every frame") {
  GuiFixture gui;
  REQUIRE(gui.run("wait\nclick \"find in timeline\"\ntype backward\npress Enter\nwait 2") == "");
  const int before = gui.host().session().span_masks().computed();
  REQUIRE(gui.run("wait 30\nwheel timeline 3 0.5 0.5") == "");
  CHECK(gui.host().session().span_masks().computed() == before);
  REQUIRE(gui.run("press Ctrl+F\ntype \" 3\"") == "");
  CHECK(gui.host().session().span_masks().computed() > before);
}

TEST_CASE("a bubble of the timeline has a description") {
  GuiFixture gui;
  REQUIRE(gui.run("wait\nslide \"tensor parallel\" 0.02\nslide \"pipeline stages\" 0.98\nwait 2\n"
                  "expect plan.pp > 2") == "");
  // The last stage waits for the first forward.
  REQUIRE(gui.run("move \"timeline A\" 0.002 0.98\nwait 2") == "");
  const std::string last = std::to_string(gui.views().a->plan.degrees.pp - 1);
  CHECK_THAT(gui.state().timeline.hovered, Catch::StartsWith("Bubble, stage " + last));
  CHECK(is_painted("Bubble, stage " + last));
}

TEST_CASE("only one of search and critical path highlights the timeline") {
  GuiFixture gui;
  REQUIRE(gui.run("wait\nclick \"find in timeline\"\ntype forward\n"
                  "click \"Critical path\"\nexpect timeline.critical yes") == "");
  CHECK(gui.state().timeline.search.empty());
  REQUIRE(gui.run("click \"find in timeline\"\ntype backward\nexpect timeline.critical no") == "");
}

TEST_CASE("Export begins with the launcher of the plan's software") {
  AppState state = small_state();
  state.choice.model = "llama-2-7b";
  state.choice.cluster = "dgx-a100";
  state.choice.gpus = 8;
  state.choice.stack = "nemo";
  GuiFixture gui(state);
  REQUIRE(gui.run("wait\nclick Export") == "");
  CHECK(name_of(gui.views().scenario->stack.launcher) == "nemo");
  CHECK(gui.run("expect plan.runs yes\nexpect export not 0") == "");
}

}  // namespace tpsim::gui
