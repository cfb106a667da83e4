// Comparisons of plans and answers about searches as JSON (docs/json.md).
#pragma once

#include "app/answers/compare_answer.h"
#include "app/answers/explain_answers.h"
#include "app/answers/plan_answers.h"
#include "core/json/json_value.h"

namespace tpsim::app {

// {"version": "tpsim-compare-report/1", ...}
JsonValue compare_json(const CompareAnswer& answer);
// {"version": "tpsim-scaling-report/1", ...}
JsonValue scaling_json(const ScalingAnswer& answer);
// {"version": "tpsim-what-if-report/1", ...}
JsonValue what_if_json(const WhatIfAnswer& answer);
// {"version": "tpsim-why-not-report/1", ...}
JsonValue why_not_json(const WhyNot& answer);

}  // namespace tpsim::app
