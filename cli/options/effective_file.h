// A saved plan whose names of cluster, profile and stack are overridden by options.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_file.h"

namespace tpsim::cli {

struct EffectiveFile {
  // Names, software parts and network after the options are applied. A name is empty if neither a
  // plan file nor an option states it.
  PlanFile file;
  // Facts of the plan file that an option made invalid: "network of 400 Gb/s a node".
  std::vector<std::string> dropped;
};

// Applies --cluster, --profile, --stack and --node-gbps to a plan file. An option that names the
// same entry, or one with equal contents, has no effect.
//
// A different cluster also replaces the network, and the profile if the GPUs differ. Stack and
// parts are kept. A different stack keeps the parts. Error if the new cluster's profile cannot be
// loaded.
Result<EffectiveFile> effective_file(const Arguments& arguments, const Catalogue& catalogue,
                                     const std::optional<PlanFile>& file);

// Returns the model to use if both --model and a plan file are given. This is the file's model if
// both differ only in sequence length and attention dropout, which have their own options.
ModelSpec model_of_plan_file(const PlanFile& file, ModelSpec named);
// Adds the file's sequence length and attention dropout to `dropped` if --model changed them and
// their own options were not given.
void note_dropped(const Arguments& arguments, const PlanFile& file, const ModelSpec& model,
                  std::vector<std::string>& dropped);

}  // namespace tpsim::cli
