// The inputs of every prediction, and the loader of scenarios.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/scenario/named_scenario.h"
#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_file.h"
#include "core/software/stack_parts.h"

namespace tpsim::app {

// Defaults from other sources than the cluster, such as a checkpoint that is trained.
struct ScenarioDefaults {
  std::string model;                // path of a config.json; overrides the plan file's model
  std::optional<std::int64_t> seq;  // sequence length of a token file; overrides that of the model
  std::string stack;                // if empty, that of the cluster
};

// Names are catalogue names or paths; an empty name is not stated. Stated values override the plan
// file, which overrides defaults of the cluster.
struct ScenarioRequest {
  std::optional<PlanFile> file = {};
  std::string origin = {};  // path of the plan file, for errors about names in the file
  std::string model = {}, cluster = {}, profile = {}, stack = {};
  std::optional<std::int64_t> seq = {};
  std::optional<double> attention_dropout = {};
  double node_gbps = 0;    // network bandwidth per node in Gb/s; 0: the cluster's
  std::string nodes = {};  // hosts that a scheduler gave: file or list (core/machine/allocation.h)
  // Values of software parts. A search tries each of several values of a part.
  PartLists parts = {};
  std::string expert_counts = {};    // file of token counts per expert, for kCountedLoad
  bool ignore_stack_limits = false;  // allow plans that the stack's launcher refuses
  bool no_limits = false;            // unlimited time and memory of tpsim itself
  // Whether the cluster must be known and its stack must run the model. Otherwise a default cluster
  // is used.
  bool predicts = true;
  // GPUs of the plans; 0: all of the cluster. If several, the assumed stack can shard. Set by the
  // functions that load the scenario of a search or of a plan.
  std::int64_t gpus = 0;
  ScenarioDefaults defaults = {};
};

// Loads the scenario. Names that repeat the plan file have no effect
// (app/scenario/effective_file.h). The cluster this-machine is the machine that the profile
// describes. It is the default if the request names such a profile and no cluster.
Result<NamedScenario> load_scenario(const ScenarioRequest& request);
Result<NamedScenario> load_scenario(const ScenarioRequest& request, const Catalogue& catalogue);

// Returns the error about a stated profile, with a hint if the name lists several.
Error of_one_kind(Error error, const std::string& profile);

// Returns the stated model, else that of the plan file, with the stated sequence length.
Result<ModelSpec> load_model(const ScenarioRequest& request, const Catalogue& catalogue);

// Returns the entries that a saved plan names and whose contents have changed since the plan was
// saved ("profile h100-sxm"). Skips names that the request overrides. Empty if the plan does not
// store hashes.
std::vector<std::string> changed_contents(const ScenarioRequest& request,
                                          const Catalogue& catalogue);

// Returns the scenario of a plan that tpsim itself executes. Training options come from the stack
// in `named`. Memory overheads and host times come from tpsim's own stack.
Result<NamedScenario> executed_here(NamedScenario named);

}  // namespace tpsim::app
