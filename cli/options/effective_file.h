// A saved plan with the names that the options put in place of its own.
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
  // Names, parts and network that hold beside the options; all empty without a plan file.
  PlanFile file;
  // Facts of the plan file that an option made void: "network of 400 Gb/s a node".
  std::vector<std::string> dropped;
};

// Applies --cluster, --profile, --stack and --node-gbps to the names of a plan file. An option that
// repeats the file, by name or by contents, changes nothing. Another cluster replaces the cluster,
// its network and, where its GPUs are other ones, the profile; software and parts stay. Another
// stack keeps the parts. Fails if another cluster or the profile cannot be read.
Result<EffectiveFile> effective_file(const Arguments& arguments, const Catalogue& catalogue,
                                     const std::optional<PlanFile>& file);

// The model of --model beside a plan file: the file's own if both differ in the sequence length and
// the dropout alone, which have options of their own.
ModelSpec model_of_plan_file(const PlanFile& file, ModelSpec named);
// Adds the sequence length and the dropout of the file's model to `dropped` if another --model, and
// no option of their own, replaced them.
void note_dropped(const Arguments& arguments, const PlanFile& file, const ModelSpec& model,
                  std::vector<std::string>& dropped);

}  // namespace tpsim::cli
