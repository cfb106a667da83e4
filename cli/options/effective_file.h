// A saved plan with names replaced by options.
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
  // Names, parts and network after the options; all empty without a plan file.
  PlanFile file;
  // Facts of the plan file that an option invalidated: "network of 400 Gb/s a node".
  std::vector<std::string> dropped;
};

// Applies --cluster, --profile, --stack and --node-gbps to the names of a plan file. An option that
// repeats the file, by name or by contents, has no effect.
//
// Another cluster also replaces the network, and the profile if its GPUs differ. Software and parts
// are kept. Another stack keeps the parts. Fails if another cluster or the profile cannot be read.
Result<EffectiveFile> effective_file(const Arguments& arguments, const Catalogue& catalogue,
                                     const std::optional<PlanFile>& file);

// Returns the model of --model with a plan file. If both differ only in sequence length and
// attention dropout, which have their own options, returns the file's model.
ModelSpec model_of_plan_file(const PlanFile& file, ModelSpec named);
// Adds the file's sequence length and attention dropout to `dropped` if --model replaced them
// without their own options.
void note_dropped(const Arguments& arguments, const PlanFile& file, const ModelSpec& model,
                  std::vector<std::string>& dropped);

}  // namespace tpsim::cli
