// The answer of the window in sentences: which layout to use, what is assumed, and what other
// layouts cost. The numbers come from the functions that `tpsim plan` and `tpsim campaign` use.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "gui/views/views.h"

namespace tpsim::gui {

// Predicts the run of a plan over `tokens` with the assumptions named after the cluster.
RunCost run_cost(const Catalogue& catalogue, const std::string& cluster, const Scenario& scenario,
                 const Plan& plan, double tokens);

struct Answer {
  std::string use;  // "Use tp 2 · pp 4 · dp 32, ...: 6.69 s a step (90 %: 5.74 to 9.79 s), ..."
  std::string assumed;  // "Software assumed: nemo. ..."; empty if everything is stated
  std::string others;   // "Other layouts: tp 4 · pp 2 · dp 32 +2.1 %, P(faster) 39 %; ..."
};

// Returns the answer for plan A. Empty sentences if there is none, or if it cannot run.
Answer answer_of(const Views& views);

}  // namespace tpsim::gui
