// Writes a plan as launch files of a training stack, and imports plans from launch files.
//
// Export fails with a reason if the stack cannot express the plan. Nothing is dropped or
// approximated. Data paths, tokenizer, learning rate and checkpoints are not part of a plan. Import
// checks the stack's own rules. An exported plan is imported unchanged. Import also reads scripts
// with variables and arrays, and arguments printed in a log.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/scenario/plan_file.h"
#include "core/scenario/scenario.h"
#include "core/software/stack_spec.h"
#include "frameworks/launch/imported_plan.h"
#include "frameworks/launch/launch_stack.h"

namespace tpsim {

// Returns the names of the files that export_plan() writes for this stack. The file with the
// training arguments is first.
std::vector<std::string> launch_file_names(LaunchStack stack);

// The hosts of a cluster, as launch files name them.
struct LaunchHosts {
  // Hosts that are not connected by NVLink, without known NICs.
  LaunchHosts(std::int64_t per_host)
      : gpus(per_host), domain_gpus(per_host), domain_size(per_host) {}
  std::int64_t gpus;         // of a host
  std::int64_t domain_gpus;  // that the job uses of each NVLink domain
  std::int64_t domain_size;  // of a whole NVLink domain
  std::int64_t nics = 0;     // of a host
};
// `gpus`: GPUs of the job.
LaunchHosts launch_hosts(const ClusterSpec& cluster, std::int64_t gpus);

// Writes launch files of `stack` for the plan. `software` is the stack of the prediction: its
// overlaps and its context-parallel communication are written as options if the launcher has them.
// Job files embed the files of the launcher.
Result<std::vector<LaunchFile>> export_plan(LaunchStack stack, const PlanFile& file,
                                            const LaunchHosts& hosts,
                                            const StackSpec& software = {});

// Reads files of `stack`, written by export_plan() or by people. A model in `inputs` must match the
// files, except for sequence, dropout and expert capacity, which come from the files. Unknown
// settings, and settings that tpsim cannot express, are errors.
Result<ImportedPlan> import_plan(LaunchStack stack, const std::vector<LaunchFile>& files,
                                 const ImportInputs& inputs);
// Returns the stack that a script or log most likely belongs to.
LaunchStack stack_of_text(std::string_view text);
// Calls import_plan() with this model and default inputs.
Result<ImportedPlan> import_plan(LaunchStack stack, const std::vector<LaunchFile>& files,
                                 const ModelSpec& model);

}  // namespace tpsim
