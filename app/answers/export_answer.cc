#include "app/answers/export_answer.h"

#include "core/scenario/catalogue.h"
#include "frameworks/launch/framework.h"

namespace tpsim::app {
namespace {

// Exports a plan that cannot be predicted. `why` is the reason, and the files are not checked.
Result<ExportAnswer> unchecked_export(const Catalogue& catalogue, const PlanFile& file,
                                      const Error& why, ExportAnswer answer) {
  TPSIM_TRY(const ClusterSpec cluster, catalogue.load_cluster(file.cluster));
  TPSIM_TRY(const StackSpec software, catalogue.load_stack(file.stack));
  TPSIM_TRY(answer.files,
            export_plan(answer.stack, file, launch_hosts(cluster, gpu_count(file.plan)), software));
  answer.unchecked = to_string(why);
  return answer;
}

}  // namespace

Result<ExportAnswer> export_answer(const ExportRequest& request) {
  ExportAnswer answer;
  answer.stack = request.to;
  const PlanFile& file = *request.scenario.file;
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  const Result<NamedScenario> named = load_scenario(request.scenario, catalogue);
  if (!named.ok() && request.allow_loss) {
    return unchecked_export(catalogue, file, named.error(), std::move(answer));
  }
  if (!named.ok()) return named.error();
  if (!named->scenario.cluster.unequal_nodes.empty()) {
    return bad_input("tpsim cannot write launch files for nodes that differ yet", "export",
                     "tpsim simulate plan.json --rank-file ranks.txt writes the host of each rank");
  }
  TPSIM_TRY(const StackSpec own, catalogue.load_stack(named->stack));
  Result<CheckedExport> checked = checked_export(answer.stack, file, named->scenario, own);
  if (!checked.ok() && request.allow_loss) {
    return unchecked_export(catalogue, file, checked.error(), std::move(answer));
  }
  if (!checked.ok()) return checked.error();
  answer.run = checked->run;
  answer.loss = checked->loss;
  Status accepted = check_fit(request.risk, *named, checked->run);
  if (accepted.ok() && !request.allow_loss) accepted = check_loss(answer.stack, checked->loss);
  if (accepted.ok()) {
    answer.files = std::move(checked->files);
  } else {
    answer.refused = accepted.error();
  }
  return answer;
}

std::optional<LaunchStack> advised_export(const NamedScenario& named, const Plan& plan) {
  const Framework* const framework = framework_of(named.scenario.stack.launcher);
  const Result<Catalogue> catalogue = Catalogue::open();
  if (framework == nullptr || !catalogue.ok()) return std::nullopt;
  if (!named.scenario.cluster.unequal_nodes.empty()) return std::nullopt;
  const Result<StackSpec> own = catalogue->load_stack(named.stack);
  if (!own.ok()) return std::nullopt;
  const PlanFile file = plan_file_of(named, plan);
  std::vector<LaunchStack> candidates = {framework->stack()};
  if (const auto other = framework->alternative()) candidates.push_back(*other);
  for (const LaunchStack stack : candidates) {
    const Result<CheckedExport> checked = checked_export(stack, file, named.scenario, *own);
    const bool is_written = checked.ok() && fits_in_memory(checked->run.predicted) &&
                            check_loss(stack, checked->loss).ok();
    if (is_written) return stack;
  }
  return std::nullopt;
}

}  // namespace tpsim::app
