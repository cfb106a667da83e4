// The timeline panel: the step over time, stage by stage. Keys and mouse are as in the profiler
// Tracy: W, S and the wheel zoom, A, D and a right drag pan, a left drag measures, and a middle
// drag zooms to a range.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/numbers.h"
#include "gui/draw/axis.h"
#include "gui/panels/panels.h"
#include "gui/panels/span_masks.h"
#include "gui/views/breakdown.h"
#include "gui/views/span_text.h"
#include "gui/views/timeline_search.h"

namespace tpsim::gui {
namespace {

constexpr double kWheelFactor = 0.8;    // zoom per wheel notch; finer with Ctrl, coarser with Shift
constexpr double kKeySpeed = 1.6;       // window widths per second
constexpr double kPanOfNotch = 0.1;     // window widths per notch of a sideways wheel
constexpr float kMostStageHeight = 80;  // points
constexpr float kStagesShare = 0.25F;   // of the height, beside the bands of a stage

// The lanes of one plan on the screen.
struct Track {
  const PlanView* view;
  Rect area;
  TimelineWindow window;
  float stage_height = 0;

  float lane_top(std::size_t lane) const {
    const std::size_t stage = lane / 2;  // lanes alternate: compute, transfers
    const float top = std::round(area.min.y + stage_height * static_cast<float>(stage));
    return lane % 2 == 0 ? top : top + compute_height();
  }
  float lane_height(std::size_t lane) const {
    if (lane % 2 == 0) return compute_height();
    return std::max(0.0F, std::round(stage_height - gap() - compute_height()));
  }
  float gap() const { return stage_height > 7 ? 2.0F : stage_height > 4 ? 1.0F : 0.0F; }
  float compute_height() const {
    const float usable = stage_height - gap();
    return std::max(1.0F, std::round(usable > 8 ? usable * 0.78F : usable));
  }
};

int pixels(float height) { return static_cast<int>(std::round(height)); }

TimelineWindow window_of(const TimelineState& state, double step, float width) {
  TimelineWindow window{state.begin, state.end > 0 ? state.end : step, width};
  if (window.end <= window.begin) window = {0, step, width};
  return window;
}

void keep(TimelineState& state, const TimelineWindow& window, double step) {
  const bool is_whole = window.begin <= 0 && window.end >= step * (1 - 1e-12);
  state.begin = is_whole ? 0 : window.begin;
  state.end = is_whole ? 0 : window.end;
}

void draw_time_axis(const Ui& ui, Rect rect, const TimelineWindow& window, float bottom) {
  const AxisScale scale{window.begin, window.end, false};
  const auto marks = ticks(scale, std::max(2, static_cast<int>(rect.width() / ui.px(90))));
  const double step = marks.size() > 1 ? marks[1].value - marks[0].value : window.end;
  for (const Tick& tick : marks) {
    const float x = std::round(rect.min.x + static_cast<float>(window.x_of(tick.value))) + 0.5F;
    line(ui, {x, rect.max.y}, {x, bottom}, ui.colors.grid);
    const std::string text = time_tick(tick.value, step, marks.back().value);
    const float half = text_size(ui.fonts.small, text).x / 2;
    const float at = std::clamp(x, rect.min.x + half, rect.max.x - half);
    put_text(ui, ui.fonts.small, {at, rect.min.y}, ui.colors.dim, text, Align::kCenter);
  }
}

void draw_rects(const Ui& ui, const Track& track, const std::vector<TimelineRect>& rects) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (const TimelineRect& rect : rects) {
    const float height = track.lane_height(rect.lane), lane = track.lane_top(rect.lane);
    const float top = lane + height * rect.top, bottom = lane + height * rect.bottom;
    const float left = track.area.min.x + rect.left, right = track.area.min.x + rect.right;
    list->AddRectFilled({left, top}, {right, bottom}, ui.ink(rect.color));
    if (right - left > 3) {  // a line in a lighter shade separates spans of equal color
      list->AddRectFilled({right - 1, top}, {right, bottom},
                          ui.ink(mix(rect.color, ui.colors.panel, 0.4)));
    }
  }
}

// Draws micro-batch numbers in spans that are wide enough.
void draw_names(const Ui& ui, const Track& track, const std::vector<TimelineRect>& rects) {
  const float letter = ui.fonts.small->FontSize;
  if (track.compute_height() < letter) return;
  for (const TimelineRect& rect : rects) {
    if (rect.span == kManySpans || rect.lane % 2 == 1) continue;
    const TimelineSpan& span = track.view->timeline.spans[rect.span];
    const bool has_number = is_task(span.kind);
    const std::string text =
        has_number ? std::to_string(span.micro_batch) : std::string(name_of(span.kind));
    const float least = std::max(ui.px(16), text_size(ui.fonts.small, text).x + 4);
    if (rect.right - rect.left < least) continue;
    const float top = track.lane_top(rect.lane) + (track.compute_height() - letter) / 2 - 1;
    put_text(ui, ui.fonts.small, {track.area.min.x + (rect.left + rect.right) / 2, top},
             readable_on(rect.color), text, Align::kCenter);
  }
}

void draw_stage_names(const Ui& ui, const Track& track, float left) {
  const float letter = ui.fonts.small->FontSize;
  const auto every = static_cast<std::int64_t>(std::ceil((letter - 1) / track.stage_height));
  for (std::int64_t s = 0; s < track.view->index.stages(); s += every) {
    const float top = track.lane_top(static_cast<std::size_t>(2 * s));
    const float y = top + (std::max(track.compute_height(), letter) - letter) / 2 - 1;
    if (s > 0 && y + letter > track.area.max.y + 1) break;
    put_text(
        ui, ui.fonts.small, {left, y}, ui.colors.dim,
        every == 1 && track.stage_height > letter ? fmt::format("stage {}", s) : std::to_string(s));
  }
}

// Returns the spans of plan A or B to highlight.
const SpanMask& mask_of(const Ui& ui, const PlanView* view) {
  const bool is_a = view == ui.views.a.get();
  return ui.span_masks.mask(is_a ? 0 : 1, is_a ? ui.views.a : ui.views.b, ui.state.timeline);
}

void hover(Ui& ui, const Track& track) {
  const ImVec2 mouse = ImGui::GetMousePos();
  if (!track.area.holds(mouse)) return;
  const double seconds = track.window.seconds_at(mouse.x - track.area.min.x);
  const float y = mouse.y - track.area.min.y;
  const auto stage = static_cast<std::size_t>(y / track.stage_height);
  const float within = y - static_cast<float>(stage) * track.stage_height;
  const std::size_t lane = 2 * stage + (within > track.compute_height() ? 1 : 0);
  const std::uint32_t span = span_at(track.view->timeline, track.view->index, lane, seconds);
  if (span == kManySpans) {
    if (lane % 2 == 1 || lane >= track.view->index.lanes.size()) return;
    const TimelineGap gap = gap_at(track.view->timeline, track.view->index, lane, seconds);
    ui.state.timeline.hovered = bubble_text(static_cast<std::int64_t>(stage), gap);
    return tooltip(ui, ui.state.timeline.hovered.c_str());
  }
  const TimelineSpan& found = track.view->timeline.spans[span];
  const float left =
      track.area.min.x + static_cast<float>(track.window.x_of(to_seconds(found.begin).value()));
  const float right =
      track.area.min.x + static_cast<float>(track.window.x_of(to_seconds(found.end).value()));
  const float top = track.lane_top(lane);
  outline(ui,
          {{std::max(left, track.area.min.x), top},
           {std::min(std::max(right, left + 2), track.area.max.x), top + track.lane_height(lane)}},
          ui.colors.text, 0, ui.px(1.5F));
  ui.state.timeline.hovered = span_text(*track.view, span);
  tooltip(ui, ui.state.timeline.hovered.c_str());
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
    const double begin = to_seconds(found.begin).value(), end = to_seconds(found.end).value();
    const double air = 0.5 * (end - begin);
    keep(ui.state.timeline, panned({begin - air, end + air, 1}, 0, track.view->end),
         track.view->end);
  }
}

// A click without a drag chooses the stage whose bands are shown.
void choose_stage(Ui& ui, const Track& track) {
  TimelineState& state = ui.state.timeline;
  const ImVec2 mouse = ImGui::GetMousePos();
  const bool is_click = ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
                        state.ruler_begin == state.ruler_end && track.area.holds(mouse);
  if (!is_click || state.stage < 0) return;
  state.stage = static_cast<std::int64_t>((mouse.y - track.area.min.y) / track.stage_height);
}

// Zooms to the next span that matches the search, and some time around it.
void jump_to_match(Ui& ui) {
  TimelineState& state = ui.state.timeline;
  const PlanView& view = *ui.views.a;
  if (state.search.empty()) return;
  const std::uint32_t match = next_span(view.timeline, mask_of(ui, &view), state.found_at);
  if (match == kManySpans) return;
  const double begin = to_seconds(view.timeline.spans[match].begin).value();
  const double end = to_seconds(view.timeline.spans[match].end).value();
  const double air = 4 * std::max(end - begin, 1e-6);
  keep(state, panned({begin - air, end + air, 1}, 0, view.end), view.end);
  state.found_at = begin;
}

// The search and the critical path both highlight spans, so only one of them can be active.
void toggle_critical_path(TimelineState& state) {
  state.shows_critical_path = !state.shows_critical_path;
  if (state.shows_critical_path) state.search.clear();
}

void use_keys(Ui& ui, TimelineWindow& window, double step, double about) {
  if (ImGui::GetIO().WantTextInput) return;
  const double seconds = ImGui::GetIO().DeltaTime;
  const double span = window.end - window.begin;
  const auto is_down = [](int key) { return ImGui::IsKeyDown(key); };
  if (is_down('W')) window = zoomed(window, std::pow(0.25, seconds * kKeySpeed), about, step);
  if (is_down('S')) window = zoomed(window, std::pow(4.0, seconds * kKeySpeed), about, step);
  if (is_down('A')) window = panned(window, -span * seconds * kKeySpeed, step);
  if (is_down('D')) window = panned(window, span * seconds * kKeySpeed, step);
  if (ImGui::IsKeyPressed('0', false)) window = {0, step, window.width};
  if (ImGui::IsKeyPressed('N', false)) {
    jump_to_match(ui);
    window = window_of(ui.state.timeline, step, static_cast<float>(window.width));
  }
  if (ImGui::IsKeyPressed('K', false)) toggle_bands(ui);
  if (ImGui::IsKeyPressed('C', false) && !ImGui::GetIO().KeyCtrl) {
    toggle_critical_path(ui.state.timeline);
  }
}

void use_mouse(Ui& ui, Rect area, TimelineWindow& window, double step) {
  const ImGuiIO& io = ImGui::GetIO();
  const double about = window.seconds_at(io.MousePos.x - area.min.x);
  TimelineState& state = ui.state.timeline;
  if (io.MouseWheel != 0) {
    const double power = io.MouseWheel * (io.KeyCtrl ? 0.25 : io.KeyShift ? 3.0 : 1.0);
    window = zoomed(window, std::pow(kWheelFactor, power), about, step);
  }
  if (io.MouseWheelH != 0) {
    const double seconds = window.end - window.begin;
    window = panned(window, -io.MouseWheelH * kPanOfNotch * seconds, step);
  }
  if (ImGui::IsMouseDragging(ImGuiMouseButton_Right, 0)) {
    window = panned(window, -io.MouseDelta.x / area.width() * (window.end - window.begin), step);
  }
  for (const ImGuiMouseButton held : {ImGuiMouseButton_Left, ImGuiMouseButton_Middle}) {
    if (ImGui::IsMouseClicked(held)) state.ruler_begin = state.ruler_end = about;
    if (ImGui::IsMouseDragging(held, 3)) state.ruler_end = std::clamp(about, 0.0, step);
  }
  if (ImGui::IsMouseReleased(ImGuiMouseButton_Middle)) {
    const auto [from, to] = std::minmax(state.ruler_begin, state.ruler_end);
    if (to - from > 1e-3 * (window.end - window.begin)) window = {from, to, window.width};
    state.ruler_begin = state.ruler_end = 0;
  }
}

void draw_ruler(const Ui& ui, Rect area, const TimelineWindow& window) {
  const auto [from, to] = std::minmax(ui.state.timeline.ruler_begin, ui.state.timeline.ruler_end);
  if (to <= from) return;
  const float left =
      std::clamp(area.min.x + static_cast<float>(window.x_of(from)), area.min.x, area.max.x);
  const float right =
      std::clamp(area.min.x + static_cast<float>(window.x_of(to)), area.min.x, area.max.x);
  fill(ui, {{left, area.min.y}, {right, area.max.y}}, with_alpha(ui.colors.accent, 0.16));
  line(ui, {left, area.min.y}, {left, area.max.y}, ui.colors.accent);
  line(ui, {right, area.min.y}, {right, area.max.y}, ui.colors.accent);
  const std::string text = time_text(Seconds(to - from));
  const float width = text_size(ui.fonts.bold, text).x + ui.px(12);
  const ImVec2 at{(left + right) / 2, area.min.y + ui.px(4)};
  fill(ui, {{at.x - width / 2, at.y}, {at.x + width / 2, at.y + ui.px(20)}}, ui.colors.accent,
       ui.px(4));
  put_text(ui, ui.fonts.bold, {at.x, at.y + ui.px(2)}, ui.colors.on_accent, text, Align::kCenter);
}

void draw_track(Ui& ui, const Track& track, Rgba mark, const char* name, float left) {
  std::vector<TimelineRect> rects;
  lay_out_timeline(track.view->timeline, track.view->index, track.window, mask_of(ui, track.view),
                   {ui.colors.span, ui.colors.panel},
                   {pixels(track.lane_height(0)), pixels(track.lane_height(1))}, rects);
  draw_rects(ui, track, rects);
  draw_names(ui, track, rects);
  draw_stage_names(ui, track, left);
  if (*name == '\0') return;
  fill(ui, {{left - ui.px(8), track.area.min.y}, {left - ui.px(5), track.area.max.y}}, mark);
  const ImVec2 corner{track.area.max.x + ui.px(6), track.area.min.y};
  plan_chip(ui, corner, mark, name);
}

// Returns the number of spans that match the search, "none found", or an empty text without a
// search.
std::string matches_text(const Ui& ui) {
  if (ui.state.timeline.search.empty()) return "";
  const SpanMask& mask = mask_of(ui, ui.views.a.get());
  const auto count = std::count(mask.begin(), mask.end(), true);
  return count == 0 ? "none found" : fmt::format("{} found", count_text(count));
}

// Draws buttons and the search field at the right of the panel's title, with the legend in between.
void draw_tools(Ui& ui, Rect rect) {
  TimelineState& state = ui.state.timeline;
  const float y = rect.min.y - ui.px(27);
  const float field = ui.px(150);
  ImGui::PushFont(ui.fonts.small);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(8), ui.px(3)));
  float x = rect.max.x - field;
  ImGui::SetCursorScreenPos({x, y});
  ImGui::SetNextItemWidth(field);
  std::array<char, 64> text{};
  state.search.copy(text.data(), text.size() - 1);
  if (ImGui::GetIO().KeyCtrl && ImGui::IsKeyPressed('F', false)) ImGui::SetKeyboardFocusHere();
  if (ImGui::InputTextWithHint("##find", "find: backward 12", text.data(), text.size())) {
    state.search = text.data();
    state.found_at = -1;
    state.shows_critical_path = false;
  }
  const int enter = ImGui::GetKeyIndex(ImGuiKey_Enter);
  if (ImGui::IsItemDeactivated() && ImGui::IsKeyPressed(enter)) jump_to_match(ui);
  note_item(ui, "find in timeline");
  hover_help(
      ui,
      "Conditions that every match satisfies: a kind (forward, backward, transfer, optimizer), a "
      "micro-batch (12), a stage (stage 3). Ctrl+F selects this field, Enter goes to the first "
      "match, and N to the next.");
  x -= text_size(ui.fonts.small, "Whole step").x + ui.px(24);
  ImGui::SetCursorScreenPos({x, y});
  if (button(ui, "Whole step", "Zoom out to the whole step (0).")) state.begin = state.end = 0;
  x -= text_size(ui.fonts.small, "Critical path").x + ui.px(24);
  ImGui::SetCursorScreenPos({x, y});
  if (button(ui, "Critical path", "Highlight the chain of work that determines the step time (C).",
             state.shows_critical_path)) {
    toggle_critical_path(state);
    state.begin = state.end = 0;
  }
  x -= text_size(ui.fonts.small, "Kernels").x + ui.px(24);
  ImGui::SetCursorScreenPos({x, y});
  if (button(ui, "Kernels",
             "Show the kernels, collectives and memory of a stage (K). Click a stage to choose it.",
             state.stage >= 0)) {
    toggle_bands(ui);
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
  const std::string matches = matches_text(ui);
  x -= ui.px(12);
  x -= put_text(ui, ui.fonts.small, {x, rect.min.y - ui.px(23)}, ui.colors.text, matches,
                Align::kRight);
}

void draw_tracks(Ui& ui, Rect body) {
  body.max.y -= draw_span_legend(ui, body) + ui.px(2);
  const bool has_b = ui.views.b && !ui.views.b->error;
  const double step = std::max(ui.views.a->end, has_b ? ui.views.b->end : 0.0);
  const float names = ui.px(has_b ? 62 : 54);
  const float axis = ui.fonts.small->FontSize + ui.px(4);
  const float chip = ui.px(has_b ? 26 : 0);  // for the names A and B
  Rect area{{body.min.x + names, body.min.y + axis}, {body.max.x - chip, body.max.y}};
  TimelineWindow window = window_of(ui.state.timeline, step, area.width());

  ImGui::SetCursorScreenPos(area.min);
  ImGui::InvisibleButton("lanes", {area.width(), area.height()},
                         ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight |
                             ImGuiButtonFlags_MouseButtonMiddle);
  note_item(ui, "timeline");
  ui.state.timeline.hovered.clear();
  const bool is_hovered = ImGui::IsItemHovered();
  const double middle = (window.begin + window.end) / 2;
  const double mouse = window.seconds_at(ImGui::GetMousePos().x - area.min.x);
  use_keys(ui, window, step, is_hovered ? mouse : middle);
  if (is_hovered || ImGui::IsItemActive()) use_mouse(ui, area, window, step);
  keep(ui.state.timeline, window, step);

  draw_time_axis(ui, {{area.min.x, body.min.y}, {area.max.x, area.min.y - ui.px(1)}}, window,
                 area.max.y);
  ImGui::PushClipRect({body.min.x - ui.px(10), body.min.y}, body.max, true);
  const float left = body.min.x + ui.px(has_b ? 8 : 0);
  const Rect whole = area;
  if (ui.views.bands) {
    area.max.y = std::round(area.min.y + kStagesShare * area.height());
    draw_stage_bands(ui, {{area.min.x, area.max.y + ui.px(6)}, whole.max}, left, window,
                     is_hovered);
  }
  const float between = has_b ? ui.px(10) : 0;
  const float height = (area.height() - between) / (has_b ? 2 : 1);
  std::vector<Track> tracks;
  for (int i = 0; i < (has_b ? 2 : 1); ++i) {
    Track track{(i == 0 ? ui.views.a : ui.views.b).get(), area, window, 0};
    track.area.min.y += static_cast<float>(i) * (height + between);
    track.area.max.y = track.area.min.y + height;
    track.stage_height =
        std::min(height / static_cast<float>(track.view->index.stages()), ui.px(kMostStageHeight));
    note_area(ui, i == 0 ? "timeline A" : "timeline B", track.area);
    tracks.push_back(track);
  }
  draw_track(ui, tracks[0], ui.colors.accent, has_b ? "A" : "", left);
  if (has_b) draw_track(ui, tracks[1], ui.colors.other, "B", left);
  draw_ruler(ui, whole, window);
  if (is_hovered && !ImGui::IsMouseDown(ImGuiMouseButton_Left)) {
    const float x = ImGui::GetMousePos().x;
    line(ui, {x, whole.min.y}, {x, whole.max.y}, with_alpha(ui.colors.text, 0.35));
    for (const Track& track : tracks) hover(ui, track);
    choose_stage(ui, tracks[0]);
  }
  ImGui::PopClipRect();
}

}  // namespace

void draw_timeline(Ui& ui, Rect rect) {
  card(ui, "Timeline", rect, "", [&](Rect body) {
    if (!ui.views.a) return empty_state(ui, body, "No plan yet", "The plan table shows why.");
    if (ui.views.a->error) return no_prediction(ui, body);
    draw_tools(ui, body);
    draw_tracks(ui, body);
  });
}

}  // namespace tpsim::gui
