// The plan that comes closest to fitting, for searches in which no plan fits.
#pragma once

#include "plans/search/enumerate.h"
#include "plans/search/family_search.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

// Returns the plan with the lowest peak memory among the plans whose host memory suffices; the
// first such plan in enumeration order. Without such a plan, `cut` is null.
Candidate nearest_miss(LayerPricer& pricer, const PlanSpace& plans);

}  // namespace tpsim
