// Answers of app/ as text.
#pragma once

#include <string>
#include <vector>

#include "app/answers/calibrate_answer.h"
#include "app/answers/campaign_answer.h"
#include "app/answers/captured_answer.h"
#include "app/answers/comparison.h"
#include "app/answers/explain_answers.h"
#include "app/answers/memory_answer.h"
#include "app/answers/program_difference.h"
#include "app/answers/run_answers.h"
#include "cli/options/options.h"
#include "cli/options/text_report.h"
#include "sim/step/rank_programs.h"

namespace tpsim::cli {

// The report of `campaign` (docs/campaign.md).
void write_campaign(TextReport& out, const CampaignReport& report);

// `arguments` decide the next commands that the report suggests.
void write_calibration(TextReport& out, const Arguments& arguments,
                       const CalibrationAnswer& answer);
void write_link(TextReport& out, const Arguments& arguments, const LinkAnswer& answer);
// Kernel times of a profiler trace.
void write_kernels(TextReport& out, const KernelTimes& kernels, const std::vector<KernelRow>& rows);

// Every term of a prediction with formula, inputs and source.
void write_explanation(TextReport& out, const NamedScenario& named, const PlannedRun& run);
// Measurements of a row of a run table.
void write_row(TextReport& out, const ExplainedRow& row);
// Every op, collective and allocation of a rank, grouped by part of the model.
void write_program(TextReport& out, const NamedScenario& named, const PlannedRun& run,
                   const std::vector<PartProgram>& programs);
// Differences between the programs of two plans.
void write_difference(TextReport& out, const SimulatedPlan& plan, const SimulatedPlan& other,
                      const std::vector<PartDifference>& parts);
// Differences between the program of a plan after two passes.
void write_pass_difference(TextReport& out, const SimulatedPlan& plan, const ComparedPasses& passes,
                           const std::vector<PartDifference>& parts);
// Contents of the fullest stage's memory at its peak; with a snapshot of a run, those of the rank's
// stage and the comparison.
void write_peak_memory(TextReport& out, const NamedScenario& named, const PlannedRun& run,
                       const MemoryAnswer& answer);
// The prediction of a captured step.
void write_captured(TextReport& out, const app::CapturedAnswer& answer);
void write_why_not(TextReport& out, const WhyNotAnswer& all);
void write_what_if(TextReport& out, const WhatIfAnswer& answers);

constexpr std::size_t kComparedRows = 16;
// A table of at most `most` rows, and the number of rows left out.
void write_compared(TextReport& out, const std::string& title,
                    const std::vector<app::ComparedTime>& rows, std::size_t most = kComparedRows);

// Returns a relative error as a signed percentage: "+4.2 %".
std::string error_text(double share);

}  // namespace tpsim::cli
