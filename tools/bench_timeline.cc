// Measures the CPU time in milliseconds to compute a frame's timeline before drawing: culling,
// merging and layout of 100,000 spans at several zoom levels. Build the target
// tpsim_bench_timeline.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "gui/views/timeline_layout.h"

namespace tpsim::gui {
namespace {

constexpr std::int64_t kStages = 16, kMicroBatches = 3125;  // 100,000 spans (forward and backward)
constexpr int kFrames = 50;

Timeline full_timeline() {
  Timeline timeline;
  timeline.stages = kStages;
  for (std::int64_t s = 0; s < kStages; ++s) {
    Picoseconds at = s * 1'000'000;
    for (std::int64_t m = 0; m < kMicroBatches; ++m) {
      timeline.spans.push_back({s, SpanKind::kForward, s, m, at, at + 1'000'000});
      timeline.spans.push_back({s, SpanKind::kBackward, s, m, at + 1'000'000, at + 3'000'000});
      at += 3'100'000;
    }
    timeline.end = std::max(timeline.end, at);
  }
  return timeline;
}

void measure(const Timeline& timeline, const TimelineIndex& index, double zoom) {
  using Clock = std::chrono::steady_clock;
  const double step = to_seconds(timeline.end).value();
  const TimelineColors colors{palette_of(Theme::kLight).span, {255, 255, 255, 255}};
  std::vector<double> times;
  std::size_t rectangles = 0;
  for (int i = 0; i < kFrames; ++i) {
    const auto start = Clock::now();
    std::vector<TimelineRect> rects;
    lay_out_timeline(timeline, index, {0, step / zoom, 1920}, {}, colors, rects);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    rectangles = rects.size();
  }
  std::nth_element(times.begin(), times.begin() + kFrames / 2, times.end());
  fmt::print("zoom {:>4.0f}: {:.2f} ms a frame, {} rectangles drawn\n", zoom, times[kFrames / 2],
             rectangles);
}

}  // namespace
}  // namespace tpsim::gui

int main() {
  using namespace tpsim;
  using namespace tpsim::gui;
  const Timeline timeline = full_timeline();
  const TimelineIndex index = index_of(timeline);
  fmt::print("{} spans on {} stages, 1920 pixels wide\n", timeline.spans.size(), timeline.stages);
  for (const double zoom : {1.0, 4.0, 30.0, 1000.0}) measure(timeline, index, zoom);
}
