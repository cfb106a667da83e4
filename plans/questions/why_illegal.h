// Explains why a space has no legal plan. Selects the reason that rejected the combinations which
// passed the most checks, and adds the numbers involved.
#pragma once

#include <string>

#include "core/scenario/scenario.h"
#include "plans/search/search.h"

namespace tpsim {

// Returns the reason for a batch that no layout of the GPUs divides, where another batch is legal.
std::string batch_reason(const Scenario& scenario, const SearchSpace& space);

// Returns the deciding reason, such as "global batch does not divide by dp (the batch has 1,024
// sequences; layouts of these GPUs have dp = 384, 192, 96 ...)". If no combination could be
// enumerated, returns the requested degree that does not divide, such as "ep = 64 does not divide
// the 160 experts (nearest: 40, 80)". Empty if no reason is found.
std::string deciding_reason(const Scenario& scenario, const SearchSpace& space,
                            const SearchResult& found);

}  // namespace tpsim
