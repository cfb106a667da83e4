// Timelines end where the step ends, and agree with the report's terms.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/scenario/catalogue.h"
#include "gui/views/breakdown.h"
#include "gui/views/choice.h"
#include "gui/views/plan_picture.h"
#include "gui/views/timeline_layout.h"
#include "plans/search/search.h"
#include "sim/step/simulate.h"
#include "tests/gui/gui_fixture.h"

namespace tpsim::gui {
namespace {

constexpr Picoseconds kRounding = 20;

Scenario scenario_of(const std::string& model) {
  Choice choice;
  choice.model = model;
  return load_choice(Catalogue(std::string(TPSIM_SOURCE_DIR) + "/data"), choice)->scenario;
}

Plan plan_of(std::int64_t tp, std::int64_t pp, std::int64_t dp, int zero) {
  Plan plan;
  plan.degrees = {tp, pp, dp, 1};
  plan.zero = zero;
  plan.micro_batch = 2;
  plan.global_batch = 64;
  plan.stage_layers = default_stage_layers(30, pp);
  return plan;
}

// The kinds that end a step, with the term of each.
const std::map<SpanKind, StepTerm> kEnds = {
    {SpanKind::kGradientReduction, StepTerm::kGradientReduction},
    {SpanKind::kTiedEmbedding, StepTerm::kTiedEmbedding},
    {SpanKind::kHostStep, StepTerm::kHostStep},
    {SpanKind::kStragglers, StepTerm::kStragglers},
    {SpanKind::kUncalibratedOverhead, StepTerm::kUncalibratedOverhead},
    {SpanKind::kOptimizer, StepTerm::kOptimizer},
    {SpanKind::kWeightGather, StepTerm::kWeightGather}};

}  // namespace

TEST_CASE("the timeline ends with the step, and every span at its end has the time of its term") {
  const Scenario scenario = scenario_of("bloom-7b1");
  for (const Plan& plan :
       {plan_of(2, 4, 2, 1), plan_of(4, 2, 2, 1), plan_of(8, 1, 2, 1), plan_of(1, 2, 8, 1)}) {
    INFO(short_name(plan));
    const auto timeline = simulate_timeline(scenario, plan);
    const auto predicted = simulate(scenario, plan);
    if (!timeline.ok()) FAIL(to_string(timeline.error()));
    if (!predicted.ok()) FAIL(to_string(predicted.error()));
    CHECK(to_seconds(timeline->end).value() == Approx(predicted->step.value()).epsilon(1e-9));
    std::vector<Picoseconds> ends(static_cast<std::size_t>(plan.degrees.pp));
    std::map<SpanKind, std::vector<Picoseconds>> times;
    for (const TimelineSpan& span : timeline->spans) {
      CHECK(span.begin < span.end);
      CHECK(span.end <= timeline->end);
      Picoseconds& end = ends[static_cast<std::size_t>(span.stage)];
      if (span.kind != SpanKind::kTransfer) CHECK(span.begin >= end - kRounding);
      end = std::max(end, span.end);
      times[span.kind].push_back(span.end - span.begin);
    }
    for (const Picoseconds end : ends) CHECK(std::abs(end - timeline->end) <= kRounding);
    for (const auto& [kind, term] : kEnds) {
      const Picoseconds expected = to_picoseconds(time_of(*predicted, term));
      if (expected <= kRounding) continue;
      INFO(name_of(kind));
      const auto has_time = [&](Picoseconds time) {
        return std::abs(time - expected) <= kRounding;
      };
      CHECK(std::any_of(times[kind].begin(), times[kind].end(), has_time));
    }
  }
}

TEST_CASE("below a pixel a timeline has the colours of its legend and no others") {
  const auto timeline = simulate_timeline(scenario_of("bloom-7b1"), plan_of(2, 4, 2, 1));
  REQUIRE(timeline.ok());
  for (const Theme theme : {Theme::kLight, Theme::kDark}) {
    const TimelineColors colors{palette_of(theme).span, palette_of(theme).panel};
    std::vector<TimelineRect> rects;
    const double end = to_seconds(timeline->end).value();
    lay_out_timeline(*timeline, index_of(*timeline), {0, end, 40}, {}, colors, {}, rects);
    CHECK(std::any_of(rects.begin(), rects.end(),
                      [](const TimelineRect& rect) { return rect.span == kManySpans; }));
    for (const TimelineRect& rect : rects) {
      CHECK(std::find(colors.span.begin(), colors.span.end(), rect.color) != colors.span.end());
    }
  }
}

// Returns the area of each color in pixels times lane heights.
std::map<std::string, double> areas_of(const std::vector<TimelineRect>& rects) {
  std::map<std::string, double> areas;
  for (const TimelineRect& rect : rects) {
    areas[hex(rect.color)] +=
        static_cast<double>(rect.right - rect.left) * static_cast<double>(rect.bottom - rect.top);
  }
  return areas;
}

TEST_CASE("the area of a kind in a timeline is its time, at any zoom and height") {
  const Scenario scenario = scenario_of("bloom-7b1");
  Plan narrow = plan_of(1, 2, 8, 1);
  narrow.micro_batch = 1;
  narrow.global_batch = 4096;
  const TimelineColors colors{palette_of(Theme::kLight).span, palette_of(Theme::kLight).panel};
  for (const Plan& plan : {plan_of(2, 4, 2, 1), narrow}) {
    const auto timeline = simulate_timeline(scenario, plan);
    REQUIRE(timeline.ok());
    const TimelineIndex index = index_of(*timeline);
    const double end = to_seconds(timeline->end).value();
    for (const TimelineWindow window : {TimelineWindow{0, end, 40}, TimelineWindow{0, end, 997},
                                        TimelineWindow{end / 3, end / 2, 640}}) {
      std::map<std::string, double> times;
      double all = 0;
      for (const TimelineSpan& span : timeline->spans) {
        const double left = std::max(to_seconds(span.begin).value(), window.begin);
        const double right = std::min(to_seconds(span.end).value(), window.end);
        if (right <= left) continue;
        times[hex(colors.span[static_cast<std::size_t>(span.kind)])] +=
            window.x_of(right) - window.x_of(left);
        all += window.x_of(right) - window.x_of(left);
      }
      for (const int rows : {0, 3, 20}) {
        INFO(window.width << " pixels, " << rows << " rows");
        std::vector<TimelineRect> rects;
        lay_out_timeline(*timeline, index, window, {}, colors, {rows, rows}, rects);
        auto areas = areas_of(rects);
        for (const auto& [color, time] : times) {
          CHECK(areas[color] == Approx(time).margin(rows == 0 ? 1e-3 * all : 0.01 * all));
        }
        for (std::size_t i = 1; i < rects.size(); ++i) {
          const TimelineRect &one = rects[i - 1], &next = rects[i];
          if (one.lane != next.lane) continue;
          CHECK((next.left >= one.right - 1e-3F || next.top >= one.bottom - 1e-6F));
        }
      }
    }
  }
}

TEST_CASE("highlighted spans keep their colour below a pixel, the others fade") {
  Timeline timeline;
  timeline.end = 1000;
  for (Picoseconds at = 0; at < 1000; at += 10) {
    timeline.spans.push_back({0, SpanKind::kForward, 0, 0, at, at + 3});
    timeline.spans.push_back({0, SpanKind::kBackward, 0, 0, at + 3, at + 10});
  }
  const TimelineColors colors{palette_of(Theme::kLight).span, {255, 255, 255, 255}};
  SpanMask mask(timeline.spans.size());
  for (std::size_t i = 0; i < mask.size(); i += 2) mask[i] = true;
  std::vector<TimelineRect> rects;
  lay_out_timeline(timeline, index_of(timeline), {0, 1e-9, 4}, mask, colors, {}, rects);
  const auto areas = areas_of(rects);
  CHECK(areas.size() == 2);
  CHECK(areas.at(hex(colors.span[static_cast<std::size_t>(SpanKind::kForward)])) == Approx(1.2));
}

TEST_CASE("the picture of a search prints how many plans it leaves out") {
  SearchSpace space;
  space.gpus = 16;
  space.global_batch = 64;
  const Scenario scenario = scenario_of("bloom-7b1");
  const auto found = search(scenario, space, 5, {});
  REQUIRE(found.ok());
  const auto picture = plan_picture(scenario, found->plans, 12'345);
  REQUIRE(picture.ok());
  const std::string svg = svg_text(*picture);
  CHECK(svg.find("5 plans: the best, the Pareto front, and some of each tp; 12,340 other "
                 "combinations not drawn") != std::string::npos);
  const auto whole = plan_picture(scenario, found->plans, 5);
  REQUIRE(whole.ok());
  CHECK(svg_text(*whole).find("all 5 plans that fit") != std::string::npos);
  for (const char* name : {"stragglers", "gradient reduction", "optimizer"}) {
    CHECK(svg.find(name) != std::string::npos);
  }
}

TEST_CASE("the rows of the breakdown add up to the step, however few there are") {
  GuiFixture gui;
  REQUIRE(gui.run("wait") == "");
  const Prediction& predicted = gui.views().a->predicted;
  for (const std::size_t most : {1, 2, 3, 5, 10, 100}) {
    const std::vector<BreakdownRow> rows = breakdown_rows(predicted, most);
    INFO(most);
    CHECK(rows.size() <= most);
    Seconds sum;
    for (const BreakdownRow& row : rows) {
      CHECK(row.before.value() == Approx(sum.value()));
      sum += row.time;
    }
    CHECK(sum.value() == Approx(predicted.step.value()));
  }
  CHECK(breakdown_rows(predicted, 3).back().name.ends_with(" smaller terms"));
}

TEST_CASE("one bubble is on the screen: the term of the breakdown") {
  GuiFixture gui;
  REQUIRE(gui.run("wait\nslide \"tensor parallel\" 0.02\nslide \"pipeline stages\" 0.9\n"
                  "expect plan.pp > 1") == "");
  const Prediction& predicted = gui.views().a->predicted;
  const double share = 100 * (time_of(predicted, StepTerm::kBubble) / predicted.step);
  CHECK(share > 0);
  CHECK(gui.run(fmt::format("expect plan.bubble_pct {:.1f}", share)) == "");
}

TEST_CASE("texts have a contrast of 4.5 on every background, in both themes") {
  for (const Theme theme : {Theme::kLight, Theme::kDark}) {
    const Palette& p = palette_of(theme);
    for (const Rgba ground : {p.panel, p.window, p.raised}) {
      for (const Rgba ink : {p.text, p.dim, p.faint, p.accent, p.other, p.good, p.warn, p.bad}) {
        INFO(hex(ink) << " on " << hex(ground));
        CHECK(contrast(ink, ground) >= 4.5);
      }
      CHECK(contrast(mix(ground, p.text, kDisabledAlpha), ground) >= 4.5);
    }
    for (const Rgba ground : {p.accent, p.other, p.bad})
      CHECK(contrast(p.on_accent, ground) >= 4.5);
    for (const Rgba ground : p.span) CHECK(contrast(readable_on(ground), ground) >= 4.5);
    for (std::size_t i = 0; i < p.span.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) CHECK_FALSE(p.span[i] == p.span[j]);
    }
  }
  CHECK(contrast({0, 0, 0, 255}, {255, 255, 255, 255}) == Approx(21));
}

}  // namespace tpsim::gui
