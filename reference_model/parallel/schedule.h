// Pipeline schedules: the order of the tasks on each stage. Megatron selects one in
// get_forward_backward_func(): forward_backward_no_pipelining,
// forward_backward_pipelining_without_interleaving or
// forward_backward_pipelining_with_interleaving.
//
// The executor runs this order, the simulator times it, and peak memory follows from it.
//
//   gpipe        all forwards, then all backwards (Huang et al. 2019)
//   1f1b         p - 1 - stage warm-up forwards, then one forward, one backward (PipeDream-flush,
//                Narayanan et al. 2021)
//   interleaved  1f1b over `virtual_stages` chunks per stage in groups of p micro-batches (section
//                2.2 of the same paper); warm-up 2(p - 1 - stage) + (v - 1)p
//   zb-h1        1f1b with the backward split: the wgrad GEMMs of a micro-batch run `stage`
//                backwards later (ZB-H1 in Qi et al. 2023, arXiv 2401.10241). On every stage at
//                most p micro-batches hold activations, as on the first stage of 1f1b
#pragma once

#include <cstdint>

#include "core/base/enum_words.h"
#include "core/plan/plan.h"

namespace tpsim {

// kBackward: input gradients, and weight gradients unless the schedule splits the backward.
enum class TaskKind : std::uint8_t { kForward, kBackward, kWeightGradient };
inline constexpr auto kTaskKinds = all_up_to<TaskKind::kWeightGradient>();
inline constexpr std::size_t kTaskKindCount = kTaskKinds.size();

struct PipelineTask {
  TaskKind kind{};
  std::int32_t chunk = 0;  // local: the global chunk is chunk * pp + stage
  std::int32_t micro_batch = 0;
  friend bool operator==(const PipelineTask&, const PipelineTask&) = default;
};

inline bool splits_backward(ScheduleKind schedule) { return schedule == ScheduleKind::kZbH1; }
// Returns the number of tasks of a chunk for one micro-batch.
inline double tasks_per_micro_batch(ScheduleKind schedule) {
  return splits_backward(schedule) ? 3 : 2;
}
// Returns the task in which the weight gradients of a micro-batch become complete.
inline TaskKind gradient_task(ScheduleKind schedule) {
  return splits_backward(schedule) ? TaskKind::kWeightGradient : TaskKind::kBackward;
}

struct PipelineShape {
  ScheduleKind schedule = ScheduleKind::kOneFOneB;
  std::int64_t stages = 1;
  std::int64_t virtual_stages = 1;
  std::int64_t micro_batches = 1;
};
PipelineShape pipeline_shape(const Plan& plan);

// Returns the maximum number of micro-batches between forward and backward on a stage, summed over
// its chunks. For 1f1b: min(m, p - stage).
std::int64_t most_in_flight(const PipelineShape& shape, std::int64_t stage);

// Whether each forward is followed by the backward of the same micro-batch: one stage, one chunk,
// one micro-batch in flight.
bool alternates(const PipelineShape& shape);

// Iterates over the tasks of one stage in execution order. advance() takes a few nanoseconds, since
// the event simulation calls it for each task.
class ScheduleCursor {
 public:
  ScheduleCursor(const PipelineShape& shape, std::int64_t stage);

  bool done() const { return forwards_left_ == 0 && in_flight_ == 0 && awaiting_ == 0; }
  // Returns the current task; requires !done().
  PipelineTask current() const {
    switch (kind_) {
      case TaskKind::kForward: return forwards_.task(TaskKind::kForward);
      case TaskKind::kBackward: return backwards_.task(TaskKind::kBackward);
      case TaskKind::kWeightGradient: break;
    }
    return weight_gradients_.task(TaskKind::kWeightGradient);
  }
  void advance() {
    switch (kind_) {
      case TaskKind::kForward:
        forwards_.advance();
        --forwards_left_;
        ++in_flight_;
        break;
      case TaskKind::kBackward:
        backwards_.advance();
        --in_flight_;
        awaiting_ += splits_ ? 1 : 0;
        break;
      case TaskKind::kWeightGradient:
        weight_gradients_.advance();
        --awaiting_;
        break;
    }
    kind_ = next_kind();
  }

 private:
  // Iterates over all tasks of one kind in order: each group of p micro-batches runs through one
  // chunk after the other.
  class Walk {
   public:
    Walk(TaskKind kind, const PipelineShape& shape);

    PipelineTask task(TaskKind kind) const { return {kind, chunk_, group_ + in_group_}; }
    void advance() {
      if (++in_group_ < stages_) return;
      in_group_ = 0;
      if (chunk_ != last_chunk_) {
        chunk_ += step_;
      } else {
        chunk_ = first_chunk_;
        group_ += stages_;
      }
    }

   private:
    std::int32_t stages_;
    std::int32_t first_chunk_ = 0, last_chunk_ = 0, step_ = 0;
    std::int32_t chunk_ = 0;
    std::int32_t group_ = 0, in_group_ = 0;  // their sum is the micro-batch
  };

  // Returns kForward while fewer than most_in_flight_ micro-batches are in flight, else kBackward.
  // Weight gradients run when more than most_awaiting_ micro-batches await them, and at the end.
  TaskKind next_kind() const {
    if (awaiting_ > most_awaiting_) return TaskKind::kWeightGradient;
    if (forwards_left_ > 0 && in_flight_ < most_in_flight_) return TaskKind::kForward;
    return in_flight_ > 0 ? TaskKind::kBackward : TaskKind::kWeightGradient;
  }

  Walk forwards_, backwards_, weight_gradients_;
  bool splits_;
  std::int32_t most_in_flight_, most_awaiting_;
  std::int32_t forwards_left_;
  std::int32_t in_flight_ = 0, awaiting_ = 0;  // awaiting_: between backward and weight gradients
  TaskKind kind_ = TaskKind::kForward;         // of the current task
};

}  // namespace tpsim
