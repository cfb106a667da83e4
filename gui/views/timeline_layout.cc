#include "gui/views/timeline_layout.h"

#include <algorithm>
#include <cmath>

namespace tpsim::gui {
namespace {

constexpr double kPicosecond = 1e-12;
constexpr double kShortestWindow = 1e-6;  // seconds

double begin_of(const TimelineSpan& span) { return static_cast<double>(span.begin) * kPicosecond; }
double end_of(const TimelineSpan& span) { return static_cast<double>(span.end) * kPicosecond; }

Rgba faded_color(const TimelineColors& colors, std::size_t kind) {
  return mix(colors.span[kind], colors.background, 0.8);
}

// The spans narrower than a pixel of a lane, pixel by pixel. Kinds are stacked in height by their
// shares of the pixel's time, highlighted spans above faded ones.
class Column {
 public:
  Column(std::uint32_t lane, const TimelineColors& colors, int rows,
         std::vector<TimelineRect>& rects)
      : lane_(lane), colors_(colors), rows_(rows), rects_(rects) {}

  // Adds a span, or its part in this pixel and its part in the next one.
  void add(double left, double right, SpanKind kind, bool is_faded) {
    const std::size_t part = static_cast<std::size_t>(kind) + (is_faded ? kSpanKindCount : 0);
    while (left < right) {
      const double pixel = std::floor(left), end = std::min(right, pixel + 1);
      if (pixel >= right_) begin(pixel);
      pixels_[part] += end - left;
      left = end;
    }
  }

  // Draws the pixel, up to a wide span that begins at `end`.
  void flush(double end) {
    const double width = std::min(end, right_) - left_;
    double used = 0;
    for (std::size_t part = 0; part < pixels_.size() && width > 0; ++part) {
      if (pixels_[part] == 0) continue;
      const double share = pixels_[part] / width;
      double height = std::min(share, 1 - used);
      if (rows_ > 0) {
        const double wanted = pixels_[part] * rows_ + owed_[part];
        height = std::clamp(std::round(wanted / width) / rows_, 0.0, 1 - used);
        owed_[part] = wanted - height * rows_ * width;
      }
      const std::size_t kind = part % kSpanKindCount;
      const Rgba color = part < kSpanKindCount ? colors_.span[kind] : faded_color(colors_, kind);
      if (height > 0) {
        rects_.push_back({static_cast<float>(left_), static_cast<float>(left_ + width),
                          static_cast<float>(used), static_cast<float>(used + height), lane_,
                          kManySpans, color});
      }
      used += height;
    }
    pixels_ = {};
    right_ = left_;
  }

  // The next pixel begins after a wide span that ends at `end`.
  void skip_to(double end) { skipped_ = end; }

 private:
  void begin(double pixel) {
    flush(pixel);
    left_ = std::max(pixel, skipped_);
    right_ = pixel + 1;
  }

  static constexpr std::size_t kParts = 2 * std::size_t{kSpanKindCount};  // highlighted, then faded

  std::uint32_t lane_;
  const TimelineColors& colors_;
  int rows_;
  std::vector<TimelineRect>& rects_;
  double left_ = 0, right_ = 0, skipped_ = 0;
  std::array<double, kParts> pixels_{};  // of each kind
  std::array<double, kParts> owed_{};    // area that rounding has left out
};

// Returns the first span of a lane that ends after `seconds`. The ends in a lane are sorted:
// compute spans do not overlap, and all transfers take equally long.
std::size_t first_ending_after(const Timeline& timeline, const std::vector<std::uint32_t>& lane,
                               double seconds) {
  const auto found = std::partition_point(lane.begin(), lane.end(), [&](std::uint32_t span) {
    return end_of(timeline.spans[span]) <= seconds;
  });
  return static_cast<std::size_t>(found - lane.begin());
}

}  // namespace

TimelineIndex index_of(const Timeline& timeline) {
  TimelineIndex index;
  index.lanes.resize(static_cast<std::size_t>(2 * timeline.stages));
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const TimelineSpan& span = timeline.spans[i];
    const std::size_t lane =
        static_cast<std::size_t>(2 * span.stage) + (span.kind == SpanKind::kTransfer ? 1 : 0);
    if (span.end > span.begin) index.lanes[lane].push_back(static_cast<std::uint32_t>(i));
  }
  for (std::vector<std::uint32_t>& lane : index.lanes) {
    std::stable_sort(lane.begin(), lane.end(), [&](std::uint32_t a, std::uint32_t b) {
      return timeline.spans[a].begin < timeline.spans[b].begin;
    });
  }
  return index;
}

void lay_out_timeline(const Timeline& timeline, const TimelineIndex& index,
                      const TimelineWindow& window, const SpanMask& mask,
                      const TimelineColors& colors, std::array<int, 2> rows,
                      std::vector<TimelineRect>& rects) {
  const double scale = window.width / (window.end - window.begin);
  for (std::size_t l = 0; l < index.lanes.size(); ++l) {
    const std::vector<std::uint32_t>& lane = index.lanes[l];
    const auto lane_id = static_cast<std::uint32_t>(l);
    Column column(lane_id, colors, rows[l % 2], rects);
    for (std::size_t i = first_ending_after(timeline, lane, window.begin); i < lane.size(); ++i) {
      const TimelineSpan& span = timeline.spans[lane[i]];
      const double begin = begin_of(span);
      if (begin >= window.end) break;
      const double left = std::max(0.0, (begin - window.begin) * scale);
      const double right = std::min(window.width, (end_of(span) - window.begin) * scale);
      const bool is_faded = !mask.empty() && !mask[lane[i]];
      if (right - left < 1.0) {
        column.add(left, right, span.kind, is_faded);
        continue;
      }
      column.flush(left);
      column.skip_to(right);
      const auto kind = static_cast<std::size_t>(span.kind);
      const Rgba color = is_faded ? faded_color(colors, kind) : colors.span[kind];
      rects.push_back(
          {static_cast<float>(left), static_cast<float>(right), 0, 1, lane_id, lane[i], color});
    }
    column.flush(window.width);
  }
}

std::uint32_t span_at(const Timeline& timeline, const TimelineIndex& index, std::size_t lane,
                      double seconds) {
  if (lane >= index.lanes.size()) return kManySpans;
  const std::vector<std::uint32_t>& spans = index.lanes[lane];
  const std::size_t i = first_ending_after(timeline, spans, seconds);
  if (i == spans.size() || begin_of(timeline.spans[spans[i]]) > seconds) return kManySpans;
  return spans[i];
}

TimelineGap gap_at(const Timeline& timeline, const TimelineIndex& index, std::size_t lane,
                   double seconds) {
  const std::vector<std::uint32_t>& spans = index.lanes[lane];
  const std::size_t next = first_ending_after(timeline, spans, seconds);
  return {next == 0 ? 0 : timeline.spans[spans[next - 1]].end,
          next == spans.size() ? timeline.end : timeline.spans[spans[next]].begin};
}

TimelineWindow zoomed(TimelineWindow window, double factor, double about, double step) {
  const double span = std::clamp((window.end - window.begin) * factor, kShortestWindow, step);
  const double share = (about - window.begin) / (window.end - window.begin);
  window.begin = about - share * span;
  window.end = window.begin + span;
  return panned(window, 0, step);
}

TimelineWindow panned(TimelineWindow window, double seconds, double step) {
  const double span = std::min(window.end - window.begin, step);
  window.begin = std::clamp(window.begin + seconds, 0.0, step - span);
  window.end = window.begin + span;
  return window;
}

}  // namespace tpsim::gui
