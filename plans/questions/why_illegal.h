// Explains a space without legal plans. Selects the reason that stopped the combinations that
// passed most checks, with the numbers involved.
#pragma once

#include <string>

#include "core/scenario/scenario.h"
#include "plans/search/search.h"

namespace tpsim {

// Returns the deciding reason, such as "global batch does not divide by dp (1,024 sequences; dp
// would be 384, 192, 96 ...)". If no combination could be enumerated, returns the degree that does
// not divide: "ep = 64 does not divide the 160 experts (nearest: 40, 80)". Empty if neither is
// found.
std::string deciding_reason(const Scenario& scenario, const SearchSpace& space,
                            const SearchResult& found);

}  // namespace tpsim
