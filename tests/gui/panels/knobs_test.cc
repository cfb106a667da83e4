// Every setting of a plan and every part of the software has a control: possible values change the
// plan, refused values are grey with a reason, and every change can be undone and redone.
#include "gui/views/knobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/views/choice.h"
#include "gui/views/knob_values.h"
#include "sim/step/predict.h"
#include "tests/gui/gui_fixture.h"
#include "tests/gui/painted_texts.h"

namespace tpsim::gui {
namespace {

// A mixture of experts with a pipeline, so that most settings have several values. The search is
// small, because every change of the software starts it again.
AppState mixture_state() {
  AppState state;
  state.choice.model = "mixtral-8x7b";
  state.choice.cluster = "dgx-h100";
  state.choice.cluster_is_assumed = false;
  state.choice.stack = "nemo";
  state.choice.gpus = 64;
  state.choice.global_batch = 256;
  for (const auto& [setting, value] :
       {std::pair(Setting::kTp, 2), std::pair(Setting::kPp, 4), std::pair(Setting::kCp, 1),
        std::pair(Setting::kEp, 2), std::pair(Setting::kMicroBatch, 1)}) {
    state.choice.limits.asked[setting] = {value};
  }
  return state;
}

const KnobValue* other_value(const std::vector<KnobValue>& values, std::int64_t present) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const KnobValue& value) {
    return value.value != present && value.refusal.empty();
  });
  return found == values.end() ? nullptr : &*found;
}

// Selects the value of a setting by the mouse, in segments or on a slider.
std::string turn(const std::vector<KnobValue>& values, const SettingRow& row,
                 const KnobValue& value, GuiFixture& gui) {
  const std::string segment = fmt::format("{}={}", row.title, value.text);
  if (gui.host().session().items().contains(segment)) {
    return gui.run(fmt::format("click \"{}\"\nwait 2", segment));
  }
  std::vector<KnobValue> possible = values;
  std::erase_if(possible, [](const KnobValue& one) { return !one.refusal.empty(); });
  const auto at = std::find_if(possible.begin(), possible.end(),
                               [&](const KnobValue& one) { return one.value == value.value; });
  const auto index = static_cast<double>(at - possible.begin());
  const double share = 0.06 + 0.88 * index / static_cast<double>(possible.size() - 1);
  return gui.run(fmt::format("slide \"{}\" {:.3f}\nwait 2", row.title, share));
}

}  // namespace

TEST_CASE("a value that a knob offers gives a plan that runs, and a refused value has a reason") {
  for (const char* model : {"llama-2-7b", "mixtral-8x7b"}) {
    Choice choice;
    choice.model = model;
    choice.cluster = "dgx-h100";
    choice.stack = "megatron-core";
    const auto loaded = load_choice(Catalogue(std::string(TPSIM_SOURCE_DIR) + "/data"), choice);
    REQUIRE(loaded.ok());
    const Scenario& scenario = loaded->scenario;
    Plan plan;
    plan.degrees = {.tp = 2, .pp = 2, .dp = 16};
    plan.global_batch = 256;
    plan = mended(plan, scenario.model);
    const Status runs = check_plan(scenario, plan);
    if (!runs.ok()) FAIL(to_string(runs.error()));
    int refused = 0;
    for (const SettingRow& row : setting_rows()) {
      if (!has_knob(row)) continue;
      for (const KnobValue& value : setting_values(plan, row, scenario)) {
        INFO(model << ": " << row.title << " " << value.text << " " << value.refusal);
        if (!value.refusal.empty()) {
          ++refused;
          continue;
        }
        if (value.value == row.get(plan)) continue;
        const Plan next = plan_with(plan, row, value.value, scenario);
        CHECK(row.get(next) == value.value);
        CHECK(check_plan(scenario, next).ok());
        CHECK(gpu_count(next) == gpu_count(plan));
      }
    }
    CHECK(refused > 0);
  }
}

TEST_CASE("the knob of every setting changes the plan, and the change is undone and redone") {
  GuiFixture gui(mixture_state());
  REQUIRE(gui.run("wait\nclick \"plan 1\"\nwait 2") == "");
  const Plan start = gui.views().a->plan;
  int turned = 0;
  for (const SettingRow& row : setting_rows()) {
    if (!has_knob(row)) continue;
    const std::vector<KnobValue> values = setting_values(start, row, *gui.views().scenario);
    const KnobValue* const value = other_value(values, row.get(start));
    if (value == nullptr) continue;
    INFO(row.title << " to " << value->text);
    REQUIRE(turn(values, row, *value, gui) == "");
    CHECK(row.get(gui.views().a->plan) == value->value);
    CHECK_FALSE(gui.views().a->error);
    REQUIRE(gui.run("click Undo\nwait 2") == "");
    CHECK(gui.views().a->plan == start);
    REQUIRE(gui.run("click Redo\nwait 2") == "");
    CHECK(row.get(gui.views().a->plan) == value->value);
    REQUIRE(gui.run("press Ctrl+Z\nwait 2") == "");
    CHECK(gui.views().a->plan == start);
    ++turned;
  }
  CHECK(turned > 12);
}

TEST_CASE("a refused value is grey, does nothing, and shows its reason") {
  GuiFixture gui(mixture_state());
  REQUIRE(gui.run("wait\nclick \"plan 1\"\nwait 2\nexpect plan.pp 4") == "");
  const Plan start = gui.views().a->plan;
  int refused = 0;
  for (const SettingRow& row : setting_rows()) {
    if (!has_knob(row)) continue;
    for (const KnobValue& value : setting_values(start, row, *gui.views().scenario)) {
      const std::string segment = fmt::format("{}={}", row.title, value.text);
      if (value.refusal.empty() || !gui.host().session().items().contains(segment)) continue;
      INFO(segment << ": " << value.refusal);
      REQUIRE(gui.run(fmt::format("click \"{}\"\nwait 2", segment)) == "");
      CHECK(gui.views().a->plan == start);
      CHECK(is_painted(value.refusal));
      ++refused;
    }
  }
  CHECK(refused > 1);
}

TEST_CASE("the list of every part changes the software, and the change is undone") {
  GuiFixture gui(mixture_state());
  REQUIRE(gui.run("wait\nclick \"plan 1\"\nclick \"All parts\"\nwait") == "");
  const Plan plan = gui.views().a->plan;
  const PartValues searched = gui.views().names.parts;  // that the search takes
  for (const PartRow& row : part_rows()) {
    INFO(row.title);
    const Scenario& scenario = *gui.views().scenario;
    const std::int64_t present = row.get(scenario.stack);
    const std::vector<KnobValue> values = part_values(row, scenario, plan);
    const KnobValue* const value = other_value(values, present);
    if (value == nullptr) continue;
    REQUIRE(gui.run(fmt::format("click \"{0}\"\nclick \"{0}={1}\"\nwait 2", row.title,
                                value->text)) == "");
    CHECK(row.get(gui.views().scenario->stack) == value->value);
    CHECK(gui.views().names.parts.at(row.part) == value->value);
    REQUIRE(gui.run("click Undo\nwait 2") == "");
    CHECK(row.get(gui.views().scenario->stack) == present);
    CHECK(gui.views().names.parts == searched);
  }
}

TEST_CASE("the stack is chosen in the window, and a stack that cannot run the model is grey") {
  GuiFixture gui(mixture_state());
  REQUIRE(gui.run("wait\nexpect software nemo\nclick stack\nclick \"stack=megatron-core\"\nwait\n"
                  "expect software megatron-core\nexpect plan.runs yes") == "");
  REQUIRE(gui.run("click stack\nclick \"stack=megatron-deepspeed\"\n"
                  "expect software megatron-core") == "");
  CHECK(is_painted("the stack cannot run experts"));
  REQUIRE(gui.run("press Escape\nclick Undo\nwait\nexpect software nemo") == "");
}

TEST_CASE("a stack that cannot run the model leaves the choice of another one") {
  AppState state = mixture_state();
  state.choice.stack = "megatron-deepspeed";
  GuiFixture gui(state);
  REQUIRE(gui.run("wait\nexpect plans 0") == "");
  CHECK(is_painted("the stack cannot run experts"));
  REQUIRE(gui.run("click stack\nclick \"stack=nemo\"\nwait\nexpect plan.runs yes") == "");
}

}  // namespace tpsim::gui
