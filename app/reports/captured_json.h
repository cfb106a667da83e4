// The report of `simulate --program` as JSON.
#pragma once

#include "app/answers/captured_answer.h"
#include "core/json/json_value.h"

namespace tpsim::app {

// "tpsim-captured-report/1": the prediction of a captured step.
JsonValue captured_report(const CapturedAnswer& answer);

}  // namespace tpsim::app
