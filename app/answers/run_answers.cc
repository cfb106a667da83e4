#include "app/answers/run_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "app/scenario/field.h"
#include "core/base/shipped_data.h"
#include "core/base/text.h"
#include "core/scenario/catalogue.h"
#include "sim/step/simulate.h"

namespace tpsim::app {
namespace {

Result<PublishedRun> row_of_table(const std::vector<PublishedRun>& runs, const std::string& id) {
  std::vector<std::string> ids;
  for (const PublishedRun& run : runs) {
    if (run.id == id) return run;
    ids.push_back(run.id);
  }
  return bad_input(fmt::format("the table has no row '{}'", id), option_of(Field::kRow),
                   meant(nearest(id, ids)));
}

// Adds the field to an error about a name that the request states.
template <class T>
Result<T> stated_in(Field field, Result<T> found) {
  if (found.ok() || !found.error().where.empty()) return found;
  return field_error(field, found.error().message, found.error().hint);
}

// Checks the stated names, so that a wrong name is reported once and not for every row.
Status check_names(const RunOverrides& stated, const Catalogue& catalogue) {
  if (!stated.cluster.empty()) {
    TPSIM_TRY_STATUS(stated_in(Field::kCluster, catalogue.load_cluster(stated.cluster)));
  }
  if (!stated.stack.empty()) {
    TPSIM_TRY_STATUS(stated_in(Field::kStack, catalogue.load_stack(stated.stack)));
  }
  if (!stated.profile.empty()) {
    const auto profile = stated_in(Field::kProfile, catalogue.load_profile(stated.profile));
    if (!profile.ok()) return of_one_kind(profile.error(), stated.profile);
  }
  return Ok{};
}

Result<std::vector<PublishedRun>> rows_of_table(const std::string& table) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  TPSIM_TRY(const std::filesystem::path path, stated_in(Field::kRuns, catalogue.find_runs(table)));
  return read_run_table(path);
}

}  // namespace

Result<RunLoader> run_loader(const RunOverrides& overrides) {
  TPSIM_TRY(Catalogue catalogue, Catalogue::open());
  TPSIM_TRY_STATUS(check_names(overrides, catalogue));
  const std::filesystem::path known = catalogue.directory() / "published_runs/environments.json";
  std::vector<RunEnvironment> environments;  // empty if the data folder has no environments
  if (file_is_there(known)) {
    TPSIM_TRY(environments, read_run_environments(known));
  }
  RunLoader loader(std::move(catalogue), std::move(environments), overrides);
  if (!loader.names_status().ok()) return loader.names_status().error();
  return loader;
}

Result<std::vector<RunOutcome>> validate_answer(const RunsRequest& request) {
  TPSIM_TRY(const std::vector<PublishedRun> runs, rows_of_table(request.table));
  TPSIM_TRY(RunLoader loader, run_loader(request.overrides));
  std::vector<RunOutcome> outcomes;
  for (const PublishedRun& run : runs) {
    outcomes.push_back(predict_run(loader, run));
    if (!request.progress) continue;
    request.progress(static_cast<double>(outcomes.size()) / static_cast<double>(runs.size()));
  }
  return outcomes;
}

std::vector<RunOutcome> rows_of(const std::vector<RunOutcome>& outcomes, bool calibration) {
  std::vector<RunOutcome> rows;
  std::copy_if(outcomes.begin(), outcomes.end(), std::back_inserter(rows),
               [&](const RunOutcome& run) { return run.calibration == calibration; });
  return rows;
}

Result<ExplainedRow> explained_row(const RunsRequest& request) {
  TPSIM_TRY(const std::vector<PublishedRun> runs, rows_of_table(request.table));
  TPSIM_TRY(RunLoader loader, run_loader(request.overrides));
  ExplainedRow row;
  TPSIM_TRY(row.run, row_of_table(runs, request.row));
  TPSIM_TRY(RunSetup setup, loader.setup(row.run));
  row.outcome = predict_run(loader, row.run);
  row.planned.plan = setup.plan;
  TPSIM_TRY(row.planned.predicted, simulate(setup.scenario, setup.plan));
  NamedScenario& named = row.named;
  named.scenario = setup.scenario;
  named.cluster = setup.scenario.cluster.name;
  named.profile = setup.scenario.profile.name;
  named.stack = setup.scenario.stack.name;
  named.parts = setup.stated_parts;
  return row;
}

}  // namespace tpsim::app
