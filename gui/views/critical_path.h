// The critical path of the pipeline: shortening any span on it shortens the step.
#pragma once

#include <cstdint>
#include <vector>

#include "core/program/timeline.h"

namespace tpsim::gui {

// Returns indices of spans in order of time, from the start of the step to its last span. Each span
// waits for the previous one: for its stage, or for its input.
std::vector<std::uint32_t> critical_path(const Timeline& timeline);

}  // namespace tpsim::gui
