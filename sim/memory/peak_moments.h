// The tasks of a stage's schedule during which its memory can peak.
//
// Memory depends on the number of micro-batches in flight per kind of chunk, and on the number that
// await their weight gradients. A task can set the peak only if no task of its kind starts with
// more of both.
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

  // Returns the number of micro-batches from which more micro-batches do not change the peak of a
  // stage.
  static std::int64_t deciding_micro_batches(const PipelineShape& shape, std::int64_t stage);

  PeakMoments(const PipelineShape& shape, std::int64_t stage, const StageKind& kind);

  std::size_t size() const { return tasks_.size(); }
  const Task& task(std::size_t i) const { return tasks_[i]; }
  // Returns the micro-batches in flight at the start of task i, by StageKind::kinds. A backward
  // counts its own micro-batch.
  std::span<const std::int32_t> in_flight(std::size_t i) const {
    return {held_.data() + i * width_, kinds_};
  }
  // Returns the micro-batches between backward and weight gradients, by StageKind::kinds. Empty if
  // the backward is not split.
  std::span<const std::int32_t> awaiting(std::size_t i) const {
    return {held_.data() + i * width_ + kinds_, width_ - kinds_};
  }

 private:
  void add(const Task& task, std::span<const std::int32_t> held);

  std::size_t kinds_, width_;
  std::vector<Task> tasks_;
  std::vector<std::int32_t> held_;  // by task: in_flight(), then awaiting()
};

}  // namespace tpsim
