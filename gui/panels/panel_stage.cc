// Bands of one stage below the timeline, on its axis: kernels and collectives by stream, and memory
// by category. Calls are pale where compute hides them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/numbers.h"
#include "gui/panels/panels.h"
#include "gui/views/stage_bands.h"

namespace tpsim::gui {
namespace {

constexpr float kLanesShare = 0.64F;  // of the height, the rest is memory

void draw_lanes(Ui& ui, Rect rect, float left, const TimelineWindow& window,
                const StageLanes& lanes, const StageBands& bands) {
  const float height = rect.height() / static_cast<float>(bands.streams.size());
  const float gap = height > 5 ? 1.0F : 0.0F;
  std::vector<TimelineRect> rects;
  lay_out_timeline(lanes.timeline, lanes.index, window, lanes.exposed,
                   {ui.colors.span, ui.colors.panel}, {static_cast<int>(height - gap), 0}, rects);
  for (const TimelineRect& one : rects) {
    const std::uint32_t stream = one.lane / 2;
    const float top = rect.min.y + height * static_cast<float>(stream);
    const float usable = height - gap;
    const Rect box{{rect.min.x + one.left, top + usable * one.top},
                   {rect.min.x + one.right, top + usable * one.bottom}};
    fill(ui, box, one.color);
    if (box.width() > 3) {  // a line in a lighter shade separates kernels of equal color
      fill(ui, {{box.max.x - 1, box.min.y}, box.max}, mix(one.color, ui.colors.panel, 0.5));
    }
  }
  const float letter = ui.fonts.small->FontSize;
  float free = rect.min.y - letter;  // below the last name
  for (std::size_t i = 0; i < bands.streams.size(); ++i) {
    const float middle = rect.min.y + height * (static_cast<float>(i) + 0.5F);
    if (middle - letter / 2 < free - ui.px(3)) continue;
    put_text(ui, ui.fonts.small, {left, middle - letter / 2}, ui.colors.dim,
             name_of(bands.streams[i]));
    free = middle + letter / 2;
  }
}

double gib_of(const MemoryColumn& column) {
  double bytes = 0;
  for (const double part : column) bytes += part;
  return bytes / kGiB;
}

void draw_memory_band(const Ui& ui, Rect rect, float left, const StageBands& bands,
                      const std::vector<MemoryColumn>& columns) {
  const float scale = rect.height() / static_cast<float>(std::max(1e-9, bands.peak_gib));
  std::size_t highest = 0;
  for (std::size_t x = 0; x < columns.size(); ++x) {
    const float at = rect.min.x + static_cast<float>(x);
    float bottom = rect.max.y;
    for (int part = 0; part < kMemoryPartCount; ++part) {
      const auto i = static_cast<std::size_t>(part);
      const float top = bottom - scale * static_cast<float>(columns[x][i] / kGiB);
      if (top < bottom) fill(ui, {{at, top}, {at + 1, bottom}}, ui.colors.memory[i]);
      bottom = std::min(bottom, top);
    }
    if (gib_of(columns[x]) > gib_of(columns[highest])) highest = x;
  }
  put_text(ui, ui.fonts.small, {left, rect.min.y - ui.px(2)}, ui.colors.dim, "memory");
  if (columns.empty()) return;
  const std::string text = fmt::format("{:.1f} GiB", gib_of(columns[highest]));
  const float half = text_size(ui.fonts.small, text).x / 2 + ui.px(3);
  const float x =
      std::clamp(rect.min.x + static_cast<float>(highest), rect.min.x + half, rect.max.x - half);
  const float letter = ui.fonts.small->FontSize;
  fill(ui, {{x - half, rect.min.y}, {x + half, rect.min.y + letter + ui.px(2)}}, ui.colors.panel,
       ui.px(3));
  put_text(ui, ui.fonts.small, {x, rect.min.y + ui.px(1)}, ui.colors.text, text, Align::kCenter);
}

std::string memory_text(const MemoryColumn& column) {
  std::string text = fmt::format("{:.1f} GiB", gib_of(column));
  for (int part = 0; part < kMemoryPartCount; ++part) {
    const double gib = column[static_cast<std::size_t>(part)] / kGiB;
    if (gib >= 0.05) text += fmt::format("\n{} {:.1f}", memory_part_name(part), gib);
  }
  return text;
}

std::string lane_text(const StageLanes& lanes, std::size_t lane, double seconds) {
  const std::uint32_t span = span_at(lanes.timeline, lanes.index, 2 * lane, seconds);
  if (span == kManySpans) return "";
  if (lanes.kernels[span] != nullptr) return kernel_text(*lanes.kernels[span]);
  const TimelineSpan& found = lanes.timeline.spans[span];
  if (!is_task(found.kind) && found.kind != SpanKind::kTransfer) {
    return fmt::format("{}, {}", name_of(found.kind),
                       time_text(to_seconds(found.end - found.begin)));
  }
  return "Several kernels. Zoom in to see each.";
}

}  // namespace

void toggle_bands(Ui& ui) {
  std::int64_t& stage = ui.state.timeline.stage;
  stage = stage >= 0 ? -1 : fullest_stage(ui.views.a->predicted.memory).stage;
}

void draw_stage_bands(Ui& ui, Rect rect, float left, const TimelineWindow& window,
                      bool is_hovered) {
  const StageBands& bands = *ui.views.bands;
  Rect upper = rect, lower = rect;
  upper.max.y = std::round(rect.min.y + kLanesShare * rect.height()) - ui.px(4);
  lower.min.y = upper.max.y + ui.px(6);
  const StageLanes lanes = lanes_in(bands, window);
  draw_lanes(ui, upper, left, window, lanes, bands);
  const std::vector<MemoryColumn> columns = memory_columns(bands, window);
  draw_memory_band(ui, lower, left, bands, columns);
  note_area(ui, "lanes of the stage", upper);
  note_area(ui, "memory of the stage", lower);
  const ImVec2 mouse = ImGui::GetMousePos();
  if (!is_hovered || !rect.holds(mouse)) return;
  std::string text;
  if (upper.holds(mouse)) {
    const float height = upper.height() / static_cast<float>(bands.streams.size());
    const auto lane = static_cast<std::size_t>((mouse.y - upper.min.y) / height);
    text = lane_text(lanes, lane, window.seconds_at(mouse.x - upper.min.x));
  } else if (lower.holds(mouse)) {
    const auto x = static_cast<std::size_t>(mouse.x - lower.min.x);
    if (x < columns.size()) text = memory_text(columns[x]);
  }
  if (text.empty()) return;
  ui.state.timeline.hovered = text;
  tooltip(ui, text.c_str());
}

}  // namespace tpsim::gui
