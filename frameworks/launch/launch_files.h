// Writes a plan as launch files of a training stack, and reads launch files.
//
// A plan that the stack cannot express is an error with the reason. Nothing is dropped or
// approximated. Data paths, tokenizer, learning rate and checkpoints are not part of a plan.
// Reading checks the stack's own rules and returns exactly the same plan. Files written by people
// are read too: scripts with variables and arrays, and arguments in a log.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/scenario/plan_file.h"
#include "core/software/stack_spec.h"
#include "frameworks/launch/launch_stack.h"

namespace tpsim {

// Returns the file names of this stack. The file with the arguments is first.
std::vector<std::string> launch_file_names(LaunchStack stack);

// Writes `file` for a stack. `software` predicted the plan. Its overlaps and its exchange of keys
// and values are written as switches if the launcher has them. A job starts the files of its
// launcher.
Result<std::vector<LaunchFile>> export_plan(LaunchStack stack, const PlanFile& file,
                                            std::int64_t gpus_per_node,
                                            const StackSpec& software = {});

// Reads files written by export_plan() or by people for the same stack. A named model must match
// the files, except sequence, dropout and expert capacity, which come from the files. Unknown
// settings, and settings that tpsim cannot express, are errors.
Result<ImportedPlan> import_plan(LaunchStack stack, const std::vector<LaunchFile>& files,
                                 const ImportInputs& inputs);
// Returns the most likely stack of a script or log.
LaunchStack stack_of_text(std::string_view text);
// Likewise, with a named model and default inputs.
Result<ImportedPlan> import_plan(LaunchStack stack, const std::vector<LaunchFile>& files,
                                 const ModelSpec& model);

}  // namespace tpsim
