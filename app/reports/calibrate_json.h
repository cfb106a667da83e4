// Fits as JSON (docs/json.md).
#pragma once

#include "app/answers/calibrate_answer.h"
#include "core/json/json_value.h"

namespace tpsim::app {

// {"version": "tpsim-calibrate-report/1", ...}
JsonValue calibration_json(const CalibrationAnswer& answer);
JsonValue link_json(const LinkAnswer& answer);

}  // namespace tpsim::app
