#include "gui/views/plan_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "core/base/numbers.h"
#include "gui/draw/axis.h"
#include "gui/views/plan_table.h"
#include "gui/views/search_job.h"
#include "gui/views/stage_bands.h"
#include "gui/views/timeline_layout.h"
#include "sim/step/simulate.h"

namespace tpsim::gui {
namespace {

constexpr double kWidth = 1120, kHeight = 990, kMargin = 32;
constexpr double kSlowest = 3.0;  // slower plans, relative to the best, are not drawn

const Palette& colors() { return palette_of(Theme::kLight); }

struct Area {
  double left, top, right, bottom;
};

struct Axes {
  Area area;
  AxisScale x, y;
  double x_at(double value) const { return area.left + x.share(value) * (area.right - area.left); }
  double y_at(double value) const {
    return area.bottom - y.share(value) * (area.bottom - area.top);
  }
};

TextStyle words(double size, Rgba color, Anchor anchor = Anchor::kStart, bool is_bold = false) {
  return {size, color, anchor, is_bold};
}

void draw_grid(Drawing& out, const Axes& axes, const char* x_title, const char* y_title) {
  const Area& a = axes.area;
  for (const Tick& tick : ticks(axes.y, 6)) {
    const double y = axes.y_at(tick.value);
    out.line(a.left, y, a.right, y, colors().grid);
    out.text(a.left - 8, y + 4, words(12, colors().dim, Anchor::kEnd), tick.label);
  }
  out.text(a.left - 30, a.top - 14, words(12, colors().dim), y_title);
  out.line(a.left, a.bottom, a.right, a.bottom, colors().line);
  if (*x_title == '\0') return;
  for (const Tick& tick : ticks(axes.x, 7)) {
    const double x = axes.x_at(tick.value);
    out.line(x, a.bottom, x, a.bottom + 4, colors().line);
    out.text(x, a.bottom + 18, words(12, colors().dim, Anchor::kMiddle), tick.label);
  }
  out.text(a.right, a.bottom + 36, words(12, colors().dim, Anchor::kEnd), x_title);
}

void draw_front(Drawing& out, const Axes& axes, const std::vector<PlannedRun>& plans) {
  double last_x = 0, last_y = 0;
  bool has_last = false;
  for (const std::size_t i : front_of(plans)) {
    const double x = axes.x_at(gib(plans[i].predicted.peak));
    const double y = axes.y_at(plans[i].predicted.step.value());
    if (has_last) {
      out.line(last_x, last_y, x, last_y, colors().accent, 1.5);
      out.line(x, last_y, x, y, colors().accent, 1.5);
    }
    out.circle(x, y, 3.6, colors().accent);
    last_x = x, last_y = y, has_last = true;
  }
}

// Returns the plans to draw: without duplicates, and without plans slower than kSlowest times the
// best.
std::vector<PlannedRun> drawn_plans(const std::vector<PlannedRun>& all) {
  const Seconds slowest = kSlowest * all.front().predicted.step;
  std::vector<PlannedRun> plans;
  std::set<std::string> names;
  for (const PlannedRun& run : all) {
    if (run.predicted.step > slowest || !names.insert(short_name(run.plan)).second) continue;
    plans.push_back(run);
  }
  return plans;
}

// Returns a text that states which plans are drawn, and the number of combinations left out.
std::string scope_text(std::size_t drawn, std::int64_t possible) {
  const auto count = static_cast<std::int64_t>(drawn);
  if (count >= possible) return fmt::format("all {} plans that fit", count_text(count));
  return fmt::format(
      "{} plans: the best, the Pareto front, and some of each tp; {} other combinations not drawn",
      count_text(count), count_text(possible - count));
}

void draw_scatter(Drawing& out, Area area, const std::vector<PlannedRun>& plans) {
  const Prediction& best = plans.front().predicted;
  double smallest = gib(best.peak), slowest = best.step.value();
  for (const PlannedRun& run : plans) {
    smallest = std::min(smallest, gib(run.predicted.peak));
    slowest = std::max(slowest, run.predicted.step.value());
  }
  const double air = 0.06 * (slowest - best.step.value()) + 0.02 * best.step.value();
  const double most = std::max(gib(best.capacity), gib(best.peak));
  const Axes axes{area,
                  {std::max(0.0, smallest - 0.05 * most), most * 1.03, false},
                  {std::max(0.0, best.step.value() - air), slowest + air, false}};
  draw_grid(out, axes, "peak memory, GiB", "step time, s");
  const double top = std::max(area.top, axes.y_at(best.step_high.value()));
  out.rect(area.left, top, area.right - area.left, axes.y_at(best.step.value()) - top,
           with_alpha(colors().accent, 0.1));
  for (const PlannedRun& run : plans) {
    out.circle(axes.x_at(gib(run.predicted.peak)), axes.y_at(run.predicted.step.value()), 2.2,
               with_alpha(ties_with(run.predicted, best) ? colors().dim : colors().mark, 0.7));
  }
  draw_front(out, axes, plans);
  out.ring(axes.x_at(gib(best.peak)), axes.y_at(best.step.value()), 8, colors().accent);
  const double capacity = axes.x_at(gib(best.capacity));
  out.dashes(capacity, area.top, capacity, area.bottom, colors().bad, 1.2);
  out.text(capacity - 6, area.top + 10, words(12, colors().bad, Anchor::kEnd),
           fmt::format("capacity {} GiB", gib_text(best.capacity)));
}

// Draws the names of the memory categories in two lines below the bars.
void draw_memory_legend(Drawing& out, Area area) {
  double x = area.left - 30, y = area.bottom + 42;
  for (int part = 0; part < kMemoryPartCount; ++part) {
    if (part == 5) x = area.left - 30, y += 18;
    out.rect(x, y - 9, 10, 10, colors().memory[static_cast<std::size_t>(part)]);
    const std::string_view name = memory_part_name(part);
    out.text(x + 15, y, words(12, colors().dim), name);
    x += 15 + 6.4 * static_cast<double>(name.size()) + 16;
  }
}

void draw_memory(Drawing& out, Area area, const Prediction& predicted) {
  const double most = 1.04 * std::max(gib(predicted.capacity), gib(predicted.peak));
  const Axes axes{area, {0, 1, false}, {0, most, false}};
  draw_grid(out, axes, "", "GiB on each stage's GPUs");
  const std::vector<StageMemory>& stages = predicted.memory;
  const double slot = (area.right - area.left) / static_cast<double>(stages.size());
  const double gap = slot > 6 ? 0.18 * slot : 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const double left = area.left + slot * static_cast<double>(i) + gap / 2;
    double bottom = 0;
    for (int part = 0; part < kMemoryPartCount; ++part) {
      const double top = bottom + gib(part_of(stages[i], part));
      out.rect(left, axes.y_at(top), slot - gap, axes.y_at(bottom) - axes.y_at(top),
               colors().memory[static_cast<std::size_t>(part)]);
      bottom = top;
    }
    if (slot > 14 || i % 8 == 0) {
      out.text(left + (slot - gap) / 2, area.bottom + 16, words(12, colors().dim, Anchor::kMiddle),
               std::to_string(stages[i].stage));
    }
  }
  const double capacity = axes.y_at(gib(predicted.capacity));
  out.dashes(area.left, capacity, area.right, capacity, colors().bad, 1.2);
  draw_memory_legend(out, area);
}

// Draws the rectangles of one color as one shape, since a timeline has thousands of rectangles.
// Spans that `mask` omits are pale.
void draw_lanes(Drawing& out, Area area, const Timeline& timeline, const TimelineIndex& index,
                const SpanMask& mask, double seconds) {
  const double width = area.right - area.left;
  std::vector<TimelineRect> rects;
  lay_out_timeline(timeline, index, {0, seconds, width}, mask, {colors().span, colors().panel}, {},
                   rects);
  const double stage_height = (area.bottom - area.top) / static_cast<double>(timeline.stages);
  const double height = stage_height * 0.86;
  std::map<std::string, std::pair<Rgba, std::vector<double>>> by_color;
  for (const TimelineRect& rect : rects) {
    if (rect.lane % 2 == 1) continue;  // transfers are too thin to draw
    const std::int64_t stage = rect.lane / 2;
    const double y = area.top + stage_height * static_cast<double>(stage);
    auto& [ink, numbers] = by_color[hex(rect.color)];
    ink = rect.color;
    numbers.insert(numbers.end(), {area.left + rect.left, y + height * rect.top,
                                   rect.right - rect.left, height * (rect.bottom - rect.top)});
  }
  for (auto& [name, rects_of] : by_color) out.rects(std::move(rects_of.second), rects_of.first);
}

void draw_timeline(Drawing& out, Area area, const Timeline& timeline) {
  const double seconds = std::max(1e-9, to_seconds(timeline.end).value());
  const AxisScale scale{0, seconds, false};
  const std::vector<Tick> marks = ticks(scale, 10);
  const double step = marks.size() > 1 ? marks[1].value : seconds;
  for (const Tick& tick : marks) {
    const double x = area.left + scale.share(tick.value) * (area.right - area.left);
    out.line(x, area.top, x, area.bottom, colors().grid);
    out.text(x, area.bottom + 16, words(12, colors().dim, Anchor::kMiddle),
             time_tick(tick.value, step, marks.back().value));
  }
  draw_lanes(out, area, timeline, index_of(timeline), {}, seconds);
  const double stage_height = (area.bottom - area.top) / static_cast<double>(timeline.stages);
  const auto every = static_cast<std::int64_t>(std::ceil(13 / stage_height));
  for (std::int64_t s = 0; s < timeline.stages; s += every) {
    out.text(area.left - 8, area.top + stage_height * (static_cast<double>(s) + 0.5) + 4,
             words(12, colors().dim, Anchor::kEnd), fmt::format("stage {}", s));
  }
  // Legend of the span kinds that occur, in at most two lines.
  std::array<bool, kSpanKindCount> occurs{};
  for (const TimelineSpan& span : timeline.spans)
    occurs[static_cast<std::size_t>(span.kind)] = true;
  double x = area.left, y = area.top - 30;
  for (int kind = 0; kind < kSpanKindCount; ++kind) {
    const bool is_drawn = static_cast<SpanKind>(kind) != SpanKind::kTransfer;
    if (!is_drawn || !occurs[static_cast<std::size_t>(kind)]) continue;
    const std::string_view name = name_of(static_cast<SpanKind>(kind));
    const double width = 15 + 6.4 * static_cast<double>(name.size()) + 18;
    if (x + width > area.right) x = area.left, y += 16;
    out.rect(x, y - 9, 10, 10, colors().span[static_cast<std::size_t>(kind)]);
    out.text(x + 15, y, words(12, colors().dim), name);
    x += width;
  }
}

// Kernels and calls of the fullest stage by stream, and its memory, on the axis of the timeline.
void draw_bands(Drawing& out, Area area, const StageBands& bands, const Timeline& timeline) {
  const double seconds = std::max(1e-9, to_seconds(timeline.end).value());
  const TimelineWindow window{0, seconds, area.right - area.left};
  const double middle = area.top + 0.5 * (area.bottom - area.top);
  const StageLanes lanes = lanes_in(bands, window);
  draw_lanes(out, {area.left, area.top, area.right, middle - 8}, lanes.timeline, lanes.index,
             lanes.exposed, seconds);
  const double height = (middle - 8 - area.top) / static_cast<double>(bands.streams.size());
  for (std::size_t i = 0; i < bands.streams.size(); ++i) {
    out.text(area.left - 8, area.top + height * (static_cast<double>(i) + 0.5) + 4,
             words(12, colors().dim, Anchor::kEnd), name_of(bands.streams[i]));
  }
  const Axes axes{{area.left, middle + 8, area.right, area.bottom},
                  {0, seconds, false},
                  {0, 1.04 * bands.peak_gib, false}};
  for (const Tick& tick : ticks(axes.y, 3)) {
    out.text(area.left - 8, axes.y_at(tick.value) + 4, words(12, colors().dim, Anchor::kEnd),
             tick.label + " GiB");
  }
  const std::vector<MemoryColumn> columns = memory_columns(bands, window);
  std::vector<double> bottoms(columns.size(), 0.0);
  for (int part = 0; part < kMemoryPartCount; ++part) {
    std::vector<double> rects;  // equal neighbours are one
    double last_top = 0, last_bottom = 0;
    for (std::size_t x = 0; x < columns.size(); ++x) {
      const double gib = columns[x][static_cast<std::size_t>(part)] / kGiB;
      const double bottom = axes.y_at(bottoms[x]), top = axes.y_at(bottoms[x] + gib);
      if (x > 0 && top == last_top && bottom == last_bottom) {
        rects[rects.size() - 2] += 1;
      } else {
        rects.insert(rects.end(), {area.left + static_cast<double>(x), top, 1.0, bottom - top});
      }
      last_top = top;
      last_bottom = bottom;
      bottoms[x] += gib;
    }
    out.rects(std::move(rects), colors().memory[static_cast<std::size_t>(part)]);
  }
}

void draw_title(Drawing& out, const Scenario& scenario, const PlannedRun& best) {
  const Prediction& p = best.predicted;
  const TimeScale scale = time_scale(p.step);
  out.text(kMargin, 44, words(20, colors().text, Anchor::kStart, true),
           fmt::format("{} on {} of {}: {} {} a step", scenario.model.name,
                       gpus_text(gpu_count(best.plan)), scenario.cluster.name,
                       scaled_text(p.step, scale), scale.unit));
  const std::string extras = extras_text(best.plan);
  out.text(kMargin, 66, words(13.5, colors().dim),
           fmt::format("{} · ZeRO {} · micro-batch {} · {}{}{}", degrees_text(best.plan),
                       best.plan.zero, best.plan.micro_batch, recompute_text(best.plan),
                       extras.empty() ? "" : " · ", extras));
  out.text(kMargin, 85, words(13.5, colors().dim),
           fmt::format("90 % interval {} to {} {} · MFU {} · {} of {} GiB · P(OOM) {}",
                       scaled_text(p.step_low, scale), scaled_text(p.step_high, scale), scale.unit,
                       percent_text(p.mfu), gib_text(p.peak), gib_text(p.capacity),
                       chance_text(p.p_oom)));
}

}  // namespace

Result<Drawing> plan_picture(const Scenario& scenario, const std::vector<PlannedRun>& plans,
                             std::int64_t possible) {
  TPSIM_CHECK(!plans.empty(), "a picture of no plan");
  const PlannedRun& best = plans.front();
  TPSIM_TRY(const Timeline timeline, simulate_timeline(scenario, best.plan));
  Drawing out(kWidth, kHeight, colors().panel);
  draw_title(out, scenario, best);
  const TextStyle title = words(14.5, colors().text, Anchor::kStart, true);
  out.text(kMargin, 112, title, "Time and memory of the plans that fit");
  const std::vector<PlannedRun> drawn = drawn_plans(plans);
  out.text(kMargin, 130, words(12, colors().dim), scope_text(drawn.size(), possible));
  draw_scatter(out, {kMargin + 34, 164, 560, 376}, drawn);
  out.text(604, 112, title, "Memory of the fastest plan, by stage");
  draw_memory(out, {638, 164, kWidth - kMargin, 376}, best.predicted);
  out.text(kMargin, 484, title, "One step of the fastest plan");
  draw_timeline(out, {kMargin + 54, 540, kWidth - kMargin, 716}, timeline);
  LayerPricer pricer(scenario);
  const StageBands bands = stage_bands(pricer, best.plan, plan_costs(pricer, best.plan), timeline,
                                       fullest_stage(best.predicted.memory));
  out.text(kMargin, 762, title,
           fmt::format("Kernels and memory of stage {}, the fullest", bands.stage));
  out.text(kWidth - kMargin, 762, words(12, colors().dim, Anchor::kEnd),
           "pale: calls that compute hides");
  draw_bands(out, {kMargin + 54, 780, kWidth - kMargin, kHeight - 24}, bands, timeline);
  return out;
}

}  // namespace tpsim::gui
