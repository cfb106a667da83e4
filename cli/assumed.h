// What a prediction takes for granted because nobody said it, and how far it would move the step if
// it were something else of the catalogue.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/inputs.h"
#include "cli/terminal.h"
#include "core/json_value.h"
#include "core/report.h"

namespace tpsim::cli {

// Settings of a single plan that nobody chose; of a search its batch, since it tries all others.
std::set<Setting> settings_left(const Arguments& arguments, bool has_file);

// Half of a 90 % interval is given as a share of the step towards its slow side: 0.22 for "+22 %".
struct OpenChoice {
  std::string what;         // "software", "network"
  std::string taken;        // what stands in: "megatron-lm"
  std::string option;       // that states it: "--stack"
  std::int64_t others = 0;  // of the catalogue that it could be as well
  // Standard deviation of the step's logarithm over them, from what is taken.
  double spread = 0;
  double half_width_if_stated = 0;  // with everything else as open as it is
};

struct Assumed {
  std::vector<OpenChoice> open;  // what would narrow the interval most comes first
  double half_width_all_stated = 0, half_width_all_open = 0;
};

// Software: every stack with a launcher's rules or limits that could run this very plan. Network:
// every cluster with these GPUs and as many of them a node, where the plan has several nodes.
Assumed assumed_of(const NamedScenario& named, const PlannedRun& run);

// "software megatron-lm, network of dgx-a100: -14 to +22 % ..."; empty where nothing is open.
std::string assumed_view(const Terminal& terminal, const NamedScenario& named,
                         const PlannedRun& run);
// Adds it as "assumed" where something is open.
void add_assumed(JsonValue& report, const NamedScenario& named, const PlannedRun& run);

}  // namespace tpsim::cli
