// The table of settings in launch files agrees with files that are written and read back.
#include "frameworks/launch/held_settings.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "frameworks/launch/launch_files.h"
#include "sim/step/simulate.h"
#include "tests/frameworks/launch/export_bases.h"

namespace tpsim {
namespace {

using test::ExportBase;
using test::Exported;
using test::exported_of;

// Settings and parts under which a value is written or has an effect.
const char* const kWithSettings[] = {"",
                                     "attention=unfused",
                                     "recompute=selective",
                                     "cp=2",
                                     "zero=0",
                                     "zero=0,pp=1,dp=16,recompute=none",
                                     "zero=3,pp=1,dp=8",
                                     "tp=2,dp=8",
                                     "pp=4,dp=4,virtual_stages=2",
                                     "dtype=fp16,gradient_dtype=fp16",
                                     "dtype=bf16,gradient_dtype=bf16"};
constexpr std::int64_t kFused = static_cast<std::int64_t>(KernelFusion::kFused);
constexpr auto kChunked = static_cast<std::int64_t>(LossHead::kChunked);
constexpr auto kNoCopy = static_cast<std::int64_t>(MasterWeights::kNone);
constexpr auto kNarrow = static_cast<std::int64_t>(DType::kBFloat16);
const PartValues kWithParts[] = {
    {},
    {{StackPart::kOverlapGradientReduction, 1}, {StackPart::kCompile, 1}},
    // Liger's kernels
    {{StackPart::kNormKernel, kFused},
     {StackPart::kRotaryKernel, kFused},
     {StackPart::kActivationKernel, kFused},
     {StackPart::kLossHead, kChunked}},
    {{StackPart::kDispatcher, static_cast<std::int64_t>(Dispatcher::kHybridEp)},
     {StackPart::kExpertCapacity, 2000}},
    {{StackPart::kMasterWeights, kNoCopy}, {StackPart::kOptimizerDtype, kNarrow}}};

std::string changed(const SettingRow& row, std::string_view text) {
  std::string settings = std::string(row.key) + "=" + std::string(text);
  const auto add = [&](std::string_view key, std::string_view needs) {
    if (row.key == key) settings += "," + std::string(needs);
  };
  add("ep", "dp=8,etp=1");
  if (text == "on") add("fp8_param_gather", "precision=fp8,dtype=bf16");
  if (text == "fp16") add("dtype", "gradient_dtype=fp16");
  if (text == "fp32") add("dtype", "zero=0");
  if (text == "optimizer") add("offload", "zero=1,dtype=fp16,gradient_dtype=fp16");
  if (text == "parameters") add("offload", "zero=3");
  if (text == "fp16") add("gradient_dtype", "dtype=fp16");
  if (text == "bf16") add("gradient_dtype", "dtype=bf16");
  if (text == "gpipe") add("schedule", "pp=2");
  if (text == "blocks") return "recompute=blocks:2";
  return settings;
}

struct Trial {
  Exported made;
  std::optional<ImportedPlan> back;  // none if export or import refuses
};

void add_trial(const ExportBase& base, const std::string& settings, const PartValues& parts,
               std::vector<Trial>& all) {
  Trial trial{exported_of(base, settings, parts), {}};
  Plan& plan = trial.made.file.plan;
  if (settings.ends_with("schedule=gpipe,pp=2")) plan.schedule = ScheduleKind::kGpipe;
  if (!validate(plan, trial.made.file.model).ok()) return;
  const auto files = export_plan(base.target, trial.made.file, 8, trial.made.own);
  if (files.ok()) {
    auto read = import_plan(base.target, *files, trial.made.file.model);
    if (read.ok()) trial.back = *std::move(read);
  }
  all.push_back(std::move(trial));
}

// Exports and imports plans of the launcher until one is as `enough` demands. Returns all tried.
template <class Enough>
std::vector<Trial> trials(LaunchStack launcher, const std::string& settings,
                          const PartValues& parts, Enough enough) {
  std::vector<Trial> all;
  for (const ExportBase& base : test::export_bases()) {
    if (base.target != launcher) continue;
    for (const std::string with : kWithSettings) {
      for (PartValues with_parts : kWithParts) {
        if (parts.empty() && !with_parts.empty()) continue;
        for (const auto& [part, value] : parts) with_parts[part] = value;
        std::string joined = with;
        if (!with.empty() && !settings.empty()) joined += ',';
        joined += settings;
        add_trial(base, joined, with_parts, all);
        if (!all.empty() && enough(all.back())) return all;
      }
    }
  }
  return all;
}

// True if the stack's own value of the part gives the same prediction.
bool is_idle(const Trial& trial, const PartRow& row) {
  Scenario scenario = trial.made.scenario;
  scenario.stack = without_limits(scenario.stack);
  const auto asked = simulate(scenario, trial.made.file.plan);
  row.set(scenario.stack, row.get(trial.made.own));
  const auto own = simulate(scenario, trial.made.file.plan);
  if (!asked.ok() || !own.ok()) return asked.ok() == own.ok();
  return own->step.value() == Approx(asked->step.value()).epsilon(1e-9) &&
         own->peak.value() == Approx(asked->peak.value()).epsilon(1e-9);
}

std::vector<LaunchStack> launchers() {
  std::vector<LaunchStack> all;
  for (const LaunchStack stack : all_of<LaunchStack>()) {
    if (!is_job(stack)) all.push_back(stack);
  }
  return all;
}

}  // namespace

TEST_CASE("files hold the settings that the table calls written, and no others") {
  for (const LaunchStack launcher : launchers()) {
    for (const SettingRow& row : setting_rows()) {
      if (row.is_list() || row.counts_for != nullptr) continue;
      std::vector<std::string> values;
      for (const FieldWord& word : row.words) values.emplace_back(word.word);
      if (row.setting == Setting::kZero) values = {"0", "1", "2", "3"};
      if (row.setting == Setting::kGlobalBatch) values = {"64"};
      if (values.empty()) values = {row.setting == Setting::kEtp ? "1" : "2"};
      for (const std::string& text : values) {
        CAPTURE(name_of(launcher), row.key, text);
        const SettingValue value{row.setting, parse_value(row, text).value()};
        const auto holds = [&](const Trial& trial) {
          return trial.back && row.get(trial.made.file.plan) == value.value &&
                 row.get(trial.back->plan) == value.value;
        };
        const std::vector<Trial> tried = trials(launcher, changed(row, text), {}, holds);
        const bool is_written = std::any_of(tried.begin(), tried.end(), holds);
        CHECK((held(launcher, value) == Held::kWritten) == is_written);
      }
    }
  }
}

// Checks every n-th pair of a launcher and a part.
void check_parts(int every) {
  int pair = 0;
  for (const LaunchStack launcher : launchers()) {
    for (const PartRow& row : part_rows()) {
      if (++pair % every != 0) continue;
      std::vector<std::int64_t> values;
      for (const FieldWord& word : row.words) {
        // moe_preprocess is legal only together with moe_router.
        const char* text = word.word == "moe_preprocess" ? "moe_router,moe_preprocess" : nullptr;
        values.push_back(text == nullptr ? word.value : parse_value(row, text).value());
      }
      if (row.kind == FieldKind::kWordOrCount) values.push_back(4);
      if (row.kind == FieldKind::kWordOrRatio) values.push_back(1500);
      for (const std::int64_t value : values) {
        CAPTURE(name_of(launcher), row.key, text_of(row, value));
        // The stack's own value needs no option.
        const auto is_own = [&](const Trial& trial) { return row.get(trial.made.own) == value; };
        const auto holds = [&](const Trial& trial) {
          if (!trial.back || is_own(trial)) return false;
          const auto found = trial.back->parts.find(row.part);
          return found != trial.back->parts.end() && found->second == value;
        };
        PartValues stated = {{row.part, value}};
        if (row.part == StackPart::kDelayWgrad) stated[StackPart::kEpOverlap] = 1;  // needed
        std::vector<Trial> tried = trials(launcher, "", stated, holds);
        std::erase_if(tried, is_own);
        if (tried.empty()) continue;
        const Held said = held(launcher, row.part, value);
        const bool is_written = std::any_of(tried.begin(), tried.end(), holds);
        CHECK((said == Held::kWritten) == is_written);
        if (said != Held::kNoEffect) continue;
        for (const Trial& trial : tried) {
          if (trial.back) CHECK(is_idle(trial, row));
        }
      }
    }
  }
}

TEST_CASE("files hold the parts that the table calls written, and no others") { check_parts(9); }

TEST_CASE("files hold every part that the table calls written", "[.nightly]") { check_parts(1); }

TEST_CASE("the behavior of a launcher is stated for each part that its files cannot state") {
  for (const LaunchStack launcher : launchers()) {
    for (const PartRow& row : part_rows()) {
      bool is_refused = false;
      for (const FieldWord& word : row.words) {
        is_refused |= held(launcher, row.part, word.value) == Held::kRefused;
      }
      CAPTURE(name_of(launcher), row.key);
      CHECK((!is_refused || !fixed_behaviour(launcher, row.part).empty()));
    }
  }
}

TEST_CASE("the page has a line for each setting and part") {
  const std::string text = held_settings_text();
  for (const SettingRow& row : setting_rows()) {
    CHECK(text.find("| `" + std::string(row.key) + "` |") != std::string::npos);
  }
  for (const PartRow& row : part_rows()) {
    CHECK(text.find("| `" + std::string(row.key) + "` |") != std::string::npos);
  }
}

}  // namespace tpsim
