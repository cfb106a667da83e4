// Parts of software that plans may have in several ways: `--dispatcher alltoall,deepep`, or the
// values that a stack lists among its choices.
#pragma once

#include <string>

#include "cli/inputs.h"
#include "cli/terminal.h"
#include "core/json_value.h"
#include "core/result.h"
#include "plans/search.h"

namespace tpsim::cli {

// Searches with every combination of the values that `named` leaves open and gives it the one whose
// best plan has the shortest step, so that what follows is planned with that; notes all of them in
// named.tried, the best first. Nothing happens where nothing is open. Fails beyond 64 combinations.
Status choose_parts(NamedScenario& named, const SearchSpace& space, int threads,
                    const Terminal& terminal = {});

// "dispatcher=deepep 10.2 s, dispatcher=alltoall 11.4 s"; empty where nothing was open.
std::string tried_view(const Terminal& terminal, const NamedScenario& named);
// Adds them as "parts_searched".
void add_tried(JsonValue& report, const NamedScenario& named);

}  // namespace tpsim::cli
