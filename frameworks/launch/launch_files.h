// A plan as the launch files of a training stack, and back.
//
// What a stack cannot express is an error with the reason; nothing is dropped or approximated. Data
// paths, tokenizer, learning rate and checkpoints are the user's: they are no part of a plan.
// Reading back checks the rules that the stack itself checks and gives exactly the same plan. What
// people wrote is read too: scripts with variables and arrays, and the arguments in a log.
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

// The names that files of this stack may have, the one that holds the arguments first.
std::vector<std::string> launch_file_names(LaunchStack stack);

// `software` predicted the plan: what it and the plan's parts overlap, and how they exchange keys
// and values, is asked for where a launcher has a switch; a job starts the files of its launcher.
Result<std::vector<LaunchFile>> export_plan(LaunchStack stack, const PlanFile& file,
                                            std::int64_t gpus_per_node,
                                            const StackSpec& software = {});

// The plan of files that export_plan wrote, or that people wrote for the same stack. A named model
// must be what the files describe; sequence, dropout and the capacity of experts are the files'. A
// setting that is unknown, or that makes a plan which tpsim cannot express, is an error.
Result<ImportedPlan> import_plan(LaunchStack stack, const std::vector<LaunchFile>& files,
                                 const ImportInputs& inputs);
// The stack that a script or log is most likely for.
LaunchStack stack_of_text(std::string_view text);
// Of one model, all else as the files say.
Result<ImportedPlan> import_plan(LaunchStack stack, const std::vector<LaunchFile>& files,
                                 const ModelSpec& model);

}  // namespace tpsim
