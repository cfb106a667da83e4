// Every setting of a plan reaches all users of the table of settings.
#include "core/plan/plan_settings.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "app/scenario/fit.h"
#include "cli/commands/program.h"
#include "cli/options/inputs.h"
#include "core/scenario/plan_json.h"
#include "gui/views/differences.h"
#include "gui/views/knobs.h"
#include "gui/views/plan_command.h"
#include "gui/views/plan_table.h"
#include "plans/search/enumerate.h"
#include "plans/search/search.h"
#include "tests/cli/typed_answers.h"
#include "tests/sim/small_scenario.h"

namespace tpsim::cli {
namespace {

constexpr std::int64_t kGpus = 16;

// A model with experts and a cluster on which rank orders differ.
Scenario all_round_scenario() {
  Scenario scenario = test::small_scenario(test::small_mixture());
  scenario.cluster.host.memory = Bytes(64 * kGiB);
  DeviceFacts& device = scenario.profile.device;
  device.fp8_peak = device.mxfp8_peak = device.nvfp4_peak = 2 * device.matmul_peak;
  std::vector<std::int64_t>& schedules = scenario.stack.choices.only[Setting::kSchedule];
  for (const FieldWord& word : row_of(Setting::kSchedule).words) schedules.push_back(word.value);
  return scenario;
}

Plan start(const ModelSpec& model) {
  Plan plan = test::plan_of(model, {.tp = 2, .pp = 2, .dp = 4, .ep = 2}, 4);
  plan.sequence_parallel = true;
  plan.recompute = Recompute::kBlocks;
  plan.recompute_blocks = 2;
  REQUIRE(validate(plan, model).ok());
  return plan;
}

// The plan with another value of one setting, and the settings that must change with it.
Plan turned(const Plan& plan, const SettingRow& row, const ModelSpec& model) {
  if (row.setting == Setting::kGlobalBatch) {
    Plan next = plan;
    next.global_batch *= 2;
    return next;
  }
  if (row.setting == Setting::kStageLayers) return gui::with_boundary_moved(plan, 0, 1);
  if (row.setting == Setting::kSequenceParallel) {  // experts with tp > 1 need it
    Plan next = plan;
    next.degrees.tp = 1;
    next.sequence_parallel = false;
    return next;
  }
  if (row.setting == Setting::kFp8ParamGather) {  // FP8 gathers need an FP8 recipe
    Plan next = plan;
    next.precision = Precision::kFp8;
    next.fp8_param_gather = true;
    return next;
  }
  for (const std::int64_t value : gui::values_of(plan, row.setting, model, kGpus)) {
    if (value != row.get(plan)) return gui::turned(plan, row.setting, value, model, kGpus);
  }
  FAIL("no other value of " << row.title);
  return plan;
}

std::vector<Plan> plans_of(const Scenario& scenario, const SearchSpace& space) {
  std::vector<Plan> plans;
  enumerate_plans(scenario, space, [&](const Plan& plan) { plans.push_back(plan); });
  return plans;
}

bool is_shown(const Plan& plan, const std::string& filter) {
  gui::TableState table;
  table.filter = filter;
  return !gui::shown_plans({PlannedRun{plan, {}}}, table).empty();
}

// Filter text for a setting: "tp=4", or the tag of a named value.
std::string filter_word(const Plan& plan, const SettingRow& row) {
  const std::int64_t value = row.get(plan);
  for (const FieldWord& word : row.words) {
    if (word.value == value) return std::string(word.tag);
  }
  return std::string(row.tag) + "=" + std::to_string(value);
}

}  // namespace

TEST_CASE("every setting reads back from a plan file, and another one from another file") {
  const Scenario scenario = all_round_scenario();
  const Plan plan = start(scenario.model);
  for (const SettingRow& row : setting_rows()) {
    INFO(row.title);
    const Plan other = turned(plan, row, scenario.model);
    const PlanFile file{scenario.model, "cluster", "profile", "stack", {}, other};
    CHECK(text_of(plan, row.setting) != text_of(other, row.setting));
    CHECK(to_json(file) !=
          to_json(PlanFile{scenario.model, "cluster", "profile", "stack", {}, plan}));
    const Result<PlanFile> read = parse_plan(to_json(file), "plan.json");
    REQUIRE(read.ok());
    CHECK(read->plan == other);
  }
}

TEST_CASE("the window's command parses back to the plan") {
  const Scenario scenario = all_round_scenario();
  const Plan plan = start(scenario.model);
  for (const SettingRow& row : setting_rows()) {
    INFO(row.title);
    const Plan other = turned(plan, row, scenario.model);
    const PlanFile file{scenario.model, "cluster", "profile", "stack", {}, other};
    std::istringstream words(gui::command_of(file, "--model small-mixture"));
    std::vector<std::string> typed;
    for (std::string word; words >> word;) typed.push_back(word);
    std::vector<const char*> argv;
    for (const std::string& word : typed) argv.push_back(word.c_str());
    const auto parsed = parse_command_line(static_cast<int>(argv.size()), argv.data());
    REQUIRE(parsed.ok());
    const auto& arguments = std::get<Arguments>(*parsed);
    const Result<Plan> read = single_plan(arguments, scenario.model, std::nullopt, {});
    if (!read.ok()) FAIL(to_string(read.error()));
    CHECK(*read == other);
  }
}

TEST_CASE("plans that differ in any setting differ in their description and in their names") {
  const Scenario scenario = all_round_scenario();
  const Plan plan = start(scenario.model);
  for (const SettingRow& row : setting_rows()) {
    const Plan other = turned(plan, row, scenario.model);
    const std::string difference = gui::settings_difference(plan, other);
    INFO(row.title << ": " << difference);
    const bool behind = row.counts_for != nullptr;  // shown with its setting
    const SettingRow& told = behind ? row_of(row.counts_for->setting) : row;
    CHECK(difference.find(std::string(told.title) + " ") != std::string::npos);
    CHECK(difference.find(text_of(other, told.setting)) != std::string::npos);
    if (row.role == SettingRole::kGiven) continue;
    CHECK(short_name(plan) != short_name(other));
    CHECK(short_name(plan) + extras_text(plan) != short_name(other) + extras_text(other));
  }
}

TEST_CASE("every setting has a word by which the window filters plans") {
  const Scenario scenario = all_round_scenario();
  const Plan plan = start(scenario.model);
  std::set<std::string> words;
  for (const SettingRow& row : setting_rows()) {
    if (row.is_list()) continue;
    INFO(row.title);
    const Plan other = turned(plan, row, scenario.model);
    const std::string word = filter_word(other, row);
    CHECK(words.insert(word).second);
    CHECK(gui::unknown_filter_word(word).empty());
    CHECK(is_shown(other, word));
    CHECK_FALSE(is_shown(plan, word));
  }
}

TEST_CASE("a search respects every constraint and every exclusion") {
  const Scenario scenario = all_round_scenario();
  SearchSpace small;
  small.gpus = 8;
  small.global_batch = 16;
  small.uneven_ends = 0;
  small.asked[Setting::kCp] = {1, 2};
  small.asked[Setting::kMicroBatch] = {1, 2};
  small.asked[Setting::kZero] = {0, 1};
  small.asked[Setting::kRecompute] = {static_cast<std::int64_t>(Recompute::kFull)};
  small.asked[Setting::kAttention] = {static_cast<std::int64_t>(AttentionKind::kFlash)};
  for (const SettingRow& row : setting_rows()) {
    if (row.role == SettingRole::kGiven) continue;
    INFO(row.title);
    SearchSpace space = small;
    if (!row.words.empty()) {
      space.asked[row.setting] = {row.words.front().value, row.words.back().value};
    }
    if (row.setting == Setting::kOffload) space.asked[Setting::kZero] = {1, 3};
    if (row.setting == Setting::kFp8ParamGather) {
      space.asked[Setting::kPrecision] = {static_cast<std::int64_t>(Precision::kFp8)};
    }
    if (row.counts_for != nullptr) {
      space = with_setting(space, *row.counts_for);
      space.asked[row.setting] = {1, 2};
    }
    const std::vector<Plan> all = plans_of(scenario, space);
    // A value that some plans have and others do not.
    const auto has = [&](const SettingValue& value) {
      return [&row, value](const Plan& plan) { return setting_of(plan, row.setting) == value; };
    };
    std::optional<SettingValue> value;
    for (const Plan& plan : all) {
      const SettingValue one = setting_of(plan, row.setting);
      const bool counts = row.counts_for == nullptr || one.value > 0;
      if (counts && !std::all_of(all.begin(), all.end(), has(one))) value = one;
    }
    REQUIRE(value);
    const Result<std::vector<SettingValue>> written = parse_settings(to_string(*value));
    REQUIRE(written.ok());
    CHECK(*written == std::vector{*value});

    const std::vector<Plan> held = plans_of(scenario, with_setting(space, *value));
    CHECK_FALSE(held.empty());
    CHECK(std::all_of(held.begin(), held.end(), has(*value)));
    const Result<SearchResult> best = search(scenario, with_setting(space, *value), 1, {});
    REQUIRE(best.ok());
    REQUIRE_FALSE(best->plans.empty());
    CHECK(has(*value)(best->plans.front().plan));
    SearchSpace without = space;
    without.excluded = {*value};
    const std::vector<Plan> others = plans_of(scenario, without);
    CHECK_FALSE(others.empty());
    CHECK(std::none_of(others.begin(), others.end(), has(*value)));
  }
}

TEST_CASE("a stack's choices restrict every setting") {
  Scenario scenario = all_round_scenario();
  const Plan plan = start(scenario.model);
  for (const SettingRow& row : setting_rows()) {
    if (row.role == SettingRole::kGiven) continue;
    INFO(row.title);
    const Plan other = turned(plan, row, scenario.model);
    StackSpec stack;
    StackChoices& choices = stack.choices;
    choices.only[row.setting] = {row.get(plan)};
    choices.only[Setting::kSchedule] = {static_cast<std::int64_t>(plan.schedule)};
    CHECK(violated_limit(stack, scenario.model, plan).reason.empty());
    CHECK_THAT(violated_limit(stack, scenario.model, other).reason,
               Catch::Contains("does not support --"));
    SearchSpace space = space_around(plan);
    space.asked[Setting::kRecomputeBlocks] = {2};
    space.uneven_ends = 0;
    scenario.stack.choices = choices;
    const std::vector<Plan> found = plans_of(scenario, space);
    CHECK(std::all_of(found.begin(), found.end(), [&](const Plan& one) {
      const bool counts_nothing = row.counts_for != nullptr && row.get(one) == 0;
      return row.get(one) == row.get(plan) || counts_nothing;
    }));
  }
}

TEST_CASE("every constraint has a relaxation") {
  const Scenario scenario = all_round_scenario();
  const Plan plan = start(scenario.model);
  for (const SettingRow& row : setting_rows()) {
    if (row.role == SettingRole::kGiven) continue;
    INFO(row.title);
    SearchSpace space = space_around(plan);
    space.asked = {};
    const std::vector<Relaxation> offered =
        relaxations(with_setting(space, setting_of(plan, row.setting)));
    REQUIRE(offered.size() == 1);
    const Setting told = row.counts_for != nullptr ? row.counts_for->setting : row.setting;
    CHECK(offered.front().option == option_of(told));
    CHECK(offered.front().space.asked == space.asked);
  }
}

TEST_CASE("every setting is an option of plan and simulate, and so a keyword of Python") {
  for (const SettingRow& row : setting_rows()) {
    if (row.counts_for != nullptr) continue;
    INFO(row.title);
    const OptionRow& option = row_of(opt_of(row.setting));
    CHECK(option.name == option_of(row.setting));
    CHECK(takes(Command::kSimulate, option.opt));
    CHECK((takes(Command::kPlan, option.opt) || row.is_list()));
    CHECK_FALSE(row.help.empty());
    CHECK_FALSE(row.meaning.empty());
  }
}

}  // namespace tpsim::cli
