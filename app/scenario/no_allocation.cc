// Replaces allocated.cc in the page for browsers, which has no scheduler and stays small.
#include "app/scenario/allocated.h"

namespace tpsim::app {
namespace {

Error unsupported() {
  return bad_input("the page does not read hosts that a scheduler gave", "nodes",
                   "predict the plan with tpsim in a terminal");
}

}  // namespace

Result<std::vector<std::string>> read_nodes(const std::string&) { return unsupported(); }

Status add_allocation(const ScenarioRequest&, const PlanFile& file, NamedScenario&) {
  if (file.nodes.empty()) return Ok{};
  return unsupported();
}

Allocation allocated_ranks(const NamedScenario& named, const Plan&) { return named.allocation; }

}  // namespace tpsim::app
