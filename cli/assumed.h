// What a prediction takes for granted because nobody said it, and how far it would move the step if
// it were something else of the catalogue.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "core/json_value.h"
#include "core/plan_settings.h"
#include "core/report.h"

namespace tpsim::cli {

class Arguments;
struct NamedScenario;

// Settings of a single plan that nobody chose; of a search its batch, since it tries all others.
std::set<Setting> settings_left(const Arguments& arguments, bool has_file);

// Half of a 90 % interval is given as a share of the step towards its slow side: 0.22 for "+22 %".
struct OpenChoice {
  std::string what;         // "software", "network"
  std::string taken;        // what stands in: "megatron-lm"
  std::string option;       // that states it: "--stack"
  std::int64_t others = 0;  // of the catalogue that it could be as well
  // Standard deviations of the step's logarithm over them, from what is taken, to each side.
  double slower = 0, faster = 0;
  double half_width_if_stated = 0;  // with everything else as open as it is
};

struct Assumed {
  std::vector<OpenChoice> open;  // what would narrow the interval most comes first
  double half_width_all_stated = 0, half_width_all_open = 0;
};

// Widens the intervals of plans by what nobody stated, and notes it in `named`: judged by the first
// plan, since it moves all alike. Software: every stack with a launcher's rules or limits that
// could run this very plan. Network: every cluster with these GPUs and as many of them a node,
// where the plan has several nodes. Fails where one of them cannot be read.
Status widen_intervals(NamedScenario& named, std::span<PlannedRun> runs);

// Likewise the interval of another plan by the same.
void widen_interval(Prediction& prediction, const Assumed& assumed);

// "software megatron-lm, network of dgx-a100; state the software (--stack): +14 % instead of
// +22 %"; empty where nothing is open.
std::string assumed_view(const Terminal& terminal, const Assumed& assumed);
// Adds it as "assumed" where something is open.
void add_assumed(JsonValue& report, const Assumed& assumed);

}  // namespace tpsim::cli
