// Why a space holds no legal plan: of all reasons the one that stopped the combinations that came
// furthest, with the numbers that it is about.
#pragma once

#include <string>

#include "core/scenario/scenario.h"
#include "plans/search/search.h"

namespace tpsim {

// "global batch does not divide by dp: 1,024 sequences; dp would be 384, 192, 96 ..."; empty where
// nothing was ruled out.
std::string deciding_reason(const Scenario& scenario, const SearchSpace& space,
                            const SearchResult& found);

}  // namespace tpsim
