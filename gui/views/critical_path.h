// The chain of work that makes the pipeline take as long as it does: shorten any span on it and the
// step gets shorter.
#pragma once

#include <cstdint>
#include <vector>

#include "core/program/timeline.h"

namespace tpsim::gui {

// Indices of spans in order of time, from the start of the step to its last span. Each one waits
// for the one before: the same stage was busy with it, or it made its input.
std::vector<std::uint32_t> critical_path(const Timeline& timeline);

}  // namespace tpsim::gui
