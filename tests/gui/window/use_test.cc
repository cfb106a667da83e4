// Uses of the program besides choosing plans: comparing plans, inspecting the step, opening files,
// other machines.
#include <unistd.h>

#include <filesystem>

#include "core/base/files.h"
#include "core/scenario/plan_json.h"
#include "gui/panels/actions.h"
#include "gui/views/differences.h"
#include "tests/gui/gui_fixture.h"

namespace tpsim::gui {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("tpsim_use_" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    REQUIRE(write_file_atomically(path_ / name, text).ok());
    return (path_ / name).string();
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::string data_file(const std::string& name) {
  const auto text = read_file(std::string(TPSIM_SOURCE_DIR) + "/data/" + name, 1 << 22);
  REQUIRE(text.ok());
  return *text;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

Rect place_of(GuiFixture& gui, const std::string& label) {
  const Items& items = gui.host().session().items();
  REQUIRE(items.contains(label));
  return items.find(label)->second;
}

PlanFile shown_plan(GuiFixture& gui) {
  const Views& views = gui.views();
  const ScenarioNames& names = views.names;
  return {views.scenario->model, names.cluster, names.profile,  names.stack,
          names.parts,           views.a->plan, names.node_gbps};
}

}  // namespace

TEST_CASE("two plans are shown on one time scale, with their differences") {
  GuiFixture gui;
  REQUIRE(gui.run("wait\nclick \"plan 1\"\nclick \"Pin as B\"\nclick \"layout 4\"\nwait 2") == "");
  const Rect a = place_of(gui, "timeline A"), b = place_of(gui, "timeline B");
  CHECK(a.min.x == b.min.x);
  CHECK(a.max.x == b.max.x);
  CHECK(a.max.y <= b.min.y);

  const PlanView& left = *gui.views().a;
  const PlanView& right = *gui.views().b;
  const auto terms = largest_differences(left.predicted, right.predicted);
  REQUIRE_FALSE(terms.empty());
  CHECK(gui.run("expect difference.term " + terms.front().name) == "");
  double sum = 0;
  for (const TermDifference& term : terms) sum += term.difference().value();
  const double difference = right.predicted.step.value() - left.predicted.step.value();
  CHECK(sum == Approx(difference).margin(1e-9));
  CHECK(settings_difference(left.plan, right.plan).starts_with("A → B: "));
  CHECK(gui.run("wheel timeline 6 0.5 0.2\nexpect timeline.begin > 0\nexpect other.runs yes") ==
        "");
}

TEST_CASE("W, A, S and D zoom and pan the timeline about the pointer") {
  GuiFixture gui;
  const auto span = [&] { return gui.state().timeline.end - gui.state().timeline.begin; };
  REQUIRE(gui.run("wait\nmove timeline 0.5 0.5\npress w 20\nexpect timeline.begin > 0") == "");
  const double near = span(), begin = gui.state().timeline.begin;
  REQUIRE(gui.run("press d 5") == "");
  CHECK(gui.state().timeline.begin > begin);
  CHECK(span() == Approx(near));
  const double right = gui.state().timeline.begin;
  REQUIRE(gui.run("press a 5") == "");
  CHECK(gui.state().timeline.begin < right);
  REQUIRE(gui.run("press s 5") == "");
  CHECK(span() > near);
  CHECK(gui.run("press 0\nexpect timeline.end 0") == "");
}

TEST_CASE("search results in the timeline are counted and scrolled to") {
  GuiFixture gui;
  REQUIRE(gui.run("wait\nslide \"tensor parallel\" 0.02\nslide \"pipeline stages\" 0.5\n"
                  "slide micro-batch 0.02\nexpect plan.pp > 1\n"
                  "press Ctrl+F\ntype \"backward 3\"\npress Enter") == "");
  CHECK(gui.state().timeline.search == "backward 3");
  const double first = gui.state().timeline.found_at;
  CHECK(first > 0);
  CHECK(gui.state().timeline.begin <= first);
  CHECK(gui.state().timeline.end > first);
  REQUIRE(gui.run("press n") == "");
  CHECK(gui.state().timeline.found_at > first);
  REQUIRE(gui.run("press 0\nclick \"find in timeline\"\npress Ctrl+A\ntype nonsense\n"
                  "press Enter\nexpect timeline.end 0") == "");
}

TEST_CASE("the view jumps to the critical path and back") {
  GuiFixture gui;
  REQUIRE(gui.run("wait\nwheel timeline 5\nclick \"Critical path\"\nexpect timeline.critical yes\n"
                  "expect timeline.end 0\npress c\nexpect timeline.critical no") == "");
}

TEST_CASE(
    "the schedule can be interleaved where micro-batches allow it, and not what nemo refuses") {
  AppState state = small_state();
  state.choice.model = "llama-2-7b";
  state.choice.cluster = "dgx-a100";
  state.choice.gpus = 8;
  GuiFixture gui(state);
  REQUIRE(gui.run("wait\nslide \"tensor parallel\" 0.02\nslide \"pipeline stages\" 0.7\n"
                  "slide micro-batch 0.02\nexpect plan.micro_batch 1\n"
                  "click \"schedule=interleaved\"\nexpect plan.schedule interleaved\n"
                  "expect plan.virtual_stages > 1\nexpect plan.runs yes\n"
                  "click \"schedule=gpipe\"\nexpect plan.schedule interleaved\n"
                  "click \"schedule=1f1b\"\nexpect plan.schedule 1f1b\n"
                  "expect plan.virtual_stages 1") == "");
}

TEST_CASE("a cluster with one GPU is planned like any other") {
  const Folder folder;
  AppState state = small_state();
  state.choice.cluster =
      folder.write("one.json", replaced(data_file("clusters/dgx-a100-node.json"),
                                        "\"gpus_per_node\": 8", "\"gpus_per_node\": 1"));
  state.choice.model = "llama-3.2-1b";
  state.choice.gpus = 1;
  GuiFixture gui(state);
  CHECK(gui.run("wait\nexpect error no\nexpect plan.runs yes\nexpect plan.dp 1\n"
                "wheel timeline 3\nmove Plan 0.5 0.5\nclick \"plan 1\"") == "");
  CHECK(gui.run("double-click GPUs\ntype \"2\"\npress Enter\nwait\nexpect plans 0") == "");
  CHECK(gui.views().found.error);
}

TEST_CASE("a model of 1T parameters on 16,384 GPUs is planned and drawn") {
  AppState state = small_state();
  state.choice.model = "gpt-1t";
  state.choice.cluster = "dgx-a100";
  state.choice.gpus = 16384;
  state.choice.global_batch = 3072;
  GuiFixture gui(state);
  CHECK(gui.run("wait 3\nexpect plans > 10\nexpect plan.runs yes\nwheel timeline 8 0.5 0.5\n"
                "expect timeline.begin > 0") == "");
}

TEST_CASE("a broken file is named with its error, and nothing else changes") {
  const Folder folder;
  GuiFixture gui;
  REQUIRE(gui.run("wait\nclick \"layout 2\"") == "");
  const std::string whole = to_json(shown_plan(gui));
  const Plan before = *gui.state().plan;
  const std::vector<std::string> files = {
      folder.write("cut.json", whole.substr(0, whole.size() / 2)),
      folder.write("empty.json", ""),
      folder.write("bytes.json", std::string("\x89PNG\r\n\x1a\n\0\0", 10)),
      folder.write("foreign.json", "{\"format\": \"chrome-trace\"}"),
      folder.write("impossible.json", replaced(whole, "\"tp\": ", "\"tp\": 7")),
      folder.path(),
      folder.path() + "/nowhere.json"};
  for (const std::string& file : files) {
    INFO(file);
    gui.state().view_file = file;
    CHECK(gui.run("click Save\nclick Open\nwait 2\nexpect error no\nexpect plan.runs yes") == "");
    CHECK(gui.state().notice_is_error);
    CHECK(gui.state().notice.find(file) != std::string::npos);
    CHECK(gui.state().plan == before);
  }
}

TEST_CASE("a copied command names the file that holds a user's model") {
  const Folder folder;
  GuiFixture gui;
  REQUIRE(gui.run("wait\nclick \"plan 1\"") == "");
  PlanFile file = shown_plan(gui);
  const std::string known = folder.write("known.json", to_json(file));
  file.model.name = "my-model";
  const std::string own = folder.write("own.json", to_json(file));

  gui.state().view_file = known;
  REQUIRE(gui.run("click Save\nclick Open\nwait\nclick \"Copy command\"") == "");
  CHECK(gui.state().notice.find("--model bloom-7b1 --cluster jean-zay-a100") != std::string::npos);
  gui.state().view_file = own;
  REQUIRE(gui.run("click Save\nclick Open\nwait\nclick \"Copy command\"") == "");
  INFO(gui.state().notice);
  CHECK(gui.state().notice.find("tpsim simulate " + own + " --cluster") != std::string::npos);
}

TEST_CASE("predictions are shown with measurements if there is a report") {
  const Folder folder;
  AppState state = small_state();
  state.measured_file = folder.write(
      "report.json",
      R"({"rows": [{"id": "r1", "measured_step_s": 2.0, "predicted_step_s": 2.1, "low_s": 1.9,
                    "high_s": 2.3},
                   {"id": "r2", "measured_step_s": 4.0, "predicted_step_s": 3.0, "low_s": 2.8,
                    "high_s": 3.2},
                   {"id": "r3", "measured_step_s": null, "predicted_step_s": 3.0, "low_s": 2.8,
                    "high_s": 3.2, "skipped_because": "no time"}],
          "summary_test_rows": {"n": 1, "mape": 5.0, "interval_coverage_90": 1.0},
          "summary_calibration_rows": {"n": 1, "mape": 25.0, "interval_coverage_90": 0.0}})");
  GuiFixture gui(state);
  REQUIRE(gui.run("wait\nclick Measured\nexpect measured 2") == "");
  CHECK(gui.views().measured->skipped == 1);
  CHECK(gui.run("expect measured.rows 1\nexpect measured.error_pct 5.00\n"
                "expect measured.coverage_pct 100.0") == "");
}

}  // namespace tpsim::gui
