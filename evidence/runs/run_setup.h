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

// Overrides of the environment's choice by the user; empty: none.
struct RunOverrides {
  std::string cluster, stack, profile;
  double node_gbps = 0;  // 0: none
};

struct RunSetup {
  Scenario scenario;
  Plan plan;
  PartValues stated_parts;
  PartValues applied_parts;  // stated parts, and parts that follow from the row's settings
  // Assumed values, and limits of the stack that the row violates: "network of a100-4x100g",
  // "tensor parallel, which torchtitan has not".
  std::vector<std::string> assumed;
};

// Converts rows. Loads each cluster, stack and profile once.
class RunLoader {
 public:
  RunLoader(Catalogue catalogue, std::vector<RunEnvironment> environments, RunOverrides overrides);

  // Adds derived values: sizes of the named model, parallel degrees that the GPUs determine, and
  // the environment's vocab size.
  PublishedRun completed(const PublishedRun& run);
  // Error if a cluster or stack of the catalogue cannot be read. Without its aliases, rows might
  // match another entry.
  const Status& names_status() const { return names_status_; }
  // Returns the environment of the row; null without a matching entry and without overrides.
  const RunEnvironment* environment(const PublishedRun& run) const;
  // Sets up the completed row. Errors give the reason why it cannot be modelled.
  Result<RunSetup> setup(const PublishedRun& stated);

 private:
  struct Machine {
    ClusterSpec cluster;
    Profile profile;
    StackSpec stack;
  };
  Result<const Machine*> machine(const RunEnvironment& environment, const PublishedRun& run);
  Status learn_names();
  const std::string& stack_called(const PublishedRun& run) const;
  const std::string& cluster_of(const RunEnvironment& environment, const PublishedRun& run);

  Catalogue catalogue_;
  CatalogueModels models_;
  std::vector<RunEnvironment> environments_;
  RunOverrides overrides_;
  RunEnvironment fallback_;
  std::map<std::string, std::unique_ptr<Machine>> machines_;
  KnownNames stacks_called_, clusters_called_;
  std::map<std::string, std::string> profile_of_;  // profile by cluster
  Status names_status_ = Ok{};
};

// Returns the seconds per step: stated, or from tokens per second, or from hardware TFLOP/s
// (Narayanan et al. 2021, eq. 3; full recompute). The error names what is missing.
Result<Seconds> measured_step(const PublishedRun& run);
// Returns the step from model FLOPs as Megatron counts them (half of causal attention). Nothing if
// the row does not state them.
std::optional<Seconds> step_of_model_flops(const PublishedRun& run, const ModelSpec& model);

}  // namespace tpsim
