#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "cli/options/answers.h"
#include "cli/options/values.h"
#include "core/base/shipped_data.h"
#include "core/base/text.h"
#include "core/scenario/catalogue.h"
#include "sim/step/simulate.h"

namespace tpsim::cli {
namespace {

Result<PublishedRun> row_of_table(const std::vector<PublishedRun>& runs, const std::string& id) {
  std::vector<std::string> ids;
  for (const PublishedRun& run : runs) {
    if (run.id == id) return run;
    ids.push_back(run.id);
  }
  return bad_input(fmt::format("the table has no row '{}'", id), "--row", meant(nearest(id, ids)));
}

// Checks the names that options give, so that a wrong name is reported once and not for every row.
Status check_names(const Arguments& arguments, const Catalogue& catalogue) {
  if (const auto& name = arguments[Opt::kCluster]) {
    TPSIM_TRY_STATUS(blaming(catalogue.load_cluster(*name), arguments, Opt::kCluster));
  }
  if (const auto& name = arguments[Opt::kStack]) {
    TPSIM_TRY_STATUS(blaming(catalogue.load_stack(*name), arguments, Opt::kStack));
  }
  if (const auto& name = arguments[Opt::kProfile]) {
    TPSIM_TRY_STATUS(blaming(catalogue.load_profile(*name), arguments, Opt::kProfile));
  }
  return Ok{};
}

}  // namespace

Result<RunLoader> run_loader(const Arguments& arguments) {
  const auto given = [&](Opt opt) { return arguments[opt].value_or(std::string()); };
  TPSIM_TRY(Catalogue catalogue, Catalogue::open());
  TPSIM_TRY_STATUS(check_names(arguments, catalogue));
  const std::filesystem::path known = catalogue.directory() / "published_runs/environments.json";
  std::vector<RunEnvironment> environments;  // empty if the data folder has no environments
  if (file_is_there(known)) {
    TPSIM_TRY(environments, read_run_environments(known));
  }
  TPSIM_TRY(const double node_gbps, node_gbps_of(arguments));
  RunLoader loader(std::move(catalogue), std::move(environments),
                   {given(Opt::kCluster), given(Opt::kStack), given(Opt::kProfile), node_gbps});
  TPSIM_TRY_STATUS(loader.names_status());
  return loader;
}

Result<std::filesystem::path> run_table(const Arguments& arguments) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  return blaming(catalogue.find_runs(*arguments[Opt::kRuns]), arguments, Opt::kRuns);
}

Result<ExplainedRow> explained_row(const Arguments& arguments) {
  if (!arguments.has(Opt::kRow)) {
    return bad_input("the row to explain is missing", "--row", "give the id of a row of the table");
  }
  TPSIM_TRY(const std::filesystem::path table, run_table(arguments));
  TPSIM_TRY(const std::vector<PublishedRun> runs, read_run_table(table));
  TPSIM_TRY(RunLoader loader, run_loader(arguments));
  ExplainedRow row;
  TPSIM_TRY(row.run, row_of_table(runs, *arguments[Opt::kRow]));
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

}  // namespace tpsim::cli
