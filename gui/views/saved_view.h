// Saved views: {"format": "tpsim-view/1", ...}: what was planned, both plans, and how they were
// looked at.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/scenario/plan_file.h"
#include "gui/views/app_state.h"

namespace tpsim::gui {

// `shown` is plan A with its model, cluster, profile and stack; nothing when there is none.
JsonValue view_to_json(const AppState& state, const std::optional<PlanFile>& shown);

// Changes `state` to the saved view, or leaves it as it is and says what is wrong with the file.
Status read_view(const JsonValue& root, const std::string& file, AppState& state);

// Makes a plan file what is planned and looked at.
void show_plan(const PlanFile& file, AppState& state);

}  // namespace tpsim::gui
