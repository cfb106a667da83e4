// Reports of commands as JSON (docs/json.md), in addition to app/reports/report_json.h.
#pragma once

#include <vector>

#include "app/answers/calibrate_answer.h"
#include "app/answers/campaign_answer.h"
#include "app/answers/compare_answer.h"
#include "app/answers/explain_answers.h"
#include "app/answers/export_answer.h"
#include "app/answers/log_answer.h"
#include "app/answers/plan_answers.h"
#include "core/json/json_value.h"
#include "evidence/runs/validation.h"

namespace tpsim::app {

// {"version": "tpsim-calibrate-report/1", ...}
JsonValue calibration_json(const CalibrationAnswer& answer);
JsonValue link_json(const LinkAnswer& answer);
// {"version": "tpsim-campaign-report/1", ...}
JsonValue campaign_json(const CampaignReport& report);
// {"version": "tpsim-compare-report/1", ...}
JsonValue compare_json(const CompareAnswer& answer);
// {"version": "tpsim-export-report/1", ...}
JsonValue export_json(const ExportAnswer& answer);
// {"version": "tpsim-log-report/1", ...}
JsonValue check_log_json(const CheckedLog& checked);
// {"version": "tpsim-scaling-report/1", ...}
JsonValue scaling_json(const ScalingAnswer& answer);
// {"version": "tpsim-validate-report/1", ...}
JsonValue validate_json(const std::vector<RunOutcome>& outcomes);
// {"version": "tpsim-what-if-report/1", ...}
JsonValue what_if_json(const WhatIfAnswer& answer);
// {"version": "tpsim-why-not-report/1", ...}
JsonValue why_not_json(const WhyNot& answer);

}  // namespace tpsim::app
