// The window, its page and programs that link tpsim give the same answers as the command line.
#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "cli/commands/program.h"
#include "cli/options/inputs.h"
#include "core/base/files.h"
#include "core/scenario/plan_json.h"
#include "gui/views/choice.h"
#include "gui/views/plan_command.h"
#include "gui/views/saved_view.h"
#include "gui/views/views.h"
#include "plans/questions/open_inputs.h"
#include "sim/step/simulate.h"
#include "tests/cli/golden_plans.h"
#include "tests/cli/typed_answers.h"
#include "tests/temporary_folder.h"

namespace tpsim::cli {
namespace {

// Never searches: the tests show plans that are already chosen.
class NoSearch : public gui::SearchHost {
 public:
  void begin(gui::SearchJob) override {}
  std::optional<gui::SearchNews> news() override { return std::nullopt; }
  bool is_busy() const override { return false; }
  double progress() const override { return 0; }
  void stop() override {}
};

struct Shown {
  Prediction predicted;
  std::string software;  // assumed stack; empty if stated
  std::string command;
};

Shown shown_in_window(const gui::AppState& state) {
  NoSearch host;
  gui::ViewComputer computer(Catalogue::open().value(), host);
  const gui::Views* views = &computer.views(state);
  while (views->is_pricing) views = &computer.views(state);
  if (views->error) FAIL(to_string(*views->error));
  REQUIRE(views->a);
  if (views->a->error) FAIL(to_string(*views->a->error));
  Shown shown;
  shown.predicted = views->a->predicted;
  for (const OpenChoice& one : views->a->assumed.open) {
    if (one.input == OpenInput::kSoftware) shown.software = one.taken;
  }
  const Result<std::string> command = gui::shown_command(computer, state);
  if (!command.ok()) FAIL(to_string(command.error()));
  shown.command = *command;
  return shown;
}

SimulatedPlan typed(const std::string& command) {
  std::istringstream text(command);
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  const auto parsed = parse_command_line(static_cast<int>(argv.size()), argv.data());
  INFO(command);
  REQUIRE(parsed.ok());
  const Arguments& arguments = std::get<Arguments>(*parsed);
  const auto file = read_plan_argument(arguments);
  REQUIRE(file.ok());
  const auto answer = simulate_answer(arguments, *file);
  if (!answer.ok()) FAIL(to_string(answer.error()));
  const Status fits = app::check_fit(accepted_risk(arguments).value(), answer->named, answer->run);
  if (!fits.ok()) FAIL(to_string(fits.error()));
  return *answer;
}

void check_same(const Prediction& a, const Prediction& b) {
  CHECK(a.step == b.step);
  CHECK(a.step_low.value() == Approx(b.step_low.value()).epsilon(1e-12));
  CHECK(a.step_high.value() == Approx(b.step_high.value()).epsilon(1e-12));
  CHECK(a.peak == b.peak);
}

SimulatedPlan simulated(const test::GoldenPlan& golden) {
  const Arguments arguments = test::arguments_of(Command::kSimulate, golden.given);
  const auto answer = simulate_answer(arguments, std::nullopt);
  if (!answer.ok()) FAIL(to_string(answer.error()));
  return *answer;
}

}  // namespace

TEST_CASE("the window shows the step and the interval of a saved plan as the command does") {
  for (const test::GoldenPlan& golden : test::golden_plans()) {
    INFO(golden.what);
    const SimulatedPlan saved = simulated(golden);
    const PlanFile file = plan_file_of(saved.named, saved.run.plan);
    const auto answer = simulate_answer(test::arguments_of(Command::kSimulate, {}), file);
    REQUIRE(answer.ok());
    gui::AppState state;
    gui::show_plan(file, state);
    const Shown shown = shown_in_window(state);
    check_same(shown.predicted, answer->run.predicted);
    check_same(shown.predicted, typed(shown.command).run.predicted);
  }
}

TEST_CASE("unstated inputs widen the interval in the window and in its command") {
  for (const test::GoldenPlan& golden : test::golden_plans()) {
    INFO(golden.what);
    const SimulatedPlan answer = simulated(golden);
    const NamedScenario& named = answer.named;
    if (!named.stack_is_default) continue;
    const PlanFile file = plan_file_of(named, answer.run.plan);
    gui::AppState state;
    gui::show_plan(file, state);
    state.choice.stack.clear();
    const Shown shown = shown_in_window(state);
    CHECK(shown.software == named.stack);
    check_same(shown.predicted, answer.run.predicted);
    check_same(shown.predicted, typed(shown.command).run.predicted);
  }
}

TEST_CASE("the copied command assumes the cluster that the window assumes, and succeeds") {
  const test::GivenOptions bloom = {{Opt("--model"), "bloom-176b"},
                                    {opt_of(Setting::kTp), "4"},
                                    {opt_of(Setting::kGlobalBatch), "96"}};
  for (const auto& [stages, replicas] : {std::pair("12", "8"), std::pair("1", "1")}) {
    test::GivenOptions given = bloom;
    given.emplace_back(opt_of(Setting::kPp), stages);
    given.emplace_back(opt_of(Setting::kDp), replicas);
    const SimulatedPlan answer = simulated({"no cluster stated", given});
    CHECK(answer.named.cluster_is_default);
    const PlanFile file = plan_file_of(answer.named, answer.run.plan);
    gui::AppState saved, chosen;
    gui::show_plan(file, saved);
    chosen.choice.model = "bloom-176b";
    chosen.plan = file.plan;
    for (const gui::AppState& state : {saved, chosen}) {
      const Shown shown = shown_in_window(state);
      INFO(shown.command);
      CHECK(shown.command.find("--cluster") == std::string::npos);
      check_same(shown.predicted, answer.run.predicted);
      check_same(shown.predicted, typed(shown.command).run.predicted);
    }
  }
}

TEST_CASE("a cluster that only a plan file assumes is assumed by the copied command") {
  const SimulatedPlan answer = simulated(test::golden_plans().front());
  PlanFile file = plan_file_of(answer.named, answer.run.plan);
  file.network_assumed = true;  // as in plans that were imported without --cluster
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "plan.json";
  REQUIRE(write_file_atomically(path, to_json(file)).ok());
  gui::AppState state;
  gui::show_plan(file, state);
  state.opened_file = path.string();
  const Shown shown = shown_in_window(state);
  CHECK(shown.predicted.step_high > answer.run.predicted.step_high);
  check_same(shown.predicted, typed(shown.command).run.predicted);
}

TEST_CASE("a network bandwidth changed in the window is in the copied command") {
  const SimulatedPlan saved = simulated(test::golden_plans().front());
  gui::AppState state;
  gui::show_plan(plan_file_of(saved.named, saved.run.plan), state);
  const Prediction before = shown_in_window(state).predicted;
  for (const double factor : {0.25, 2.0}) {
    state.choice.inter_node = factor;
    const Shown shown = shown_in_window(state);
    CHECK((shown.predicted.step > before.step) == (factor < 1));
    CHECK(shown.command.find("--node-gbps") != std::string::npos);
    check_same(shown.predicted, typed(shown.command).run.predicted);
  }
}

namespace {

// An option with a value, and other options that the value requires.
struct Walked {
  Opt opt;
  std::string value;
  test::GivenOptions needs = {};
};

// Every named value of every setting and part, and some numbers.
std::vector<Walked> walked_values() {
  std::vector<Walked> all;
  const auto need = [](Setting setting, const char* value) {
    return test::GivenOptions{{opt_of(setting), value}};
  };
  for (const SettingRow& row : setting_rows()) {
    if (row.counts_for != nullptr) continue;
    const Opt opt = opt_of(row.setting);
    for (const FieldWord& word : row.words) all.push_back({opt, std::string(word.word)});
    if (row.setting == Setting::kRecompute) all.push_back({opt, "blocks:2"});
    if (row.setting == Setting::kStageLayers) all.push_back({opt, "9,7"});
    if (row.setting == Setting::kVirtualStages) all.push_back({opt, "2"});
    if (row.setting == Setting::kFp8ParamGather) {
      all.push_back({opt, "on", need(Setting::kPrecision, "fp8")});
    }
    if (row.words.empty()) {
      for (const char* number : {"1", "2", "3", "8", "64"}) all.push_back({opt, number});
    }
  }
  for (const PartRow& row : part_rows()) {
    const Opt opt = opt_of(row.part);
    for (const FieldWord& word : row.words) {
      // The counts are in a model file, and the command names the model.
      const bool is_counted = row.part == StackPart::kExpertLoad && word.value == kCountedLoad;
      if (!is_counted) all.push_back({opt, std::string(word.word)});
    }
    if (row.kind == FieldKind::kWordOrCount) all.push_back({opt, "4"});
    if (row.kind == FieldKind::kWordOrRatio) all.push_back({opt, "1.3"});
  }
  return all;
}

// Layouts of dense and mixture models: every setting is legal in at least one.
std::vector<test::GivenOptions> places() {
  const auto at = [](const char* model, const char* cluster) {
    return test::GivenOptions{{Opt("--model"), model},
                              {Opt("--cluster"), cluster},
                              {Opt("--stack"), "megatron-core"},
                              {Opt("--ignore-stack-limits"), ""},
                              {Opt("--allow-oom"), ""},
                              {opt_of(Setting::kTp), "2"},
                              {opt_of(Setting::kDp), "4"},
                              {opt_of(Setting::kSequenceParallel), "on"},
                              {opt_of(Setting::kGlobalBatch), "32"}};
  };
  std::vector<test::GivenOptions> all;
  for (const char* cluster : {"dgx-h100", "dgx-b200"}) {
    for (const char* model : {"llama-3.2-1b", "qwen3-30b-a3b", "gpt-1.7b"}) {
      all.push_back(at(model, cluster));
      all.push_back(all.back());
      all.back().emplace_back(opt_of(Setting::kPp), "2");
    }
  }
  return all;
}

}  // namespace

TEST_CASE("the copied command holds every setting and part") {
  std::set<Opt> held;
  const std::vector<test::GivenOptions> all = places();
  for (const Walked& one : walked_values()) {
    for (test::GivenOptions given : all) {
      given.insert(given.end(), one.needs.begin(), one.needs.end());
      given.emplace_back(one.opt, one.value);
      const Arguments arguments = test::arguments_of(Command::kSimulate, given);
      const auto answer = simulate_answer(arguments, std::nullopt);
      if (!answer.ok()) continue;  // the plan is not legal
      CAPTURE(row_of(one.opt).name, one.value);
      const PlanFile file = plan_file_of(answer->named, answer->run.plan);
      const std::string model = "--model " + answer->named.scenario.model.name;
      const SimulatedPlan again =
          typed(gui::command_of(file, model) + " --ignore-stack-limits --allow-oom");
      const PlanFile back = plan_file_of(again.named, again.run.plan);
      CHECK(back.plan == file.plan);
      CHECK(back.parts == file.parts);
      check_same(again.run.predicted, answer->run.predicted);
      held.insert(one.opt);
      break;
    }
  }
  for (const Walked& one : walked_values()) {
    INFO("no plan of the walk takes " << row_of(one.opt).name << ": give it a place or a value");
    CHECK(held.contains(one.opt));
  }
}

TEST_CASE("the window plans the batch that tpsim plan assumes, and changes it with the model") {
  const auto planned = [](const std::string& model) {
    Arguments arguments = test::arguments_of(
        Command::kPlan,
        {{Opt("--model"), model}, {Opt("--cluster"), "dgx-h200"}, {Opt("--gpus"), "512"}});
    const NamedScenario named = load_scenario(arguments, std::nullopt).value();
    return search_space(arguments, named.scenario, std::nullopt)->global_batch;
  };
  const Catalogue catalogue = Catalogue::open().value();
  gui::Choice choice;
  for (const char* model : {"llama-3-70b", "qwen3-8b", "deepseek-v3"}) {
    gui::choose_model(model, choice);
    gui::choose_cluster("dgx-h200", choice);
    choice.gpus = 512;
    const gui::LoadedChoice loaded = gui::load_choice(catalogue, choice).value();
    CHECK(gui::global_batch_of(choice, loaded.scenario.model) == planned(model));
    choice.global_batch = 4096;  // a stated batch stays with the model that was loaded
    CHECK(gui::global_batch_of(choice, loaded.scenario.model) == 4096);
  }
}

}  // namespace tpsim::cli
