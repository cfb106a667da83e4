#include "gui/views/span_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/base/numbers.h"
#include "gui/views/breakdown.h"

namespace tpsim::gui {
namespace {

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
  for (const StepTerm term : kWorkTerms) {
    const Seconds time = phase.work[term];
    if (time.value() > 0) text += fmt::format("\n{}  {}", time_text(time), plain(name_of(term)));
  }
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
