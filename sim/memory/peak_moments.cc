#include "sim/memory/peak_moments.h"

#include <algorithm>

namespace tpsim {
namespace {

// The tasks of an interleaved schedule repeat from the third group of pp micro-batches.
constexpr std::int64_t kDistinctGroups = 3;

bool covers(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), std::greater_equal<>());
}

}  // namespace

std::int64_t PeakMoments::deciding_micro_batches(const PipelineShape& shape, std::int64_t stage) {
  if (shape.virtual_stages == 1) return most_in_flight(shape, stage);
  return std::min(shape.micro_batches, kDistinctGroups * shape.stages);
}

PeakMoments::PeakMoments(const PipelineShape& shape, std::int64_t stage, const StageKind& kind)
    : kinds_(kind.kinds.size()) {
  PipelineShape deciding = shape;
  deciding.micro_batches = deciding_micro_batches(shape, stage);
  // With one chunk per stage, the maximum number in flight is known without a walk over the
  // schedule.
  if (shape.virtual_stages == 1) {
    const auto most = static_cast<std::int32_t>(deciding.micro_batches);
    tasks_ = {{TaskKind::kForward, 0}, {TaskKind::kBackward, 0}};
    in_flight_ = {most - 1, most};
    return;
  }
  std::vector<std::int32_t> in_flight(kinds_);
  for (ScheduleCursor next(deciding, stage); !next.done(); next.advance()) {
    const PipelineTask task = next.current();
    const std::int32_t chunk_kind = kind.kind_of[static_cast<std::size_t>(task.chunk)];
    add({task.kind, chunk_kind}, in_flight);
    switch (task.kind) {
      case TaskKind::kForward: ++in_flight[static_cast<std::size_t>(chunk_kind)]; break;
      case TaskKind::kBackward: --in_flight[static_cast<std::size_t>(chunk_kind)]; break;
    }
  }
}

void PeakMoments::add(const Task& task, std::span<const std::int32_t> in_flight) {
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].kind != task.kind || tasks_[i].chunk_kind != task.chunk_kind) continue;
    const std::span<std::int32_t> known(in_flight_.data() + i * kinds_, kinds_);
    // Keeps only maximal entries: more micro-batches in flight never lower the memory.
    if (covers(known, in_flight)) return;
    if (covers(in_flight, known)) {
      std::copy(in_flight.begin(), in_flight.end(), known.begin());
      return;
    }
  }
  tasks_.push_back(task);
  in_flight_.insert(in_flight_.end(), in_flight.begin(), in_flight.end());
}

}  // namespace tpsim
