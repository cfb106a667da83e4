// Reads the parallel layout at the start of a training log, and compares it with the plan's.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "evidence/logs/training_log.h"

namespace tpsim {

// Reads a line about the layout; false for any other line.
// - Megatron: "using world size: 384, data-parallel-size: 8, tensor-model-parallel size: 4, ..."
// - torchtitan: "Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=32, cp=1,
//   tp=2, ep=1", before 2026 "Building 2-D device mesh with ['dp_shard', 'tp'], [32, 2]", and
//   "Applied selective activation checkpointing to the model" ("SelectiveAC" in newer releases)
bool read_layout(std::string_view line, TrainingLog& log);

// Returns an error that states both layouts if they differ. Only values that the log states are
// compared.
Status check_layout(const Scenario& scenario, const Plan& plan, const LoggedLayout& logged);

}  // namespace tpsim
