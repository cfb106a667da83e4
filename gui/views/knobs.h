// The settings of one plan as controls: the legal values of each, and the plan after a change.
//
// All GPUs stay in use. A change of the tensor, pipeline or context degree adjusts the
// data-parallel degree. A change of the data-parallel degree adjusts the pipeline degree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/plan/plan_settings.h"
#include "core/scenario/scenario.h"

namespace tpsim::gui {

// Whether a setting has a control: if a search may change it.
bool has_knob(const SettingRow& row);

// Returns the legal values in ascending order; empty if the setting does not apply.
std::vector<std::int64_t> values_of(const Plan& plan, Setting knob, const ModelSpec& model,
                                    std::int64_t gpus);

// Returns the plan after a change; other settings change only as necessary.
Plan turned(const Plan& plan, Setting knob, std::int64_t value, const ModelSpec& model,
            std::int64_t gpus);

// Returns the plan with dependent settings replaced by the nearest legal values: micro-batch,
// schedule, chunks, stage layers, recomputed blocks.
Plan mended(Plan plan, const ModelSpec& model);

// Returns the plan with the highest ZeRO stage that the software supports, at most its own. Returns
// the plan unchanged if no stage is supported.
Plan with_runnable_zero(const Plan& plan, const Scenario& scenario);

// Moves up to `blocks` blocks over the boundary between chunk `boundary` and the next.
Plan with_boundary_moved(const Plan& plan, std::size_t boundary, std::int64_t blocks);

// Returns the value nearest to `wanted`; `wanted` if there are no values.
std::int64_t nearest_value(std::span<const std::int64_t> values, std::int64_t wanted);

}  // namespace tpsim::gui
