// What the names in a saved plan stood for: a plan that is opened where its cluster, profile or
// stack has other contents says so.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "core/catalogue.h"
#include "core/plan_contents.h"
#include "core/plan_file.h"
#include "core/result.h"

namespace tpsim::cli {

// "profile h100-sxm": each that has other contents here than when the plan was saved. Empty for a
// plan that notes none.
std::vector<std::string> changed_contents(const Catalogue& catalogue, const PlanFile& file);

// Says so on stderr, once for each, where a person called the program; an entry that an option
// replaces is left out.
void say_changed_contents(const Arguments& arguments, const Catalogue& catalogue,
                          const PlanFile& file);

}  // namespace tpsim::cli
