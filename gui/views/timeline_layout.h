// The timeline of a step as rectangles: which spans a window of time shows, and where. Pure
// arithmetic, so that it can be tested and timed without drawing.
//
// A stage has a lane for what it computes and a thin one below for transfers, which overlap it.
// Spans outside the window cost a binary search; spans narrower than a pixel are merged into one
// rectangle with the mean of their colours, so a frame costs at most lanes x pixels rectangles.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/program/timeline.h"
#include "gui/draw/palette.h"

namespace tpsim::gui {

struct TimelineIndex {
  // Indices of spans by lane, in order of begin: lane 2s computes stage s, 2s + 1 transfers.
  std::vector<std::vector<std::uint32_t>> lanes;
  std::int64_t stages() const { return static_cast<std::int64_t>(lanes.size()) / 2; }
};

TimelineIndex index_of(const Timeline& timeline);

// What is seen: seconds mapped on pixels.
struct TimelineWindow {
  double begin = 0;  // seconds
  double end = 1;
  double width = 1;  // pixels

  double x_of(double seconds) const { return (seconds - begin) / (end - begin) * width; }
  double seconds_at(double x) const { return begin + x / width * (end - begin); }
};

inline constexpr std::uint32_t kManySpans = 0xFFFFFFFF;

struct TimelineRect {
  float left = 0, right = 0;  // pixels from the window's left edge
  std::uint32_t lane = 0;
  std::uint32_t span = 0;  // index into the timeline's spans; kManySpans when merged
  Rgba color;
};

// Which spans stand out; the others are faded. Empty: all are drawn alike.
using SpanMask = std::vector<bool>;

struct TimelineColors {
  std::array<Rgba, kSpanKindCount> span;
  Rgba background;  // towards which spans fade
};

// Appends to `rects` the rectangles of the lanes in [first_lane, last_lane).
void lay_out_timeline(const Timeline& timeline, const TimelineIndex& index,
                      const TimelineWindow& window, const SpanMask& mask,
                      const TimelineColors& colors, std::vector<TimelineRect>& rects);

// The span of a lane that covers a moment; kManySpans when none does.
std::uint32_t span_at(const Timeline& timeline, const TimelineIndex& index, std::size_t lane,
                      double seconds);

// The window after zooming by `factor` (below one: closer) about a moment, kept inside the step.
TimelineWindow zoomed(TimelineWindow window, double factor, double about, double step);
TimelineWindow panned(TimelineWindow window, double seconds, double step);

}  // namespace tpsim::gui
