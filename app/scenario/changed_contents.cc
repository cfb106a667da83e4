#include <fmt/format.h>

#include <array>

#include "app/scenario/scenario_request.h"

namespace tpsim::app {
namespace {

struct Part {
  CatalogueKind kind;
  const char* word;
  std::string ScenarioRequest::*stated;  // overrides the entry that the plan names
  std::string PlanFile::*name;
  std::string PlanContents::*hash;
};
const std::array kParts = {Part{CatalogueKind::kClusters, "cluster", &ScenarioRequest::cluster,
                                &PlanFile::cluster, &PlanContents::cluster},
                           Part{CatalogueKind::kProfiles, "profile", &ScenarioRequest::profile,
                                &PlanFile::profile, &PlanContents::profile},
                           Part{CatalogueKind::kStacks, "stack", &ScenarioRequest::stack,
                                &PlanFile::stack, &PlanContents::stack}};

bool has_changed(const Catalogue& catalogue, const PlanFile& file, const Part& part) {
  const std::string& noted = file.contents.*part.hash;
  if (noted.empty()) return false;
  const auto here = catalogue.contents_hash(part.kind, file.*part.name);
  return here.ok() && *here != noted;  // loading a missing entry reports its own error
}

}  // namespace

std::vector<std::string> changed_contents(const ScenarioRequest& request,
                                          const Catalogue& catalogue) {
  std::vector<std::string> changed;
  if (!request.file) return changed;
  for (const Part& part : kParts) {
    const bool replaced = !(request.*part.stated).empty() || !request.cluster.empty();
    if (replaced || !has_changed(catalogue, *request.file, part)) continue;
    changed.push_back(fmt::format("{} {}", part.word, (*request.file).*part.name));
  }
  return changed;
}

}  // namespace tpsim::app
