// The critical path of the pipeline: the chain of spans that determines the length of the step.
#pragma once

#include <cstdint>
#include <vector>

#include "core/program/timeline.h"

namespace tpsim::gui {

// Returns indices of spans, ordered by time, from the start of the step to the span that ends last.
// Each span waits for the previous one, because it needs the same stage or the output.
std::vector<std::uint32_t> critical_path(const Timeline& timeline);

}  // namespace tpsim::gui
