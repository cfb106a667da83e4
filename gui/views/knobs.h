// Controls for the settings of one plan: the legal values of each setting, and the plan after a
// change.
//
// The number of GPUs stays the same. A change of the tensor-, pipeline- or context-parallel degree
// adjusts the data-parallel degree. A change of the data-parallel degree adjusts the pipeline
// degree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/plan/plan_settings.h"
#include "core/scenario/scenario.h"

namespace tpsim::gui {

// Whether the setting has a control. Settings that are inputs of the search have none.
bool has_knob(const SettingRow& row);

// Returns the legal values of a setting in ascending order; empty if the setting does not apply to
// the model.
std::vector<std::int64_t> values_of(const Plan& plan, Setting knob, const ModelSpec& model,
                                    std::int64_t gpus);

// Returns the plan after a setting was changed. Other settings change only as far as necessary.
Plan turned(const Plan& plan, Setting knob, std::int64_t value, const ModelSpec& model,
            std::int64_t gpus);

// Returns the plan with illegal dependent settings replaced by the nearest legal values:
// micro-batch, schedule, chunks, layers per stage, recomputed blocks.
Plan mended(Plan plan, const ModelSpec& model);

// Returns the plan with the highest ZeRO stage that the software supports and that does not exceed
// the plan's. If no such stage is supported, returns the plan unchanged.
Plan with_runnable_zero(const Plan& plan, const Scenario& scenario);

// Moves up to `blocks` blocks from the next chunk to chunk `boundary`, or to the next chunk if
// `blocks` is negative.
Plan with_boundary_moved(const Plan& plan, std::size_t boundary, std::int64_t blocks);

// Returns the value nearest to `wanted`, or `wanted` itself if the list is empty.
std::int64_t nearest_value(std::span<const std::int64_t> values, std::int64_t wanted);

}  // namespace tpsim::gui
