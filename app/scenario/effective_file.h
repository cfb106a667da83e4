// A saved plan whose names of cluster, profile and stack are overridden by the request.
#pragma once

#include <string>
#include <vector>

#include "app/scenario/scenario_request.h"
#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_file.h"

namespace tpsim::app {

struct EffectiveFile {
  // Names, software parts and network after the request is applied. A name is empty if neither a
  // plan file nor the request states it.
  PlanFile file;
  // Facts of the plan file that the request made invalid: "network of 400 Gb/s a node".
  std::vector<std::string> dropped;
};

// Applies the stated cluster, profile, stack and network to the plan file. A name of the same
// entry, or of one with equal contents, has no effect.
//
// A different cluster also replaces the network, and the profile if the GPUs differ. Stack and
// parts are kept. A different stack keeps the parts. Error if the new cluster's profile cannot be
// loaded.
Result<EffectiveFile> effective_file(const ScenarioRequest& request, const Catalogue& catalogue);

// Returns the model to use if both a model and a plan file are given. This is the file's model if
// both differ only in sequence length and attention dropout, which are stated separately.
ModelSpec model_of_plan_file(const PlanFile& file, ModelSpec named);
// Adds the file's sequence length and attention dropout to `dropped` if the stated model changed
// them and they were not stated.
void note_dropped(const ScenarioRequest& request, const ModelSpec& model,
                  std::vector<std::string>& dropped);

}  // namespace tpsim::app
