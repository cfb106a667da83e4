// The report of `campaign` as JSON (docs/json.md).
#pragma once

#include "app/answers/campaign_answer.h"
#include "core/json/json_value.h"

namespace tpsim::app {

// {"version": "tpsim-campaign-report/1", ...}
JsonValue campaign_json(const CampaignReport& report);

}  // namespace tpsim::app
