// tpsim as a library: one header for the requests and answers of all commands.
//
//   const auto answer = tpsim::app::plan_answer(
//       {.scenario = {.model = "bloom-176b", .cluster = "jean-zay-a100"}, .search = {.gpus =
//       384}});
//
// Values are plain structs. Functions keep no state and are thread-safe. Errors are returned as
// Result (core/base/result.h): check ok() before reading the value. An exception indicates a bug in
// tpsim. The catalogue is that of $TPSIM_DATA, or the one shipped with the library.
// docs/library.md has a tour and describes the CMake package.
#pragma once

#include "app/answers/calibrate_answer.h"
#include "app/answers/campaign_answer.h"
#include "app/answers/compare_answer.h"
#include "app/answers/explain_answers.h"
#include "app/answers/export_answer.h"
#include "app/answers/import_answer.h"
#include "app/answers/log_answer.h"
#include "app/answers/plan_answers.h"
#include "app/answers/run_answers.h"
#include "app/reports/answer_json.h"
#include "app/reports/calibrate_json.h"
#include "app/reports/campaign_json.h"
#include "app/reports/evidence_json.h"
#include "app/reports/program_json.h"
#include "app/reports/report_json.h"
#include "app/reports/trace_json.h"
#include "core/json/json_document.h"
#include "core/scenario/plan_json.h"
#include "sim/step/simulate.h"
