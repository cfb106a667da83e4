// tpsim as a library: one header for all of its nouns and verbs.
//
//   const auto scenario =
//       tpsim::load_scenario({.model = "bloom-176b", .cluster = "jean-zay-a100"});
//   const auto found = tpsim::search(*scenario, {.gpus = 384, .global_batch = 2048}, 10, {});
//
// Values are plain structs; functions are pure, keep no state and may run on several threads at
// once. What can go wrong comes back as a Result (core/result.h): ask ok() before reading. Only a
// bug of tpsim throws. docs/library.md has the tour and the CMake package.
#pragma once

#include <string>

#include "core/catalogue.h"
#include "core/plan.h"
#include "core/plan_json.h"
#include "core/report.h"
#include "core/result.h"
#include "core/run_table.h"
#include "core/scenario.h"
#include "core/timeline.h"
#include "plans/assumptions.h"
#include "plans/campaign.h"
#include "plans/open_inputs.h"
#include "plans/search.h"
#include "sim/load_scenario.h"
#include "sim/simulate.h"
#include "sim/validation.h"
#include "stacks/launch_files.h"
#include "stacks/log_check.h"
#include "stacks/training_log.h"

namespace tpsim {

// With the data that the library brings, or that of $TPSIM_DATA.
inline Result<Scenario> load_scenario(const ScenarioNames& names) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  return load_scenario(catalogue, names);
}
inline Result<Scenario> scenario_of(const PlanFile& file) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  return scenario_of(catalogue, file);
}

}  // namespace tpsim
