// Saved views: JSON {"format": "tpsim-view/1", ...} with the inputs of planning, plans A and B, and
// the display state.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/scenario/plan_file.h"
#include "gui/views/app_state.h"

namespace tpsim::gui {

// `shown`: plan A with its model, cluster, profile and stack; empty without a plan.
JsonValue view_to_json(const AppState& state, const std::optional<PlanFile>& shown);

// Whether the document is a saved view.
bool is_view(const JsonValue& root);

// Changes `state` to the saved view. On error `state` is unchanged, and the error names the file
// and the key.
Status read_view(const JsonValue& root, const std::string& file, AppState& state);

// Sets the inputs of planning from a plan file and selects its plan.
void show_plan(const PlanFile& file, AppState& state);

}  // namespace tpsim::gui
