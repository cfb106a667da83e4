// Contents of the panels, computed without drawing.
#include "gui/views/views.h"

#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "core/base/check.h"
#include "core/json/json_document.h"
#include "core/scenario/catalogue.h"
#include "gui/draw/axis.h"
#include "gui/views/choice.h"
#include "gui/views/critical_path.h"
#include "gui/views/knobs.h"
#include "gui/views/plan_picture.h"
#include "gui/views/plan_table.h"
#include "gui/views/search_job.h"
#include "gui/views/search_messages.h"
#include "gui/views/timeline_layout.h"
#include "gui/views/timeline_search.h"
#include "gui/window/background_search.h"
#include "plans/search/search.h"
#include "sim/step/simulate.h"
#include "tests/gui/gui_fixture.h"

namespace tpsim::gui {
namespace {

Scenario small_scenario() {
  Choice choice;
  choice.model = "bloom-7b1";
  return load_choice(Catalogue(std::string(TPSIM_SOURCE_DIR) + "/data"), choice)->scenario;
}

Plan small_plan() {
  Plan plan;
  plan.degrees = {2, 4, 2, 1};
  plan.micro_batch = 2;
  plan.global_batch = 64;
  plan.stage_layers = default_stage_layers(30, 4);
  return plan;
}

// Stages that run forward of one micro-batch after another, one microsecond each.
Timeline ladder(std::int64_t stages, std::int64_t micro_batches) {
  Timeline timeline;
  timeline.stages = stages;
  for (std::int64_t s = 0; s < stages; ++s) {
    for (std::int64_t m = 0; m < micro_batches; ++m) {
      const Picoseconds begin = (s + m) * 1'000'000;
      timeline.spans.push_back({s, SpanKind::kForward, s, m, begin, begin + 1'000'000});
    }
  }
  timeline.end = (stages + micro_batches) * 1'000'000;
  return timeline;
}

const TimelineColors kColors{palette_of(Theme::kLight).span, {255, 255, 255, 255}};

}  // namespace

TEST_CASE("a timeline has at most one rectangle per pixel of a lane") {
  const Timeline timeline = ladder(16, 6250);  // 100,000 spans
  const TimelineIndex index = index_of(timeline);
  const double step = to_seconds(timeline.end).value();
  std::vector<TimelineRect> rects;
  lay_out_timeline(timeline, index, {0, step, 1000}, {}, kColors, {}, rects);
  CHECK(rects.size() <= 16 * 1000);
  for (std::size_t i = 1; i < rects.size(); ++i) {
    if (rects[i].lane == rects[i - 1].lane) CHECK(rects[i].left >= rects[i - 1].left);
  }
  rects.clear();
  lay_out_timeline(timeline, index, {step / 2, step / 2 + 20e-6, 1000}, {}, kColors, {}, rects);
  CHECK(rects.size() <= 16 * 22);
  CHECK(rects.size() >= 16 * 20);
}

TEST_CASE("the span under the pointer is the one drawn there") {
  const Timeline timeline = ladder(2, 10);
  const TimelineIndex index = index_of(timeline);
  CHECK(timeline.spans[span_at(timeline, index, 0, 3.5e-6)].micro_batch == 3);
  CHECK(timeline.spans[span_at(timeline, index, 2, 3.5e-6)].micro_batch == 2);
  CHECK(span_at(timeline, index, 2, 0.5e-6) == kManySpans);
  CHECK(span_at(timeline, index, 99, 0) == kManySpans);
}

TEST_CASE("zooming keeps the moment under the pointer and stays inside the step") {
  const TimelineWindow window{0, 10, 1000};
  const TimelineWindow closer = zoomed(window, 0.5, 4, 10);
  CHECK(closer.x_of(4) == Approx(window.x_of(4)));
  CHECK(panned(closer, 1e6, 10).end == Approx(10));
  CHECK(zoomed(closer, 1e6, 4, 10).end == Approx(10));
}

TEST_CASE("the critical path of a step has no gap and ends with it") {
  const auto timeline = simulate_timeline(small_scenario(), small_plan());
  REQUIRE(timeline.ok());
  const std::vector<std::uint32_t> path = critical_path(*timeline);
  REQUIRE(path.size() > 10);
  CHECK(timeline->spans[path.front()].begin == 0);
  for (std::size_t i = 1; i < path.size(); ++i) {
    CHECK(timeline->spans[path[i]].begin >= timeline->spans[path[i - 1]].end);
  }
}

TEST_CASE("every value that a knob offers gives a legal plan on all GPUs") {
  const Scenario scenario = small_scenario();
  Plan shared = small_plan();  // the same layout, with context parallelism 2
  shared.degrees.cp = 2;
  for (const auto& [start, gpus] : {std::pair(small_plan(), 16), std::pair(shared, 32)}) {
    REQUIRE(gpu_count(start) == gpus);
    for (const SettingRow& row : setting_rows()) {
      const Setting knob = row.setting;
      if (!has_knob(row)) continue;
      for (const std::int64_t value : values_of(start, knob, scenario.model, gpus)) {
        const Plan plan = turned(start, knob, value, scenario.model, gpus);
        INFO(row.title << " " << value << ", cp " << start.degrees.cp);
        CHECK(validate(plan, scenario.model).ok());
        CHECK(gpu_count(plan) == gpus);
        CHECK((knob == Setting::kCp || plan.degrees.cp == start.degrees.cp));
        CHECK(row.get(plan) == value);
      }
    }
  }
}

TEST_CASE("ep is offered up to the data-parallel ranks and experts") {
  Choice choice;
  choice.model = "mixtral-8x7b";
  const ModelSpec model =
      load_choice(Catalogue(std::string(TPSIM_SOURCE_DIR) + "/data"), choice)->scenario.model;
  Plan start = small_plan();
  start.degrees = {.tp = 1, .pp = 2, .dp = 8, .ep = 4};
  start.stage_layers = default_stage_layers(model.layers, 2);
  for (const SettingRow& row : setting_rows()) {
    const Setting knob = row.setting;
    if (!has_knob(row)) continue;
    for (const std::int64_t value : values_of(start, knob, model, 16)) {
      INFO(row.title << " " << value);
      const Plan plan = turned(start, knob, value, model, 16);
      CHECK(validate(plan, model).ok());
      CHECK(row.get(plan) == value);
    }
  }
  CHECK(values_of(start, Setting::kEp, model, 16) == std::vector<std::int64_t>{1, 2, 4, 8});
  CHECK(values_of(small_plan(), Setting::kEp, small_scenario().model, 16).empty());
}

TEST_CASE("recomputed blocks never exceed the chunks, with any other change") {
  const Scenario scenario = small_scenario();
  Plan start = small_plan();
  start.recompute = Recompute::kBlocks;
  start.recompute_blocks = 1;
  start = mended(start, scenario.model);
  REQUIRE(start.recompute == Recompute::kBlocks);
  bool became_full = false;
  for (const SettingRow& row : setting_rows()) {
    const Setting knob = row.setting;
    if (!has_knob(row)) continue;
    for (const std::int64_t value : values_of(start, knob, scenario.model, 16)) {
      INFO(row.title << " " << value);
      const Plan plan = turned(start, knob, value, scenario.model, 16);
      CHECK(validate(plan, scenario.model).ok());
      became_full = became_full || plan.recompute == Recompute::kFull;
    }
  }
  CHECK(became_full);  // one block per chunk
  Plan moved = start;
  for (int i = 0; i < 3; ++i) moved = with_boundary_moved(moved, 0, -1);
  CHECK(validate(moved, scenario.model).ok());
}

TEST_CASE("no plan dominates a plan of the Pareto front") {
  std::mt19937 random(7);
  std::vector<PlannedRun> plans(60);
  for (PlannedRun& run : plans) {
    run.predicted.step = Seconds(1 + static_cast<double>(random() % 50));
    run.predicted.peak = Bytes(1 + static_cast<double>(random() % 50));
  }
  const std::vector<std::size_t> front = front_of(plans);
  const auto beats = [](const PlannedRun& a, const PlannedRun& b) {
    return a.predicted.step <= b.predicted.step && a.predicted.peak <= b.predicted.peak &&
           (a.predicted.step < b.predicted.step || a.predicted.peak < b.predicted.peak);
  };
  for (const std::size_t i : front) {
    for (const PlannedRun& other : plans) CHECK_FALSE(beats(other, plans[i]));
  }
  CHECK(front.size() > 1);
}

TEST_CASE("the search in pieces has the result of one search") {
  Choice choice;
  choice.model = "bloom-7b1";
  choice.gpus = 16;
  choice.global_batch = 64;
  const auto scenario = std::make_shared<const Scenario>(small_scenario());
  SearchJob job(choice, scenario);
  Findings found;
  std::vector<double> shares;
  int pieces = 0;
  for (; !job.done(); ++pieces) {
    const SearchNews news = job.step([&](double share) { shares.push_back(share); });
    found.add(news_of(message_of(news)));  // as a page receives them
  }
  CHECK(pieces > 3);
  CHECK(std::is_sorted(shares.begin(), shares.end()));
  CHECK(shares.back() <= 1);
  SearchSpace space;
  space.gpus = 16;
  space.global_batch = 64;
  const auto whole = search(*scenario, space, 1, {});
  REQUIRE(whole.ok());
  const std::vector<PlannedRun>& plans = found.plans;
  CHECK(plans.front().plan == whole->plans.front().plan);
  CHECK(found.considered == whole->considered);
  const auto is_smaller = [](const PlannedRun& a, const PlannedRun& b) {
    return a.predicted.peak < b.predicted.peak;
  };
  space.objective = Objective::kMemory;
  const auto smallest = search(*scenario, space, 1, {});
  REQUIRE(smallest.ok());
  CHECK(std::min_element(plans.begin(), plans.end(), is_smaller)->predicted.peak.value() ==
        smallest->plans.front().predicted.peak.value());
  for (std::size_t i = 1; i < plans.size(); ++i) {
    CHECK(plans[i - 1].predicted.step <= plans[i].predicted.step);
  }
  space.objective = Objective::kTime;
  const auto front = pareto_front(*scenario, space, {});
  REQUIRE(front.ok());
  const std::vector<std::size_t>& shown = found.pareto_front;
  REQUIRE(shown.size() == front->plans.size());
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const PlannedRun& expected = front->plans[shown.size() - 1 - i];  // by increasing time
    CHECK(plans[shown[i]].predicted.step.value() == expected.predicted.step.value());
    CHECK(plans[shown[i]].predicted.peak.value() == expected.predicted.peak.value());
  }
}

TEST_CASE("a failed check in the search's thread reaches the window's thread") {
  auto scenario = std::make_shared<Scenario>(small_scenario());
  scenario->model.hidden_dropout = 2;  // its layers cannot be traced
  BackgroundSearch search([] {});
  search.begin(SearchJob(Choice(), scenario));
  const auto await = [&] {
    while (search.is_busy()) {
      search.news();
      std::this_thread::yield();
    }
  };
  CHECK_THROWS_AS(await(), BugError);
}

TEST_CASE("a stopped search keeps its results and can start again") {
  Choice choice;
  choice.model = "bloom-7b1";
  choice.gpus = 16;
  choice.global_batch = 64;
  const auto scenario = std::make_shared<const Scenario>(small_scenario());
  BackgroundSearch search([] {});
  search.begin(SearchJob(choice, scenario));
  search.stop();
  CHECK_FALSE(search.is_busy());
  search.begin(SearchJob(choice, scenario));
  Findings found;
  while (search.is_busy()) {
    if (std::optional<SearchNews> news = search.news()) found.add(*std::move(news));
    std::this_thread::yield();
  }
  CHECK(found.is_complete);
  CHECK(found.plans.size() == found_by(SearchJob(choice, scenario)).plans.size());
  SearchJob stopped(choice, scenario);
  CHECK_THROWS_AS(stopped.step([](double) { throw SearchStopped(); }), SearchStopped);
}

TEST_CASE("a request carries all inputs of a search") {
  Choice choice;
  choice.model = "bloom-7b1";
  choice.gpus = 16;
  choice.parts = {{StackPart::kBlockingLaunches, 1}};
  choice.limits.asked[Setting::kTp] = {1, 2};
  choice.limits.memory_limit = Bytes(6e10);
  const Result<Choice> same = choice_of(request_of(choice));
  REQUIRE(same.ok());
  CHECK(*same == choice);
  const Scenario scenario = small_scenario();
  const std::vector<PlannedRun> plans =
      found_by(SearchJob(choice, std::make_shared<const Scenario>(scenario))).plans;
  REQUIRE_FALSE(plans.empty());
  choice.around = plans.front().plan;
  choice.opened_model = std::make_shared<const ModelSpec>(scenario.model);
  const Result<Choice> around = choice_of(request_of(choice));
  REQUIRE(around.ok());
  CHECK(around->around == choice.around);
  CHECK(around->opened_model->name == scenario.model.name);
}

TEST_CASE("a text search finds spans") {
  const Timeline timeline = ladder(3, 5);
  const auto count = [&](const char* words) {
    const SpanMask mask = matching_spans(timeline, words);
    return std::count(mask.begin(), mask.end(), true);
  };
  CHECK(count("") == 15);
  CHECK(count("4") == 3);
  CHECK(count("stage 1") == 5);
  CHECK(count("s1 4 forward") == 1);
  CHECK(count("backward") == 0);
}

TEST_CASE("ticks are round numbers inside the axis") {
  for (const double most : {0.003, 7.0, 83.8, 12345.0}) {
    const std::vector<Tick> marks = ticks({0, most, false}, 6);
    CHECK(marks.size() >= 3);
    CHECK(marks.size() <= 8);
    CHECK(marks.back().value <= most * (1 + 1e-9));
  }
  CHECK(ticks({0, 80, false}, 5)[1].label == "20");
}

TEST_CASE("the picture of a search is SVG that names the plan and its figures") {
  SearchSpace space;
  space.gpus = 16;
  space.global_batch = 64;
  const Scenario scenario = small_scenario();
  const auto found = search(scenario, space, 200, {});
  REQUIRE(found.ok());
  const auto picture = plan_picture(scenario, found->plans, found->feasible + found->not_as_good);
  REQUIRE(picture.ok());
  const std::string svg = svg_text(*picture);
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(svg.find("bloom-7b1 on 16 GPUs") != std::string::npos);
  CHECK(svg.size() < 1'000'000);
}

TEST_CASE("data colours differ from each other and from the background") {
  for (const Theme theme : {Theme::kLight, Theme::kDark}) {
    const Palette& palette = palette_of(theme);
    for (std::size_t i = 0; i < palette.memory.size(); ++i) {
      CHECK_FALSE(palette.memory[i] == palette.panel);
      for (std::size_t j = 0; j < i; ++j) CHECK_FALSE(palette.memory[i] == palette.memory[j]);
    }
  }
}

}  // namespace tpsim::gui
