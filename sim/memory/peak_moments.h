// The moments of a stage's schedule at which its memory can be highest.
//
// What a stage holds depends on how many micro-batches of each kind of its chunks are between
// forward and backward. Of the thousands of tasks in a step only those count that start with more
// in flight than every other task of their kind.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference_model/parallel/schedule.h"
#include "sim/schedule/stage_cut.h"

namespace tpsim {

class PeakMoments {
 public:
  struct Task {
    TaskKind kind{};
    std::int32_t chunk_kind = 0;  // index into StageKind::kinds
  };

  // The micro-batches that decide: with more of them a stage only repeats what it holds.
  static std::int64_t deciding_micro_batches(const PipelineShape& shape, std::int64_t stage);

  PeakMoments(const PipelineShape& shape, std::int64_t stage, const StageKind& kind);

  std::size_t size() const { return tasks_.size(); }
  const Task& task(std::size_t i) const { return tasks_[i]; }
  // Micro-batches in flight, for each of StageKind::kinds, as task i starts; its own backward
  // counts.
  std::span<const std::int32_t> in_flight(std::size_t i) const {
    return {in_flight_.data() + i * kinds_, kinds_};
  }

 private:
  void add(const Task& task, std::span<const std::int32_t> in_flight);

  std::size_t kinds_;
  std::vector<Task> tasks_;
  std::vector<std::int32_t> in_flight_;
};

}  // namespace tpsim
