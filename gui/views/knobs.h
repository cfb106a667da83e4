// The settings of one plan as things to turn: which values each may take beside the others, and the
// plan that follows from turning one.
//
// The GPUs stay all in use: tensor, pipeline and context degrees take from the data-parallel one,
// and the data-parallel degree from the pipeline.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/plan/plan_settings.h"
#include "core/scenario/scenario.h"

namespace tpsim::gui {

// The settings that have a knob: all that a search may change.
bool has_knob(const SettingRow& row);

// In ascending order, the present value among them when it is legal; none where there is nothing to
// turn.
std::vector<std::int64_t> values_of(const Plan& plan, Setting knob, const ModelSpec& model,
                                    std::int64_t gpus);

// The plan after turning the knob: other settings change only as far as they must.
Plan turned(const Plan& plan, Setting knob, std::int64_t value, const ModelSpec& model,
            std::int64_t gpus);

// The plan with the other settings replaced by the nearest that agree with the degrees:
// micro-batch, schedule, chunks, stage layers, recomputed blocks.
Plan mended(Plan plan, const ModelSpec& model);

// The plan with as much less of ZeRO as it takes for the software to run it; itself where that does
// not help.
Plan with_runnable_zero(const Plan& plan, const Scenario& scenario);

// Moves `blocks` over the boundary between chunk `boundary` and the next, as far as there are any.
Plan with_boundary_moved(const Plan& plan, std::size_t boundary, std::int64_t blocks);

// The value of `values` nearest to `wanted`; `wanted` when there are none.
std::int64_t nearest_value(std::span<const std::int64_t> values, std::int64_t wanted);

}  // namespace tpsim::gui
