// Why a space holds no legal plan: of all reasons the one that stopped the combinations that came
// furthest, with the numbers that it is about.
#pragma once

#include <string>

#include "core/scenario/scenario.h"
#include "plans/search/search.h"

namespace tpsim {

// "global batch does not divide by dp (1,024 sequences; dp would be 384, 192, 96 ...)", or, where
// no combination could be enumerated, the degree that divides nothing: "ep = 64 does not divide the
// 160 experts (nearest: 40, 80)". Empty if neither is known.
std::string deciding_reason(const Scenario& scenario, const SearchSpace& space,
                            const SearchResult& found);

}  // namespace tpsim
