// A step as a file for trace viewers.
#pragma once

#include <string>
#include <string_view>

#include "sim/memory/peak_memory.h"

namespace tpsim::app {

// Returns a timeline in the Chrome trace event format for Perfetto and chrome://tracing. Each
// pipeline stage has a compute track with complete events in microseconds, and additional tracks
// for concurrent transfers, and a counter of its memory, whose peak is the predicted memory.
std::string trace_json(const StepMemory& step, std::string_view title);

}  // namespace tpsim::app
