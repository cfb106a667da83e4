#include "sim/peak_moments.h"

#include <algorithm>

namespace tpsim {
namespace {

// Tasks after which the in-flight numbers only repeat: the warm-up and one round of all chunks.
std::int64_t deciding_tasks(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t all = 2 * shape.micro_batches * shape.virtual_stages;
  return std::min(all, warmup_forwards(shape, stage) + 2 * shape.stages * shape.virtual_stages + 2);
}

bool covers(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), std::greater_equal<>());
}

}  // namespace

PeakMoments::PeakMoments(const PipelineShape& shape, std::int64_t stage, const StageKind& kind)
    : kinds_(kind.kinds.size()) {
  // With one chunk the fullest forward and the fullest backward are known without a walk.
  if (shape.virtual_stages == 1) {
    const auto most = static_cast<std::int32_t>(most_in_flight(shape, stage));
    tasks_ = {{true, 0}, {false, 0}};
    in_flight_ = {most - 1, most};
    return;
  }
  std::vector<std::int32_t> in_flight(kinds_);
  const std::int64_t tasks = deciding_tasks(shape, stage);
  for (std::int64_t k = 0; k < tasks; ++k) {
    const PipelineTask task = nth_task(shape, stage, k);
    const std::int32_t of_chunk = kind.kind_of[static_cast<std::size_t>(task.chunk)];
    add({task.forward, of_chunk}, in_flight);
    in_flight[static_cast<std::size_t>(of_chunk)] += task.forward ? 1 : -1;
  }
}

void PeakMoments::add(const Task& task, std::span<const std::int32_t> in_flight) {
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].forward != task.forward || tasks_[i].kind != task.kind) continue;
    const std::span<std::int32_t> known(in_flight_.data() + i * kinds_, kinds_);
    // With no less of any kind in flight a moment is no lower: only such maxima are kept.
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
