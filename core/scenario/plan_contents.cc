#include "core/scenario/plan_contents.h"

#include "core/scenario/plan_json.h"

namespace tpsim {

void note_contents(const Catalogue& catalogue, PlanFile& file) {
  const auto hash = [&](CatalogueKind kind, const std::string& name) {
    const auto found = catalogue.contents_hash(kind, name);
    return found.ok() ? *found : std::string();
  };
  file.contents.cluster = hash(CatalogueKind::kClusters, file.cluster);
  file.contents.profile = hash(CatalogueKind::kProfiles, file.profile);
  file.contents.stack = hash(CatalogueKind::kStacks, file.stack);
}

Status save_with_contents(const std::filesystem::path& path, PlanFile file) {
  const Result<Catalogue> catalogue = Catalogue::open();
  if (catalogue.ok()) note_contents(*catalogue, file);
  return save_plan(path, file);
}

}  // namespace tpsim
