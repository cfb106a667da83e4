#include <fmt/format.h>

#include <array>

#include "cli/options/inputs.h"
#include "cli/options/terminal.h"
#include "cli/options/wrapping.h"
#include "core/base/standard_streams.h"

namespace tpsim::cli {
namespace {

struct Part {
  CatalogueKind kind;
  const char* word;
  Opt option;  // overrides the entry that the plan names
  std::string PlanFile::*name;
  std::string PlanContents::*hash;
};
const std::array kParts = {
    Part{CatalogueKind::kClusters, "cluster", Opt::kCluster, &PlanFile::cluster,
         &PlanContents::cluster},
    Part{CatalogueKind::kProfiles, "profile", Opt::kProfile, &PlanFile::profile,
         &PlanContents::profile},
    Part{CatalogueKind::kStacks, "stack", Opt::kStack, &PlanFile::stack, &PlanContents::stack}};

bool has_changed(const Catalogue& catalogue, const PlanFile& file, const Part& part) {
  const std::string& noted = file.contents.*part.hash;
  if (noted.empty()) return false;
  const auto here = catalogue.contents_hash(part.kind, file.*part.name);
  return here.ok() && *here != noted;  // loading a missing entry reports its own error
}

}  // namespace

std::vector<std::string> changed_contents(const Arguments& arguments, const Catalogue& catalogue,
                                          const PlanFile& file) {
  std::vector<std::string> changed;
  for (const Part& part : kParts) {
    const bool replaced = arguments.has(part.option) || arguments.has(Opt::kCluster);
    if (replaced || !has_changed(catalogue, file, part)) continue;
    changed.push_back(fmt::format("{} {}", part.word, printable(file.*part.name)));
  }
  return changed;
}

void say_changed_contents(const Arguments& arguments, const Catalogue& catalogue,
                          const PlanFile& file) {
  if (arguments.program.empty() || arguments.has(Opt::kQuiet)) return;
  for (const std::string& entry : changed_contents(arguments, catalogue, file)) {
    say(fmt::format("tpsim: the {} has changed since the plan was saved\n", entry));
  }
}

}  // namespace tpsim::cli
