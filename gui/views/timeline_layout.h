// Layout of the timeline: the rectangles of the spans in a time window. This header does not draw,
// so that the layout can be tested and timed.
//
// Each stage has a lane for compute, and a thin lane below for overlapped transfers. The first
// visible span is found by binary search. A pixel that has only parts of narrower spans is divided
// in height by their shares of its time, so that the area of each kind is its time, and a frame has
// at most lanes x pixels x kinds rectangles.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/program/timeline.h"
#include "gui/draw/palette.h"

namespace tpsim::gui {

struct TimelineIndex {
  // Indices of spans by lane, in order of start time. Lane 2s contains the compute of stage s, lane
  // 2s + 1 its transfers.
  std::vector<std::vector<std::uint32_t>> lanes;
  std::int64_t stages() const { return static_cast<std::int64_t>(lanes.size()) / 2; }
};

TimelineIndex index_of(const Timeline& timeline);

// The visible time range, and its mapping between seconds and pixels.
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
  float top = 0, bottom = 1;  // shares of the lane's height
  std::uint32_t lane = 0;
  std::uint32_t span = 0;  // index into the timeline's spans; kManySpans if narrower than a pixel
  Rgba color;
};

// Spans to highlight, by index; the others are faded. Empty: no span is faded.
using SpanMask = std::vector<bool>;

struct TimelineColors {
  std::array<Rgba, kSpanKindCount> span;
  Rgba background;  // faded spans are mixed with this color
};

// Appends to `rects` the rectangles of all visible lanes. `rows`: height of a lane of compute and
// of transfers in whole pixels, to which heights are rounded so that errors cancel along a lane; 0:
// heights are not rounded.
void lay_out_timeline(const Timeline& timeline, const TimelineIndex& index,
                      const TimelineWindow& window, const SpanMask& mask,
                      const TimelineColors& colors, std::array<int, 2> rows,
                      std::vector<TimelineRect>& rects);

// Returns the span of a lane at a time; kManySpans if there is none.
std::uint32_t span_at(const Timeline& timeline, const TimelineIndex& index, std::size_t lane,
                      double seconds);

// A time in which a lane has no span.
struct TimelineGap {
  Picoseconds begin = 0, end = 0;
};
// Returns the gap of a lane at a time in which span_at() finds nothing.
TimelineGap gap_at(const Timeline& timeline, const TimelineIndex& index, std::size_t lane,
                   double seconds);

// Returns the window zoomed by `factor` around the time `about`, limited to the step. A factor
// below one zooms in.
TimelineWindow zoomed(TimelineWindow window, double factor, double about, double step);
TimelineWindow panned(TimelineWindow window, double seconds, double step);

}  // namespace tpsim::gui
