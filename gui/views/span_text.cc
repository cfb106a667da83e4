#include "gui/views/span_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/base/numbers.h"
#include "core/plan/step_term.h"
#include "gui/views/breakdown.h"

namespace tpsim::gui {
namespace {

constexpr Seconds kRounding(1e-9);  // of spans to picoseconds, and more

std::string work_text(const PlanView& view, const TimelineSpan& span) {
  const auto stage = static_cast<std::size_t>(span.stage);
  const auto local = static_cast<std::size_t>(span.chunk / view.plan.degrees.pp);
  if (stage >= view.costs.stages.size() || local >= view.costs.stages[stage].chunks.size())
    return "";
  const ChunkCost& chunk = view.costs.chunk(view.costs.stages[stage], local);
  const PhaseCost& phase = chunk.tasks[task_of(span.kind)];
  std::string text = fmt::format("\n\n{} blocks", chunk.blocks);
  if (chunk.is_first) text += " and the embedding";
  if (chunk.is_last) text += " and the head";
  const auto add = [&](StepTerm term, Seconds time) {
    if (time.value() > 0) text += fmt::format("\n{}  {}", time_text(time), plain(name_of(term)));
  };
  // The rest of the span is the gather of inputs from another stage, and wait for the host.
  Seconds left = to_seconds(span.end - span.begin);
  for (const StepTerm term : kWorkTerms) {
    add(term, phase.work[term]);
    left -= phase.work[term];
  }
  const bool receives = (span.kind == SpanKind::kForward && !chunk.is_first) ||
                        (span.kind == SpanKind::kBackward && !chunk.is_last);
  const Seconds gather = receives ? std::min(left, view.costs.transfer.gather) : Seconds();
  add(StepTerm::kTransfer, gather);
  if (left - gather > kRounding) add(StepTerm::kHostWait, left - gather);
  return text;
}

}  // namespace

std::string span_text(const PlanView& view, std::uint32_t index) {
  const TimelineSpan& span = view.timeline.spans[index];
  const bool has_number = span.kind <= SpanKind::kTransfer;
  std::string text(name_of(span.kind));
  text.front() = static_cast<char>(std::toupper(text.front()));
  if (has_number) text += fmt::format(" of micro-batch {}", span.micro_batch);
  text += fmt::format(", stage {}", span.stage);
  if (view.plan.virtual_stages > 1 && has_number) text += fmt::format(", chunk {}", span.chunk);
  text += fmt::format("\n{}, from {} to {}", time_text(to_seconds(span.end - span.begin)),
                      time_text(to_seconds(span.begin)), time_text(to_seconds(span.end)));
  if (is_task(span.kind)) text += work_text(view, span);
  const std::vector<std::uint32_t>& path = view.critical_path;
  const bool is_critical = std::find(path.begin(), path.end(), index) != path.end();
  if (is_critical) text += "\n\nOn the critical path: a shorter span makes the step shorter.";
  return text;
}

std::string bubble_text(std::int64_t stage, const TimelineGap& gap) {
  return fmt::format("Bubble, stage {}\n{}, from {} to {}", stage,
                     time_text(to_seconds(gap.end - gap.begin)), time_text(to_seconds(gap.begin)),
                     time_text(to_seconds(gap.end)));
}

}  // namespace tpsim::gui
