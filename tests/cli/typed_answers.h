// Answers to options: fills the requests of app/ as the commands do.
#pragma once

#include <optional>

#include "app/answers/campaign_answer.h"
#include "app/answers/import_answer.h"
#include "app/answers/log_answer.h"
#include "app/answers/plan_answers.h"
#include "cli/options/campaign_request.h"
#include "cli/options/plan_requests.h"
#include "cli/options/requests.h"

namespace tpsim::cli {

inline Result<NamedScenario> load_scenario(const Arguments& arguments,
                                           const std::optional<PlanFile>& file) {
  TPSIM_TRY(const ScenarioRequest request, scenario_request(arguments, file));
  return app::load_scenario(request);
}

inline Result<Plan> single_plan(const Arguments& arguments, const ModelSpec& model,
                                const std::optional<PlanFile>& file, const PlanDefaults& defaults) {
  TPSIM_TRY(const StatedSettings stated, single_settings(arguments));
  return app::single_plan(stated, model, file, defaults);
}

inline Result<SearchSpace> search_space(const Arguments& arguments, const Scenario& scenario,
                                        const std::optional<PlanFile>& file) {
  TPSIM_TRY(const SearchRequest request, search_request(arguments));
  return app::search_space(request, scenario, file);
}

inline Result<SimulatedPlan> simulate_answer(const Arguments& arguments,
                                             const std::optional<PlanFile>& file) {
  TPSIM_TRY(const SimulateRequest request, simulate_request(arguments, file));
  return app::simulate_answer(request);
}

inline Result<CampaignReport> campaign_answer(const Arguments& arguments,
                                              const std::optional<PlanFile>& file) {
  TPSIM_TRY(const WholeRunRequest request, campaign_request(arguments, file));
  return app::campaign_answer(request);
}

inline Result<ImportAnswer> import_answer(const Arguments& arguments) {
  TPSIM_TRY(const ImportRequest request, import_request(arguments));
  return app::import_answer(request);
}

// Checks the log given as positional argument.
inline Result<CheckedLog> check_log_answer(const Arguments& arguments, const PlanFile& file) {
  CheckLogRequest request;
  TPSIM_TRY(request.scenario, scenario_request(arguments, file));
  TPSIM_TRY(request.log, open_log(arguments.positional));
  return app::check_log_answer(request);
}

}  // namespace tpsim::cli
