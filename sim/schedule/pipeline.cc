#include "sim/schedule/pipeline.h"

#include <algorithm>

#include "core/base/check.h"

namespace tpsim {
namespace {

constexpr Picoseconds kNotYet = -1;

// One simulation.
class Run {
 public:
  Run(const PipelineShape& shape, const PipelineTimes& times, Timeline* timeline)
      : times_(times),
        timeline_(timeline),
        transfer_(shape.stages > 1 ? times.transfer : 0),
        arrivals_(static_cast<std::size_t>(2 * chunk_count(shape) * shape.micro_batches), kNotYet) {
    std::fill_n(arrivals(shape, TaskKind::kForward, 0), shape.micro_batches, 0);
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      stages_.push_back({ScheduleCursor(shape, stage), {}});
      for (std::int64_t i = 0; i < shape.virtual_stages; ++i) {
        stages_.back().chunks.push_back(chunk_of(shape, stage, i));
      }
    }
  }

  PipelineResult finish() {
    PipelineResult result;
    bool progress = true;
    while (progress) {
      progress = false;
      for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
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
  // A kind of task in a chunk. Inputs and outputs are times of arrival by micro-batch, kNotYet
  // before the input is sent. Null: no input from, or no output to another task.
  struct ChunkTask {
    Picoseconds duration = 0;
    const Picoseconds* inputs = nullptr;
    Picoseconds* outputs = nullptr;
    bool is_received = false, is_sent = false;  // from, to another chunk
  };
  struct Chunk {
    std::int64_t index = 0;  // in the model
    ByTask<ChunkTask> tasks;
  };
  struct Stage {
    ScheduleCursor next;
    std::vector<Chunk> chunks;
    Picoseconds finish = 0, busy = 0, sending = 0;
  };

  static std::int64_t chunk_count(const PipelineShape& shape) {
    return shape.stages * shape.virtual_stages;
  }
  Picoseconds* arrivals(const PipelineShape& shape, TaskKind kind, std::int64_t chunk) {
    const std::int64_t rows = kind == TaskKind::kForward ? 0 : chunk_count(shape);
    return arrivals_.data() + (rows + chunk) * shape.micro_batches;
  }

  // Results go to the same task of the next chunk in its direction. The forward of the last chunk
  // enables its own backward. The backward of the first chunk sends nothing. Weight gradients need
  // nothing from other chunks.
  Chunk chunk_of(const PipelineShape& shape, std::int64_t stage, std::int64_t i) {
    Chunk chunk{i * shape.stages + stage, {}};
    const bool is_first = chunk.index == 0, is_last = chunk.index + 1 == chunk_count(shape);
    for (const TaskKind kind : kTaskKinds) {
      chunk.tasks[kind].duration =
          times_.stages[static_cast<std::size_t>(stage)][kind][static_cast<std::size_t>(i)];
    }
    const auto row = [&](TaskKind kind, std::int64_t away) {
      return arrivals(shape, kind, chunk.index + away);
    };
    ChunkTask& forward = chunk.tasks[TaskKind::kForward];
    ChunkTask& backward = chunk.tasks[TaskKind::kBackward];
    forward.inputs = row(TaskKind::kForward, 0);
    backward.inputs = row(TaskKind::kBackward, 0);
    forward.outputs = is_last ? row(TaskKind::kBackward, 0) : row(TaskKind::kForward, 1);
    backward.outputs = is_first ? nullptr : row(TaskKind::kBackward, -1);
    forward.is_received = backward.is_sent = !is_first;
    forward.is_sent = backward.is_received = !is_last;
    return chunk;
  }

  // Runs the stage's tasks up to the first one whose input has not arrived. Returns the number of
  // tasks.
  std::int64_t run_what_has_arrived(std::size_t index) {
    Stage& stage = stages_[index];
    std::int64_t tasks = 0;
    while (!stage.next.done() && run_next(stage, static_cast<std::int64_t>(index))) ++tasks;
    return tasks;
  }

  // Runs the stage's next task if its input has arrived. Returns whether the task ran.
  bool run_next(Stage& stage, std::int64_t index) {
    const PipelineTask next = stage.next.current();
    const Chunk& chunk = stage.chunks[static_cast<std::size_t>(next.chunk)];
    const ChunkTask& task = chunk.tasks[next.kind];
    const Picoseconds arrived = task.inputs != nullptr ? task.inputs[next.micro_batch] : 0;
    if (arrived == kNotYet) return false;

    Picoseconds begin = std::max(stage.finish, arrived);
    if (times_.p2p.receiver_waits && task.is_received) {
      begin = std::max(arrived, stage.finish + transfer_);
      stage.sending += transfer_;
    }
    stage.busy += task.duration;
    const Picoseconds end = begin + task.duration;
    const Picoseconds sent = task.is_sent ? end + transfer_ : end;
    if (task.outputs != nullptr) task.outputs[next.micro_batch] = sent;
    stage.finish = times_.p2p.sender_waits ? sent : end;
    stage.sending += stage.finish - end;
    if (timeline_ != nullptr) {
      const std::int64_t m = next.micro_batch;
      timeline_->spans.push_back({index, span_of(next.kind), chunk.index, m, begin, end});
      if (sent > end) {
        timeline_->spans.push_back({index, SpanKind::kTransfer, chunk.index, m, end, sent});
      }
    }
    stage.next.advance();
    return true;
  }

  const PipelineTimes& times_;
  Timeline* timeline_;
  Picoseconds transfer_;
  std::vector<Picoseconds> arrivals_;  // of forwards, then of backwards; by chunk and micro-batch
  std::vector<Stage> stages_;
};

}  // namespace

PipelineResult run_pipeline(const PipelineShape& shape, const PipelineTimes& times,
                            Timeline* timeline) {
  return Run(shape, times, timeline).finish();
}

}  // namespace tpsim
