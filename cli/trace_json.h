// A timeline in the Chrome trace event format, which Perfetto and chrome://tracing open.
#pragma once

#include <string>
#include <string_view>

#include "core/timeline.h"

namespace tpsim::cli {

// One track for each pipeline stage with complete events in microseconds. Transfers overlap what a
// stage computes, so they have tracks of their own below it, as many as run at once.
std::string trace_json(const Timeline& timeline, std::string_view title);

}  // namespace tpsim::cli
