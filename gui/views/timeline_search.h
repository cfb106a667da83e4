// Finding spans of a timeline by words.
#pragma once

#include <string>

#include "core/program/timeline.h"
#include "gui/views/timeline_layout.h"

namespace tpsim::gui {

// Spans for which every word holds: a kind ("backward"; its beginning is enough), a micro-batch
// ("12"), a stage ("stage 3" or "s3"), a model chunk ("chunk 5").
SpanMask matching_spans(const Timeline& timeline, const std::string& words);

// Of the spans of a mask the first that begins after a moment, else the first of all; kManySpans
// where there is none.
std::uint32_t next_span(const Timeline& timeline, const SpanMask& mask, double after_seconds);

}  // namespace tpsim::gui
