#include "gui/views/critical_path.h"

#include <algorithm>

namespace tpsim::gui {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFF;

bool computes(SpanKind kind) { return kind != SpanKind::kTransfer; }

// Finds the span that a span waited for.
class Causes {
 public:
  explicit Causes(const Timeline& timeline) : timeline_(timeline), by_end_(timeline.spans.size()) {
    for (std::uint32_t i = 0; i < by_end_.size(); ++i) by_end_[i] = i;
    std::stable_sort(by_end_.begin(), by_end_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return timeline.spans[a].end < timeline.spans[b].end;
    });
  }

  // Returns the span that ended exactly when `span` started. If there are several, the order of
  // preference is: compute of the same stage, a transfer of the same micro-batch, another transfer
  // of the same stage, and, for work at the end of the step, compute of another stage. If no span
  // ended at that time, returns a possible cause with the latest earlier end. kNone without a
  // cause.
  std::uint32_t cause_of(const TimelineSpan& span) const {
    auto end = std::upper_bound(
        by_end_.begin(), by_end_.end(), span.begin,
        [&](Picoseconds t, std::uint32_t i) { return t < timeline_.spans[i].end; });
    std::uint32_t best = kNone;
    int best_rank = -1;
    Picoseconds moment = -1;
    while (end != by_end_.begin()) {
      const std::uint32_t candidate = *--end;
      const TimelineSpan& other = timeline_.spans[candidate];
      if (other.begin >= other.end) continue;  // empty span
      if (moment >= 0 && other.end < moment) break;
      const int rank = rank_of(other, span);
      if (rank < 0) continue;
      moment = other.end;
      if (rank <= best_rank) continue;
      best = candidate;
      best_rank = rank;
    }
    return best;
  }

 private:
  // Priority of `other` as the cause of `span`; negative if it cannot be the cause.
  static int rank_of(const TimelineSpan& other, const TimelineSpan& span) {
    const bool ends_step = span.kind >= SpanKind::kGradientReduction;
    if (other.stage == span.stage && computes(other.kind)) return 3;
    if (other.kind == SpanKind::kTransfer) {
      if (other.stage == span.stage && computes(span.kind)) return 1;  // the sender waits
      return other.micro_batch == span.micro_batch && computes(span.kind) && !ends_step ? 2 : -1;
    }
    if (span.kind == SpanKind::kTransfer) return -1;
    return ends_step ? 0 : -1;
  }

  const Timeline& timeline_;
  std::vector<std::uint32_t> by_end_;
};

}  // namespace

std::vector<std::uint32_t> critical_path(const Timeline& timeline) {
  std::vector<std::uint32_t> path;
  std::uint32_t last = kNone;
  for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
    const TimelineSpan& span = timeline.spans[i];
    if (span.begin < span.end && (last == kNone || span.end > timeline.spans[last].end)) last = i;
  }
  const Causes causes(timeline);
  for (std::uint32_t i = last; i != kNone; i = causes.cause_of(timeline.spans[i])) {
    path.push_back(i);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace tpsim::gui
