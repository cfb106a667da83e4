// What the names in a saved plan stand for, as hashes of their contents.
#pragma once

#include <filesystem>

#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_file.h"

namespace tpsim {

// Of names that mean nothing here the hash is empty: a machine that only its profile describes has
// no file.
void note_contents(const Catalogue& catalogue, PlanFile& file);

// Saves the plan with hashes of what its names stand for here, and with paths relative to it. A
// page has no data folder, and so no hashes.
Status save_with_contents(const std::filesystem::path& path, PlanFile file);

}  // namespace tpsim
