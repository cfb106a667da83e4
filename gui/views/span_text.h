// Descriptions of the spans of a timeline, for tooltips.
#pragma once

#include <cstdint>
#include <string>

#include "gui/views/views.h"

namespace tpsim::gui {

// Returns what the span is, its time, and the terms of its work. `index`: into the spans of the
// view's timeline.
std::string span_text(const PlanView& view, std::uint32_t index);

// Returns the description of a time in which a stage waits.
std::string bubble_text(std::int64_t stage, const TimelineGap& gap);

}  // namespace tpsim::gui
