// Hashes of the files behind the names in a saved plan.
#pragma once

#include <filesystem>

#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_file.h"

namespace tpsim {

// Sets the hashes. A name without a file on this machine gets an empty hash, for example a cluster
// that is described by its profile only.
void note_contents(const Catalogue& catalogue, PlanFile& file);

// Saves the plan with hashes of the files behind its names, and with paths relative to the plan.
// The web page has no data folder and writes no hashes.
Status save_with_contents(const std::filesystem::path& path, PlanFile file);

}  // namespace tpsim
