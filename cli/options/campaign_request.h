// Fills the request of `campaign` from options.
#pragma once

#include <optional>

#include "app/answers/campaign_answer.h"
#include "cli/options/options.h"
#include "core/base/result.h"

namespace tpsim::cli {

Result<WholeRunRequest> campaign_request(const Arguments& arguments,
                                         const std::optional<PlanFile>& file);

}  // namespace tpsim::cli
