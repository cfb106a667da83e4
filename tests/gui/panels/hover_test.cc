// Hovers over every kind of span of every kind of model: the descriptions use the terms of the
// report.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "core/base/numbers.h"
#include "gui/views/saved_view.h"
#include "gui/views/span_text.h"
#include "tests/cli/golden_plans.h"
#include "tests/cli/typed_answers.h"
#include "tests/gui/gui_fixture.h"

namespace tpsim::gui {
namespace {

PlanFile saved(const test::GoldenPlan& golden) {
  using namespace tpsim::cli;
  const auto answer =
      simulate_answer(test::arguments_of(Command::kSimulate, golden.given), std::nullopt);
  if (!answer.ok()) FAIL(to_string(answer.error()));
  return plan_file_of(answer->named, answer->run.plan);
}

const TimelineSpan* longest_of(const Timeline& timeline, SpanKind kind) {
  const TimelineSpan* longest = nullptr;
  for (const TimelineSpan& span : timeline.spans) {
    if (span.kind != kind || span.end == span.begin) continue;
    if (longest == nullptr || span.end - span.begin > longest->end - longest->begin) {
      longest = &span;
    }
  }
  return longest;
}

// Returns the description of the span; empty if the span was not found.
std::string hovered(GuiFixture& gui, const TimelineSpan& span) {
  TimelineState& timeline = gui.state().timeline;
  const double begin = to_seconds(span.begin).value(), end = to_seconds(span.end).value();
  timeline.begin = std::max(0.0, begin - 0.1 * (end - begin));
  timeline.end = end + 0.1 * (end - begin);
  std::string kind(name_of(span.kind));
  kind.front() = static_cast<char>(std::toupper(kind.front()));
  constexpr int kHeights = 40;  // enough for both lanes of every stage
  for (int i = 0; i < kHeights; ++i) {
    REQUIRE(gui.run(fmt::format("move \"timeline A\" 0.5 {}", (i + 0.5) / kHeights)) == "");
    const std::string& said = gui.state().timeline.hovered;
    const std::string place = fmt::format(", stage {}", span.stage);
    if (said.starts_with(kind) && said.find(place) != std::string::npos) return said;
  }
  return "";
}

std::vector<std::string> expected_lines(const PlanView& view, const TimelineSpan& span) {
  const auto stage = static_cast<std::size_t>(span.stage);
  const auto local = static_cast<std::size_t>(span.chunk / view.plan.degrees.pp);
  const ChunkCost& chunk = view.costs.chunk(view.costs.stages[stage], local);
  const bool is_forward = span.kind == SpanKind::kForward;
  const PhaseCost& phase = chunk.tasks[is_forward ? TaskKind::kForward : TaskKind::kBackward];
  std::vector<std::string> lines;
  for (const StepTerm term : kStepTerms) {
    if (term > kWorkTerms.back() || phase.work[term].value() <= 0) continue;
    std::string name(name_of(term));
    std::replace(name.begin(), name.end(), '_', ' ');
    lines.push_back(fmt::format("\n{}  {}", time_text(phase.work[term]), name));
  }
  return lines;
}

// Returns the sum of the times of the terms, which are the last lines with a time.
double sum_of_lines(const std::string& said) {
  const std::map<std::string, double> units = {
      {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"min", 60}};
  std::istringstream lines(said.substr(said.find("\n\n") + 2));
  double sum = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    double number = 0;
    std::string unit;
    if (words >> number >> unit && units.count(unit) == 1) sum += number * units.at(unit);
  }
  return sum;
}

}  // namespace

TEST_CASE("the span under the pointer has the report's term, in every kind of plan") {
  std::size_t kinds = 0;
  for (const test::GoldenPlan& golden : test::golden_plans()) {
    AppState state;
    show_plan(saved(golden), state);
    GuiFixture gui(state);
    REQUIRE(gui.run("wait 2") == "");
    REQUIRE(gui.views().a);
    for (const SpanKind kind : all_of<SpanKind>()) {
      const std::shared_ptr<const PlanView> view = gui.views().a;
      const TimelineSpan* const span = longest_of(view->timeline, kind);
      if (span == nullptr) continue;
      INFO(golden.what << ": " << name_of(kind));
      const std::string said = hovered(gui, *span);
      CHECK_FALSE(said.empty());
      ++kinds;
      if (kind != SpanKind::kForward && kind != SpanKind::kBackward) continue;
      const std::vector<std::string> lines = expected_lines(*view, *span);
      for (const std::string& line : lines) CHECK_THAT(said, Catch::Contains(line));
      CHECK(sum_of_lines(said) ==
            Approx(to_seconds(span->end - span->begin).value()).epsilon(0.01));
    }
  }
  CHECK(kinds > 30);
}

TEST_CASE("only tasks that receive inputs have the time of their gather") {
  PlanFile file = saved(test::golden_plans().front());
  file.plan.schedule = ScheduleKind::kZbH1;
  file.plan.sequence_parallel = false;
  file.plan.micro_batch = 1;
  file.stack = "reference";
  AppState state;
  show_plan(file, state);
  GuiFixture gui(state);
  REQUIRE(gui.run("wait 2") == "");
  REQUIRE(gui.views().a);
  const PlanView& view = *gui.views().a;
  if (view.error) FAIL(to_string(*view.error));
  REQUIRE(view.costs.transfer.gather > Seconds());
  for (std::uint32_t i = 0; i < view.timeline.spans.size(); ++i) {
    if (view.timeline.spans[i].kind != SpanKind::kWeightGradient) continue;
    CHECK_THAT(span_text(view, i), !Catch::Contains("pipeline transfer"));
  }
  CHECK(longest_of(view.timeline, SpanKind::kWeightGradient) != nullptr);
}

}  // namespace tpsim::gui
