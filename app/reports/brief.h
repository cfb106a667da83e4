// A short form of every report of --json: the numbers that decide, for programs with little room
// (docs/json.md).
#pragma once

#include <cstddef>

#include "core/json/json_value.h"

namespace tpsim::app {

inline constexpr std::size_t kMostBriefBytes = 1000;  // on one line

// Returns {"version": "tpsim-brief/1", "of": version of the report, ...} of at most
// kMostBriefBytes: inputs, the best plan as options that differ from their defaults with its
// prediction, up to three alternatives, what was assumed, and the next question to ask. Reports
// without plans keep their first values. Numbers have four digits, and texts end where no room is
// left.
JsonValue brief_report(const JsonValue& report);

}  // namespace tpsim::app
