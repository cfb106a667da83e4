// Measured steps for `calibrate`, from run tables or from training logs with their plans.
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "app/answers/calibrate_answer.h"
#include "app/scenario/field.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/scenario/plan_json.h"
#include "evidence/logs/log_check.h"
#include "evidence/runs/run_table.h"

namespace tpsim::app {

namespace {

// Stacks and clusters that the measured rows or logs name.
struct Owners {
  std::set<std::string> stacks, clusters;
};

Status add_rows(const std::string& file, RunLoader& loader, CalibrationInputs& inputs,
                Owners& owners) {
  TPSIM_TRY(const std::vector<PublishedRun> runs, read_run_table(file));
  for (const PublishedRun& run : runs) {
    const RunOutcome outcome = predict_run(loader, run);
    const bool timed = outcome.predicted && outcome.measured_step_s && outcome.outcome == "ok";
    if (!timed || !outcome.skipped_because.empty()) {
      inputs.skipped.push_back(fmt::format(
          "{}: {}", run.id,
          outcome.skipped_because.empty() ? "no measured step time" : outcome.skipped_because));
      continue;
    }
    TPSIM_TRY(RunSetup setup, loader.setup(run));
    const Seconds step(*outcome.measured_step_s);
    const double share = share_of_peak(setup.scenario, setup.plan, step);
    if (share > 1) {
      inputs.skipped.push_back(
          fmt::format("{}: its step of {} means {:.0f} % of the GPUs' peak, which is impossible",
                      run.id, time_text(step), 100 * share));
      continue;
    }
    owners.stacks.insert(outcome.stack);
    owners.clusters.insert(outcome.cluster);
    inputs.steps.push_back({run.id, std::move(setup.scenario), std::move(setup.applied_parts),
                            std::move(setup.plan), step});
  }
  return Ok{};
}

// Returns the stack (or cluster) to calibrate: the stated one, else the only one in `names`. Error
// if `names` has several, because only one file is written.
Result<std::string> only_owner(const std::string& stated, Field field, Field save,
                               const std::set<std::string>& names) {
  if (!stated.empty()) return stated;
  if (names.size() == 1) return *names.begin();
  return field_error(
      field, fmt::format("the rows come from several: {}", fmt::join(names, ", ")),
      fmt::format("name one with this option, or use rows of only one; {} writes one file",
                  option_of(save)));
}

Status load_owners(const CalibrateRequest& request, const Owners& owners,
                   CalibrationInputs& inputs) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  if (request.fits_stack() || owners.stacks.size() == 1) {
    TPSIM_TRY(inputs.stack_path,
              only_owner(request.overrides.stack, Field::kStack, Field::kSaveStack, owners.stacks));
    TPSIM_TRY(inputs.stack, catalogue.load_stack(inputs.stack_path));
  }
  if (request.fits_cluster() || owners.clusters.size() == 1) {
    TPSIM_TRY(inputs.cluster_path, only_owner(request.overrides.cluster, Field::kCluster,
                                              Field::kSaveCluster, owners.clusters));
    TPSIM_TRY(inputs.cluster, catalogue.load_cluster(inputs.cluster_path));
  }
  return Ok{};
}

// A training log with its plan file.
struct PlannedLog {
  std::string path;
  std::optional<PlanFile> plan;  // absent if the log prints its arguments
};

bool is_plan_file(const std::string& path) {
  return path.ends_with(".json") && read_plan(path).ok();
}

Error no_plan(const std::string& log) {
  return bad_input(
      "does not state its layout", log,
      "give the plan file after the log or trace, or give --plan FILE for all logs; a table of "
      "runs needs the ending .csv");
}

// Reads the positional arguments: each log may be followed by its plan file, "a.log a.json b.log".
// Logs without one get the plan of --plan, if given.
Result<std::vector<PlannedLog>> planned_logs(const CalibrateRequest& request) {
  std::vector<PlannedLog> logs;
  for (const std::string& file : request.measured) {
    if (!is_plan_file(file)) {
      logs.push_back({file, std::nullopt});
      continue;
    }
    if (logs.empty()) return bad_input("a plan file must follow its log", file);
    TPSIM_TRY(logs.back().plan, read_plan(file));
  }
  for (PlannedLog& one : logs) {
    if (!one.plan && !request.plan_file.empty()) {
      TPSIM_TRY(one.plan, read_plan(request.plan_file));
    }
  }
  return logs;
}

Result<PlanFile> plan_of(const CalibrateRequest& request, const PlannedLog& one,
                         const OpenedLog& log) {
  if (one.plan) return *one.plan;
  TPSIM_TRY(auto printed, arguments_in_log(request.import, log));
  if (!printed) return no_plan(one.path);
  return std::move(printed->file);
}

// Reads all logs. `first` is the already opened first log, since standard input cannot be read
// twice.
Result<CalibrationInputs> inputs_of_logs(const CalibrateRequest& request, const OpenedLog& first) {
  TPSIM_TRY(const std::vector<PlannedLog> logs, planned_logs(request));
  CalibrationInputs inputs;
  Owners owners;
  std::vector<std::string> names;
  for (const PlannedLog& log : logs) {
    TPSIM_TRY(const OpenedLog opened, open_or_reuse(first, log.path));
    TPSIM_TRY(const PlanFile plan, plan_of(request, log, opened));
    CheckLogRequest asked{request.scenario, opened};
    asked.scenario.file = plan;
    TPSIM_TRY(CheckedLog checked, check_log_answer(asked));
    names.push_back(log.path);
    if (!checked.check.is_sound) {
      inputs.skipped.push_back(log.path + ": its run has faults");
      continue;
    }
    if (!checked.check.is_possible) {
      inputs.skipped.push_back(log.path +
                               ": its steps are faster than the peak of its GPUs allows");
      continue;
    }
    owners.stacks.insert(checked.named.stack);
    owners.clusters.insert(checked.named.cluster);
    inputs.steps.push_back({std::filesystem::path(log.path).filename().string(),
                            std::move(checked.named.scenario), std::move(checked.named.parts),
                            plan.plan, checked.check.measured});
  }
  if (inputs.steps.empty()) {
    return bad_input("no log can be used", "", inputs.skipped.front());
  }
  TPSIM_TRY_STATUS(load_owners(request, owners, inputs));
  inputs.of = fmt::format("{} {} ({})", inputs.steps.size(),
                          inputs.steps.size() == 1 ? "log" : "logs", file_names(names));
  return inputs;
}

Result<CalibrationInputs> inputs_of_tables(const CalibrateRequest& request) {
  TPSIM_TRY(RunLoader loader, run_loader(request.overrides));
  CalibrationInputs inputs;
  Owners owners;
  const std::vector<std::string> files = request.measured;
  for (const std::string& file : files) TPSIM_TRY_STATUS(add_rows(file, loader, inputs, owners));
  if (inputs.steps.empty()) {
    return bad_input("no row can be predicted", request.measured.front(),
                     inputs.skipped.empty() ? "the table has no rows" : inputs.skipped.front());
  }
  TPSIM_TRY_STATUS(load_owners(request, owners, inputs));
  inputs.of = fmt::format("{} {} of {}", inputs.steps.size(),
                          inputs.steps.size() == 1 ? "row" : "rows", file_names(files));
  return inputs;
}

}  // namespace

bool are_tables(const CalibrateRequest& request) {
  const std::vector<std::string>& files = request.measured;
  if (!files.front().ends_with(".csv") || !request.plan_file.empty()) return false;
  return files.size() < 2 || !is_plan_file(files[1]);
}

Result<CalibrationInputs> calibration_inputs(const CalibrateRequest& request,
                                             const std::optional<OpenedLog>& first) {
  return first ? inputs_of_logs(request, *first) : inputs_of_tables(request);
}

}  // namespace tpsim::app
