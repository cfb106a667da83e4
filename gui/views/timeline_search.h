// Text search for spans of a timeline.
#pragma once

#include <string>

#include "core/program/timeline.h"
#include "gui/views/timeline_layout.h"

namespace tpsim::gui {

// Returns the spans that match every word: a kind ("backward", or a prefix), a micro-batch ("12"),
// a stage ("stage 3" or "s3"), a model chunk ("chunk 5").
SpanMask matching_spans(const Timeline& timeline, const std::string& words);

// Returns the first span of a mask that starts after a time, else the first span of the mask;
// kManySpans if the mask is empty.
std::uint32_t next_span(const Timeline& timeline, const SpanMask& mask, double after_seconds);

}  // namespace tpsim::gui
