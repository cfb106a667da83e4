// From a row of a run table to what the simulator predicts: a scenario and a plan.
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

// What the user wants instead of the environment's choice; empty: nothing.
struct RunOverrides {
  std::string cluster, stack, profile;
  double node_gbps = 0;  // 0: nothing
};

struct RunSetup {
  Scenario scenario;
  Plan plan;
  PartValues stated_parts;
  PartValues applied_parts;  // these, and what follows from the row's settings
  // What the row does not say and was taken from somewhere, and limits of the stack that it breaks:
  // "network of a100-4x100g", "tensor parallel, which torchtitan has not".
  std::vector<std::string> assumed;
};

// Sets rows up, loading each cluster, stack and profile once.
class RunLoader {
 public:
  RunLoader(Catalogue catalogue, std::vector<RunEnvironment> environments, RunOverrides overrides);

  // The row with what follows from what it states: sizes of the model that it names, and of tensor,
  // pipeline and data parallelism what is left of its GPUs; then the vocabulary of its environment.
  PublishedRun completed(const PublishedRun& run);
  // Fails where a cluster or stack of the catalogue cannot be read: rows that mean it by a name of
  // its own would be taken for something else.
  const Status& names_status() const { return names_status_; }
  // The entry that applies to the row; null when none does and nothing was overridden.
  const RunEnvironment* environment(const PublishedRun& run) const;
  // Of the completed row. An error says why it cannot be modelled.
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
  std::map<std::string, std::string> profile_of_;  // clusters' profiles
  Status names_status_ = Ok{};
};

// Seconds per step that the row states: its step, or its tokens per second, or its hardware TFLOPs
// through Narayanan et al. 2021, eq. 3 (full recompute). An error says what is missing.
Result<Seconds> measured_step(const PublishedRun& run);
// Where it states model FLOPs alone, as Megatron counts them (causal attention by half); nothing
// where it states none.
std::optional<Seconds> step_of_model_flops(const PublishedRun& run, const ModelSpec& model);

}  // namespace tpsim
