// tpsim as a library: one header for all types and functions.
//
//   const auto scenario =
//       tpsim::load_scenario({.model = "bloom-176b", .cluster = "jean-zay-a100"});
//   const auto found = tpsim::search(*scenario, {.gpus = 384, .global_batch = 2048}, 10, {});
//
// Values are plain structs. Functions are pure and thread-safe. Errors are returned as Result
// (core/base/result.h): check ok() before reading the value. An exception indicates a bug in tpsim.
// docs/library.md has a tour and describes the CMake package.
#pragma once

#include <string>

#include "campaigns/assumptions.h"
#include "campaigns/campaign.h"
#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/plan/report.h"
#include "core/program/timeline.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_json.h"
#include "core/scenario/scenario.h"
#include "evidence/logs/log_check.h"
#include "evidence/logs/log_reader.h"
#include "evidence/runs/run_table.h"
#include "evidence/runs/validation.h"
#include "frameworks/launch/launch_files.h"
#include "plans/questions/open_inputs.h"
#include "plans/search/search.h"
#include "sim/step/load_scenario.h"
#include "sim/step/simulate.h"

namespace tpsim {

// The functions below read the catalogue of $TPSIM_DATA, or the one shipped with the library.
inline Result<Scenario> load_scenario(const ScenarioNames& names) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  return load_scenario(catalogue, names);
}
inline Result<Scenario> scenario_of(const PlanFile& file) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  return scenario_of(catalogue, file);
}

}  // namespace tpsim
