// Exports and comparisons with measurements as JSON (docs/json.md).
#pragma once

#include <vector>

#include "app/answers/export_answer.h"
#include "app/answers/log_answer.h"
#include "core/json/json_value.h"
#include "evidence/runs/validation.h"

namespace tpsim::app {

// {"version": "tpsim-export-report/1", ...}
JsonValue export_json(const ExportAnswer& answer);
// {"version": "tpsim-log-report/1", ...}
JsonValue check_log_json(const CheckedLog& checked);
// {"version": "tpsim-validate-report/1", ...}
JsonValue validate_json(const std::vector<RunOutcome>& outcomes);

}  // namespace tpsim::app
