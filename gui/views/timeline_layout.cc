#include "gui/views/timeline_layout.h"

#include <algorithm>

namespace tpsim::gui {
namespace {

constexpr double kPicosecond = 1e-12;
constexpr double kShortestWindow = 1e-6;  // seconds

double begin_of(const TimelineSpan& span) { return static_cast<double>(span.begin) * kPicosecond; }
double end_of(const TimelineSpan& span) { return static_cast<double>(span.end) * kPicosecond; }

Rgba faded_color(const TimelineColors& colors, std::size_t kind) {
  return mix(colors.span[kind], colors.background, 0.8);
}

// Merges spans narrower than a pixel into one rectangle. Its color is that of the span kind with
// the most time, because a mixed color would not be in the legend.
class Merge {
 public:
  void add(std::uint32_t span, double left, double right, SpanKind kind, bool is_faded) {
    if (count_ == 0) left_ = left;
    right_ = right;
    span_ = count_ == 0 ? span : kManySpans;
    ++count_;
    // Highlighted spans determine the color even if faded spans take more time.
    (is_faded ? faded_ : lit_)[static_cast<std::size_t>(kind)] += std::max(right - left, 1e-6);
  }
  bool is_empty() const { return count_ == 0; }
  double left() const { return left_; }
  double right() const { return right_; }

  void flush(std::uint32_t lane, const TimelineColors& colors, std::vector<TimelineRect>& rects) {
    if (count_ == 0) return;
    const auto lit = std::max_element(lit_.begin(), lit_.end());
    const auto faded = std::max_element(faded_.begin(), faded_.end());
    const Rgba color = *lit > 0
                           ? colors.span[static_cast<std::size_t>(lit - lit_.begin())]
                           : faded_color(colors, static_cast<std::size_t>(faded - faded_.begin()));
    const double width = std::max(1.0, right_ - left_);
    rects.push_back(
        {static_cast<float>(left_), static_cast<float>(left_ + width), lane, span_, color});
    *this = Merge();
  }

 private:
  int count_ = 0;
  double left_ = 0, right_ = 0;
  std::array<double, kSpanKindCount> lit_{}, faded_{};  // pixels by span kind
  std::uint32_t span_ = 0;
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
                      const TimelineColors& colors, std::vector<TimelineRect>& rects) {
  const double scale = window.width / (window.end - window.begin);
  for (std::size_t l = 0; l < index.lanes.size(); ++l) {
    const std::vector<std::uint32_t>& lane = index.lanes[l];
    const auto lane_id = static_cast<std::uint32_t>(l);
    Merge merge;
    for (std::size_t i = first_ending_after(timeline, lane, window.begin); i < lane.size(); ++i) {
      const TimelineSpan& span = timeline.spans[lane[i]];
      const double begin = begin_of(span);
      if (begin >= window.end) break;
      const double left = std::max(0.0, (begin - window.begin) * scale);
      const double right = std::min(window.width, (end_of(span) - window.begin) * scale);
      const bool is_faded = !mask.empty() && !mask[lane[i]];
      const auto kind = static_cast<std::size_t>(span.kind);
      const Rgba color = is_faded ? faded_color(colors, kind) : colors.span[kind];
      // A span of at least one pixel gets its own rectangle. Narrower spans are merged until they
      // fill a pixel.
      if (right - left >= 1.0) {
        merge.flush(lane_id, colors, rects);
        rects.push_back(
            {static_cast<float>(left), static_cast<float>(right), lane_id, lane[i], color});
        continue;
      }
      if (!merge.is_empty() && (left - merge.right() >= 1.0 || right - merge.left() > 1.5)) {
        merge.flush(lane_id, colors, rects);
      }
      merge.add(lane[i], left, right, span.kind, is_faded);
    }
    merge.flush(lane_id, colors, rects);
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
