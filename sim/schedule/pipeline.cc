#include "sim/schedule/pipeline.h"

#include <algorithm>
#include <array>

#include "core/base/check.h"

namespace tpsim {
namespace {

constexpr Picoseconds kNotYet = -1;

// State of one simulation. Arrivals are indexed by global chunk and micro-batch.
class Run {
 public:
  Run(const PipelineShape& shape, const PipelineTimes& times, Timeline* timeline)
      : shape_(shape),
        times_(times),
        timeline_(timeline),
        chunks_(shape.stages * shape.virtual_stages),
        transfer_(shape.stages > 1 ? times.transfer : 0) {
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      stages_.push_back({ScheduleCursor(shape, stage)});
    }
    const auto cells = static_cast<std::size_t>(chunks_ * shape.micro_batches);
    for (const TaskKind kind : {TaskKind::kForward, TaskKind::kBackward}) {
      arrivals_[static_cast<std::size_t>(kind)].assign(cells, kNotYet);
    }
    for (std::int64_t i = 0; i < shape.micro_batches; ++i) arrival(TaskKind::kForward, 0, i) = 0;
  }

  PipelineResult finish() {
    PipelineResult result;
    bool progress = true;
    while (progress) {
      progress = false;
      for (std::int64_t stage = 0; stage < shape_.stages; ++stage) {
        const std::int64_t run = run_what_has_arrived(stage);
        result.events += run;
        progress = progress || run > 0;
      }
    }
    for (const Stage& stage : stages_) {
      TPSIM_CHECK(stage.next.done(), "the schedule deadlocks");
      result.finish.push_back(stage.finish);
      result.busy.push_back(stage.busy);
      result.sending.push_back(stage.sending);
      result.end = std::max(result.end, stage.finish);
    }
    return result;
  }

 private:
  struct Stage {
    ScheduleCursor next;
    Picoseconds finish = 0, busy = 0, sending = 0;
  };

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  // Time at which the input of a task arrives on its stage; kNotYet before it is sent.
  Picoseconds& arrival(TaskKind kind, std::int64_t chunk, std::int64_t micro_batch) {
    return arrivals_[static_cast<std::size_t>(kind)]
                    [at(chunk * shape_.micro_batches + micro_batch)];
  }

  // Runs the stage's tasks up to the first one whose input has not arrived. Returns the number of
  // tasks.
  std::int64_t run_what_has_arrived(std::int64_t index) {
    Stage& stage = stages_[at(index)];
    std::int64_t tasks = 0;
    while (!stage.next.done() && run_next(stage, index)) ++tasks;
    return tasks;
  }

  // Runs the stage's next task if its input has arrived. Returns whether the task ran.
  bool run_next(Stage& stage, std::int64_t index) {
    const PipelineTask task = stage.next.current();
    const std::int64_t chunk = task.chunk * shape_.stages + index;
    // Weight gradients need nothing from other stages.
    const Picoseconds arrived =
        task.kind == TaskKind::kWeightGradient ? 0 : arrival(task.kind, chunk, task.micro_batch);
    if (arrived == kNotYet) return false;

    const Picoseconds duration = times_.stages[at(index)][task.kind][at(task.chunk)];
    Picoseconds begin = std::max(stage.finish, arrived);
    if (times_.p2p.receiver_waits && is_received(task.kind, chunk)) {
      begin = std::max(arrived, stage.finish + transfer_);
      stage.sending += transfer_;
    }
    stage.busy += duration;
    stage.finish = begin + duration;
    if (timeline_ != nullptr) {
      timeline_->spans.push_back(
          {index, span_of(task.kind), chunk, task.micro_batch, begin, stage.finish});
    }
    deliver(stage, {index, chunk, task});
    stage.next.advance();
    return true;
  }

  // Returns whether the input comes from another stage. The tokens and the loss are local.
  bool is_received(TaskKind kind, std::int64_t chunk) const {
    if (chunks_ == 1) return false;
    switch (kind) {
      case TaskKind::kForward: return chunk > 0;
      case TaskKind::kBackward: return chunk + 1 < chunks_;
      case TaskKind::kWeightGradient: break;
    }
    return false;
  }

  struct Done {
    std::int64_t stage, chunk;
    PipelineTask task;
  };
  // Sends the result to the same task of the next chunk in its direction. The forward of the last
  // chunk enables its own backward. The backward of the first chunk sends nothing.
  void deliver(Stage& stage, const Done& done) {
    switch (done.task.kind) {
      case TaskKind::kForward:
        if (done.chunk + 1 < chunks_) {
          send(stage, done, done.chunk + 1);
        } else {
          arrival(TaskKind::kBackward, done.chunk, done.task.micro_batch) = stage.finish;
        }
        break;
      case TaskKind::kBackward:
        if (done.chunk > 0) send(stage, done, done.chunk - 1);
        break;
      case TaskKind::kWeightGradient: break;
    }
  }

  void send(Stage& stage, const Done& done, std::int64_t to_chunk) {
    const Picoseconds arrived = stage.finish + transfer_;
    arrival(done.task.kind, to_chunk, done.task.micro_batch) = arrived;
    if (timeline_ != nullptr && transfer_ > 0) {
      timeline_->spans.push_back({done.stage, SpanKind::kTransfer, done.chunk,
                                  done.task.micro_batch, stage.finish, arrived});
    }
    if (!times_.p2p.sender_waits) return;
    stage.sending += transfer_;
    stage.finish = arrived;
  }

  const PipelineShape& shape_;
  const PipelineTimes& times_;
  Timeline* timeline_;
  std::int64_t chunks_;
  Picoseconds transfer_;
  std::vector<Stage> stages_;
  std::array<std::vector<Picoseconds>, kTaskKindCount> arrivals_;
};

}  // namespace

PipelineResult run_pipeline(const PipelineShape& shape, const PipelineTimes& times,
                            Timeline* timeline) {
  return Run(shape, times, timeline).finish();
}

}  // namespace tpsim
