#include "cli/options/assumed.h"

#include <fmt/format.h>

#include "cli/options/named_scenario.h"
#include "cli/options/options.h"
#include "cli/options/table.h"
#include "cli/options/wrapping.h"
#include "core/scenario/catalogue.h"

namespace tpsim::cli {
namespace {

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// Returns the option with which the user can state the input.
std::string_view option_for(OpenInput input) {
  switch (input) {
    case OpenInput::kSoftware: return row_of(Opt::kStack).name;
    case OpenInput::kNetwork: return row_of(Opt::kNodeGbps).name;
    case OpenInput::kSettings: return row_of(Opt::kSet).name;
  }
  return "";
}

// Returns how the user can state the input. A saved plan must be searched again, because options
// that repeat the plan file have no effect. Settings of launch files are stated with --set at
// import.
std::string remedy_for(OpenInput input, bool is_saved) {
  const std::string option(option_for(input));
  if (input == OpenInput::kSettings) return "by import with " + option + " NAME=null for each";
  return is_saved ? "if planned again with " + option : "with " + option;
}

}  // namespace

std::set<Setting> settings_left(const Arguments& arguments, bool has_file) {
  std::set<Setting> left;
  if (has_file) return left;
  const bool searches = arguments.command == Command::kPlan || arguments.has(Opt::kGpus);
  for (const SettingRow& row : setting_rows()) {
    if (row.kind == SettingKind::kList || arguments.has(opt_of(row.setting))) continue;
    if (!searches || row.setting == Setting::kGlobalBatch) left.insert(row.setting);
  }
  return left;
}

Result<OpenInputs> open_inputs(const NamedScenario& named) {
  const Unstated unstated{named.stack_is_default, named.cluster_is_default, named.settings_assumed};
  if (unstated == Unstated{}) return OpenInputs();
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  const ScenarioNames names{named.scenario.model.name,
                            named.cluster,
                            named.profile,
                            named.stack,
                            named.parts,
                            named.node_gbps};
  return OpenInputs::in(catalogue, named.scenario, names, unstated);
}

Status widen_intervals(NamedScenario& named, std::span<PlannedRun> runs, int threads) {
  TPSIM_TRY(OpenInputs open, open_inputs(named));
  named.assumed = open.widen(runs, threads);
  return Ok{};
}

std::string assumed_view(const Terminal& terminal, const NamedScenario& named) {
  const Assumed& assumed = named.assumed;
  if (assumed.open.empty()) return "";
  std::string what, narrower;
  for (const OpenChoice& one : assumed.open) {
    what +=
        fmt::format("{}{} {}", what.empty() ? "" : ", ", name_of(one.input), printable(one.taken));
    narrower +=
        fmt::format("{}to +{} {}", narrower.empty() ? "" : ", ", percent(one.half_width_if_stated),
                    remedy_for(one.input, named.is_saved));
  }
  const std::string text = fmt::format("{}. The upper end of the interval falls from +{} {}", what,
                                       percent(assumed.half_width_all_open), narrower);
  return "  " + terminal.paint("assumed      ", Ink::kDim) +
         wrapped(text, terminal.room(15, 85), 15) + "\n";
}

void add_assumed(JsonValue& report, const Assumed& assumed) {
  if (assumed.open.empty()) return;
  report.set("assumed",
             json_object({{"half_width_pct_all_stated", 100 * assumed.half_width_all_stated},
                          {"half_width_pct_all_open", 100 * assumed.half_width_all_open},
                          {"open", json_array(assumed.open, [](const OpenChoice& one) {
                             return json_object(
                                 {{"what", name_of(one.input)},
                                  {"taken", one.taken},
                                  {"option", option_for(one.input)},
                                  {"others", one.others},
                                  {"spread_pct", 100 * one.slower},
                                  {"spread_faster_pct", 100 * one.faster},
                                  {"half_width_pct_if_stated", 100 * one.half_width_if_stated}});
                           })}}));
}

}  // namespace tpsim::cli
