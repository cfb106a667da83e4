// The recommendation of the window in sentences: the layout to use, the assumptions, and how much
// slower other layouts are. Uses the same functions as `tpsim plan` and `tpsim campaign`.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "gui/views/views.h"

namespace tpsim::gui {

// Predicts the cost of training a plan for `tokens` tokens, with the cluster's file of assumptions
// (power, prices, failures).
RunCost run_cost(const Catalogue& catalogue, const std::string& cluster, const Scenario& scenario,
                 const PlannedRun& run, double tokens);

struct Answer {
  std::string use;  // "Use tp 2 · pp 4 · dp 32, ...: 6.69 s a step (90 %: 5.74 to 9.79 s), ..."
  // "1 T tokens: 18.8 days, 847,000 USD (90 %: 727,000 to 1,280,000) with 3 spare nodes, ...";
  // empty if the plan does not fit
  std::string cost;
  // "Searched only tp=1,2, without zero=3, at most 72 GiB a GPU."; empty if nothing is restricted
  std::string limits;
  // Inputs of the prediction besides the layout: "Sequence length 8,192, global batch 512, bf16;
  // software nemo with optimizer_dtype=bf16; 1,183 of 1,863 GiB host memory per node."
  std::string setup;
  std::string assumed;  // "Software assumed: nemo. ..."; empty if all is stated
  // "Not the best plan: +2.1 %, ... Other layouts: tp 4 · pp 2 · dp 32 +2.1 %, P(faster) 39 %; ..."
  std::string others;
};

// Returns the sentences for plan A; empty texts if plan A is not set or cannot run.
Answer answer_of(const Views& views);

}  // namespace tpsim::gui
