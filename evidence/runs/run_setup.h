// Converts a row of a run table to the inputs of the simulator: scenario and plan.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/scenario/catalogue.h"
#include "core/scenario/scenario.h"
#include "evidence/runs/known_names.h"
#include "evidence/runs/run_environment.h"
#include "evidence/runs/run_model.h"
#include "evidence/runs/run_plan.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

// Choices of the user that replace those of the environment; empty: no override.
struct RunOverrides {
  std::string cluster, stack, profile;
  double node_gbps = 0;  // Gb/s per node; 0: none
};

struct RunSetup {
  Scenario scenario;
  Plan plan;
  PartValues stated_parts;   // by the row, or by the program that its framework names
  PartValues stack_parts;    // the stack's values of the same parts
  PartValues applied_parts;  // stated_parts, and parts that follow from the row's settings
  // Assumed values, and limits of the stack that the row violates: "network of a100-4x100g",
  // "cannot run ZeRO 3 with a pipeline".
  std::vector<std::string> assumed;
};

// Converts rows of run tables. Loads each cluster, stack and profile once.
class RunLoader {
 public:
  RunLoader(Catalogue catalogue, std::vector<RunEnvironment> environments, RunOverrides overrides);

  // Returns the row with derived values: sizes of the named model, parallel degrees that follow
  // from the number of GPUs, a usual batch, and the environment's vocab size.
  PublishedRun completed(const PublishedRun& run);
  // Returns an error if a cluster or stack of the catalogue cannot be read. Rows must not be
  // converted then, because rows with an alias of this entry could match another entry.
  const Status& names_status() const { return names_status_; }
  // Returns the row's environment. If none matches, returns the cluster override's environment, or
  // null without override.
  const RunEnvironment* environment(const PublishedRun& run) const;
  // Completes the row and converts it. Errors give the reason why it cannot be modelled.
  Result<RunSetup> setup(const PublishedRun& stated);

 private:
  struct Machine {
    ClusterSpec cluster;
    Profile profile;
    StackSpec stack;
  };
  Result<const Machine*> machine(const RunEnvironment& environment, const PublishedRun& run);
  Status learn_names();
  const KnownNames::Found& stack_called(const PublishedRun& run) const;
  // Sets the spread of the stack's residuals, wider for programs and machines that it does not
  // describe. `is_known`: the row's program has a stack.
  void set_spread(const PublishedRun& run, const RunEnvironment& where, bool is_known,
                  RunSetup& setup) const;
  Status add_program_parts(const PublishedRun& run, PartValues& parts) const;
  const std::string& cluster_of(const RunEnvironment& environment, const PublishedRun& run);

  Catalogue catalogue_;
  CatalogueModels models_;
  std::vector<RunEnvironment> environments_;
  RunOverrides overrides_;
  RunEnvironment fallback_;
  std::map<std::string, std::unique_ptr<Machine>> machines_;
  KnownNames stacks_called_, clusters_called_;
  std::map<std::string, std::string> profile_of_;  // profile name by cluster name
  Status names_status_ = Ok{};
};

// Returns the seconds per step as stated, or derived from tokens per second, from hardware TFLOP/s
// (Narayanan et al. 2021, eq. 3; only with full recompute), or from model TFLOP/s with Megatron's
// FLOP count (half of causal attention). The error names the missing column.
Result<Seconds> measured_step(const PublishedRun& run, const ModelSpec& model);

}  // namespace tpsim
