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
  // Each forward of the second pp micro-batches follows weight gradients.
  if (splits_backward(shape.schedule)) return std::min(shape.micro_batches, 2 * shape.stages);
  if (shape.virtual_stages == 1) return most_in_flight(shape, stage);
  return std::min(shape.micro_batches, kDistinctGroups * shape.stages);
}

PeakMoments::PeakMoments(const PipelineShape& shape, std::int64_t stage, const StageKind& kind)
    : kinds_(kind.kinds.size()), width_(splits_backward(shape.schedule) ? 2 * kinds_ : kinds_) {
  PipelineShape deciding = shape;
  deciding.micro_batches = deciding_micro_batches(shape, stage);
  // With one chunk per stage, the maximum number in flight is known without a walk over the
  // schedule.
  if (shape.virtual_stages == 1 && !splits_backward(shape.schedule)) {
    const auto most = static_cast<std::int32_t>(deciding.micro_batches);
    tasks_ = {{TaskKind::kForward, 0}, {TaskKind::kBackward, 0}};
    held_ = {most - 1, most};
    return;
  }
  std::vector<std::int32_t> held(width_);
  for (ScheduleCursor next(deciding, stage); !next.done(); next.advance()) {
    const PipelineTask task = next.current();
    const std::int32_t chunk_kind = kind.kind_of[static_cast<std::size_t>(task.chunk)];
    const auto in_flight = static_cast<std::size_t>(chunk_kind), awaiting = in_flight + kinds_;
    add({task.kind, chunk_kind}, held);
    switch (task.kind) {
      case TaskKind::kForward: ++held[in_flight]; break;
      case TaskKind::kBackward:
        --held[in_flight];
        if (awaiting < width_) ++held[awaiting];
        break;
      case TaskKind::kWeightGradient: --held[awaiting]; break;
    }
  }
}

void PeakMoments::add(const Task& task, std::span<const std::int32_t> held) {
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].kind != task.kind || tasks_[i].chunk_kind != task.chunk_kind) continue;
    const std::span<std::int32_t> known(held_.data() + i * width_, width_);
    // Keeps only maximal entries: more micro-batches in flight never lower the memory.
    if (covers(known, held)) return;
    if (covers(held, known)) {
      std::copy(held.begin(), held.end(), known.begin());
      return;
    }
  }
  tasks_.push_back(task);
  held_.insert(held_.end(), held.begin(), held.end());
}

}  // namespace tpsim
