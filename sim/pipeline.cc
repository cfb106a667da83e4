#include "sim/pipeline.h"

#include <algorithm>

#include "core/check.h"

namespace tpsim {
namespace {

constexpr Picoseconds kNotYet = -1;

// The forwards or the backwards of a stage in their order, as interleaved_task() counts them, by
// addition alone.
class TaskWalk {
 public:
  TaskWalk(const PipelineShape& shape, bool forward)
      : stages_(static_cast<std::int32_t>(shape.stages)),
        last_chunk_(static_cast<std::int32_t>(forward ? shape.virtual_stages - 1 : 0)),
        first_chunk_(static_cast<std::int32_t>(forward ? 0 : shape.virtual_stages - 1)),
        step_(forward ? 1 : -1),
        chunk_(first_chunk_) {}

  std::int32_t chunk() const { return chunk_; }
  std::int32_t micro_batch() const { return group_ + within_; }
  void advance() {
    if (++within_ < stages_) return;
    within_ = 0;
    if (chunk_ != last_chunk_) {
      chunk_ += step_;
    } else {
      chunk_ = first_chunk_;
      group_ += stages_;
    }
  }

 private:
  std::int32_t stages_, last_chunk_, first_chunk_, step_;
  std::int32_t chunk_;
  std::int32_t within_ = 0, group_ = 0;
};

// State of one run. Arrivals are indexed by (global chunk, micro-batch).
class Run {
 public:
  Run(const PipelineShape& shape, const PipelineTimes& times, Timeline* timeline)
      : shape_(shape),
        times_(times),
        timeline_(timeline),
        chunks_(shape.stages * shape.virtual_stages),
        tasks_(2 * shape.micro_batches * shape.virtual_stages),
        transfer_(shape.stages > 1 ? times.transfer : 0) {
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      stages_.emplace_back(shape, warmup_forwards(shape, stage));
    }
    const auto cells = static_cast<std::size_t>(chunks_ * shape.micro_batches);
    forward_arrival_.assign(cells, kNotYet);
    backward_arrival_.assign(cells, kNotYet);
    std::fill_n(forward_arrival_.begin(), shape.micro_batches, 0);
  }

  PipelineResult finish() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (std::int64_t stage = 0; stage < shape_.stages; ++stage) {
        while (stages_[at(stage)].done < tasks_ && run_next(stage)) progress = true;
      }
    }
    PipelineResult result;
    for (const Stage& stage : stages_) {
      TPSIM_CHECK(stage.done == tasks_, "the schedule deadlocks");
      result.finish.push_back(stage.finish);
      result.busy.push_back(stage.busy);
      result.sending.push_back(stage.sending);
      result.end = std::max(result.end, stage.finish);
      result.events += stage.done;
    }
    return result;
  }

 private:
  struct Stage {
    Stage(const PipelineShape& shape, std::int64_t warmup_forwards)
        : forwards(shape, true), backwards(shape, false), warmup(warmup_forwards) {}
    TaskWalk forwards, backwards;
    std::int64_t warmup;
    std::int64_t done = 0;
    Picoseconds finish = 0, busy = 0, sending = 0;
  };

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::size_t cell(std::int64_t chunk, std::int64_t micro_batch) const {
    return at(chunk * shape_.micro_batches + micro_batch);
  }

  // As nth_task(): warm-up, then forward and backward in turn, then what is left of backward.
  bool next_is_forward(const Stage& stage) const {
    if (stage.done < stage.warmup) return true;
    return stage.done < tasks_ - stage.warmup && (stage.done - stage.warmup) % 2 == 0;
  }

  // Runs the stage's next task if its input has arrived.
  bool run_next(std::int64_t index) {
    Stage& stage = stages_[at(index)];
    const bool forward = next_is_forward(stage);
    TaskWalk& walk = forward ? stage.forwards : stage.backwards;
    const std::int32_t local = walk.chunk();
    const std::int64_t chunk = local * shape_.stages + index;
    const std::int64_t micro_batch = walk.micro_batch();
    const auto& arrivals = forward ? forward_arrival_ : backward_arrival_;
    const Picoseconds arrival = arrivals[cell(chunk, micro_batch)];
    if (arrival == kNotYet) return false;

    const StageTimes& times = times_.stages[at(index)];
    const Picoseconds duration = (forward ? times.forward : times.backward)[at(local)];
    const Picoseconds begin = std::max(stage.finish, arrival);
    stage.busy += duration;
    stage.finish = begin + duration;
    if (timeline_ != nullptr) {
      timeline_->spans.push_back({index, forward ? SpanKind::kForward : SpanKind::kBackward, chunk,
                                  micro_batch, begin, stage.finish});
    }
    deliver(stage, {index, chunk, micro_batch, forward});
    walk.advance();
    ++stage.done;
    return true;
  }

  struct Sent {
    std::int64_t stage, chunk, micro_batch;
    bool forward;
  };
  void deliver(Stage& stage, const Sent& sent) {
    // The last chunk's loss starts its own backward; the first chunk's backward ends the chain.
    if (sent.forward && sent.chunk + 1 == chunks_) {
      backward_arrival_[cell(sent.chunk, sent.micro_batch)] = stage.finish;
      return;
    }
    if (!sent.forward && sent.chunk == 0) return;
    const Picoseconds arrival = stage.finish + transfer_;
    const std::int64_t to = sent.forward ? sent.chunk + 1 : sent.chunk - 1;
    (sent.forward ? forward_arrival_ : backward_arrival_)[cell(to, sent.micro_batch)] = arrival;
    if (timeline_ != nullptr && transfer_ > 0) {
      timeline_->spans.push_back(
          {sent.stage, SpanKind::kTransfer, sent.chunk, sent.micro_batch, stage.finish, arrival});
    }
    if (!times_.sender_waits) return;
    stage.sending += transfer_;
    stage.finish = arrival;
  }

  const PipelineShape& shape_;
  const PipelineTimes& times_;
  Timeline* timeline_;
  std::int64_t chunks_;
  std::int64_t tasks_;  // of a stage
  Picoseconds transfer_;
  std::vector<Stage> stages_;
  std::vector<Picoseconds> forward_arrival_, backward_arrival_;
};

Picoseconds sum(const std::vector<Picoseconds>& times) {
  Picoseconds total = 0;
  for (const Picoseconds time : times) total += time;
  return total;
}

}  // namespace

PipelineResult run_pipeline(const PipelineShape& shape, const PipelineTimes& times,
                            Timeline* timeline) {
  return Run(shape, times, timeline).finish();
}

Picoseconds pipeline_lower_bound(const PipelineShape& shape, const PipelineTimes& times) {
  Picoseconds bound = 0, way_in = 0, way_out = 0;
  for (const StageTimes& stage : times.stages) {
    const Picoseconds own = shape.micro_batches * (sum(stage.forward) + sum(stage.backward));
    bound = std::max(bound, way_in + own + way_out);
    // Only the first chunk's forward lies before the next stage's first task, and only the first
    // chunk's backward after its last.
    way_in += stage.forward.front() + times.transfer;
    way_out += stage.backward.front() + times.transfer;
  }
  return bound;
}

}  // namespace tpsim
