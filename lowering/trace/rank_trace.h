// Traces all work of one rank: whole steps with the plan's real schedule.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/plan/plan.h"
#include "core/program/program.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Trace of one rank with the plan's real schedule: allocation of the weights, then `steps` whole
// steps with every op, collective and allocation.
struct RankTrace {
  Program program;
  std::size_t step = 0;  // index of the first event of the first step
};
RankTrace trace_rank(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
                     std::int64_t rank, std::int64_t steps = 1);

}  // namespace tpsim
