// Measured steps of `calibrate`: rows of run tables, and logs of plans.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cli/calibrate.h"
#include "cli/inputs.h"
#include "cli/log_text.h"
#include "cli/run_rows.h"
#include "cli/values.h"
#include "core/run_table.h"
#include "sim/simulate.h"
#include "stacks/log_check.h"
#include "stacks/training_log.h"

namespace tpsim::cli {
namespace {

std::vector<std::string> files_of(const Arguments& arguments) {
  std::vector<std::string> files = {arguments.positional};
  files.insert(files.end(), arguments.more.begin(), arguments.more.end());
  return files;
}

std::string file_names(const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files) {
    text += (text.empty() ? "" : ", ") + std::filesystem::path(file).filename().string();
  }
  return text;
}

// Names of the stacks and clusters that the rows ran on, as they can be loaded again.
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
          "{}: {}", run.id, outcome.skipped_because.empty() ? "no time" : outcome.skipped_because));
      continue;
    }
    TPSIM_TRY(RunSetup setup, loader.setup(run));
    owners.stacks.insert(outcome.stack);
    owners.clusters.insert(outcome.cluster);
    inputs.steps.push_back({run.id, std::move(setup.scenario), std::move(setup.applied_parts),
                            std::move(setup.plan), Seconds(*outcome.measured_step_s)});
  }
  return Ok{};
}

std::string listed_names(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// One file is written, so the rows must be of one.
Result<std::string> only_owner(const Arguments& arguments, Opt opt, Opt save,
                               const std::set<std::string>& names) {
  if (arguments.has(opt)) return *arguments[opt];
  if (names.size() == 1) return *names.begin();
  return option_error(opt, fmt::format("the rows are of several: {}", listed_names(names)),
                      fmt::format("a table of one of them, or leave out {}", row_of(save).name));
}

Status load_owners(const Arguments& arguments, const Owners& owners, CalibrationInputs& inputs) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  const bool saves = arguments.has(Opt::kSaveStack) || arguments.has(Opt::kSaveCluster);
  if (arguments.has(Opt::kSaveStack) || !saves || owners.stacks.size() == 1) {
    TPSIM_TRY(inputs.stack_path,
              only_owner(arguments, Opt::kStack, Opt::kSaveStack, owners.stacks));
    TPSIM_TRY(inputs.stack, catalogue.load_stack(inputs.stack_path));
  }
  if (arguments.has(Opt::kSaveCluster) || !saves || owners.clusters.size() == 1) {
    TPSIM_TRY(inputs.cluster_path,
              only_owner(arguments, Opt::kCluster, Opt::kSaveCluster, owners.clusters));
    TPSIM_TRY(inputs.cluster, catalogue.load_cluster(inputs.cluster_path));
  }
  return Ok{};
}

Result<CalibrationInputs> inputs_of_tables(const Arguments& arguments) {
  TPSIM_TRY(RunLoader loader, run_loader(arguments));
  CalibrationInputs inputs;
  Owners owners;
  const std::vector<std::string> files = files_of(arguments);
  for (const std::string& file : files) {
    TPSIM_TRY_STATUS(add_rows(file, loader, inputs, owners));
  }
  if (inputs.steps.empty()) {
    return Error{ErrorKind::kBadInput, "no row can be priced", arguments.positional,
                 inputs.skipped.empty() ? "it has no rows" : inputs.skipped.front()};
  }
  TPSIM_TRY_STATUS(load_owners(arguments, owners, inputs));
  inputs.of = fmt::format("{} {} of {}", inputs.steps.size(),
                          inputs.steps.size() == 1 ? "row" : "rows", file_names(files));
  return inputs;
}

}  // namespace

Result<CalibrationInputs> calibration_inputs(const Arguments& arguments) {
  return inputs_of_tables(arguments);
}

}  // namespace tpsim::cli
