// Text search for spans in a timeline.
#pragma once

#include <string>

#include "core/program/timeline.h"
#include "gui/views/timeline_layout.h"

namespace tpsim::gui {

// Returns the spans that match all words. A word is a span kind or its prefix ("backward"), a
// micro-batch ("12"), a stage ("stage 3" or "s3"), or a model chunk ("chunk 5").
SpanMask matching_spans(const Timeline& timeline, const std::string& words);

// Returns the first span of the mask that starts after the given time. If there is none, returns
// the first span of the mask, or kManySpans if the mask is empty.
std::uint32_t next_span(const Timeline& timeline, const SpanMask& mask, double after_seconds);

}  // namespace tpsim::gui
