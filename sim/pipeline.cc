#include "sim/pipeline.h"

#include <algorithm>

#include "core/check.h"

namespace tpsim {
namespace {

constexpr Picoseconds kNotYet = -1;

// State of one run. Arrivals are indexed by (global chunk, micro-batch).
class Run {
 public:
  Run(const PipelineShape& shape, const PipelineTimes& times, Timeline* timeline)
      : shape_(shape),
        times_(times),
        timeline_(timeline),
        chunks_(shape.stages * shape.virtual_stages) {
    const auto stages = static_cast<std::size_t>(shape.stages);
    next_.assign(stages, 0);
    result_.finish.assign(stages, 0);
    result_.busy.assign(stages, 0);
    result_.sending.assign(stages, 0);
    const auto cells = static_cast<std::size_t>(chunks_ * shape.micro_batches);
    forward_arrival_.assign(cells, kNotYet);
    backward_arrival_.assign(cells, kNotYet);
    std::fill_n(forward_arrival_.begin(), shape.micro_batches, 0);
  }

  PipelineResult finish() {
    const std::int64_t tasks = 2 * shape_.micro_batches * shape_.virtual_stages;
    bool progress = true;
    while (progress) {
      progress = false;
      for (std::int64_t stage = 0; stage < shape_.stages; ++stage) {
        while (next_[at(stage)] < tasks && run_next(stage)) progress = true;
      }
    }
    for (std::int64_t stage = 0; stage < shape_.stages; ++stage) {
      TPSIM_CHECK(next_[at(stage)] == tasks, "the schedule deadlocks");
      result_.end = std::max(result_.end, result_.finish[at(stage)]);
    }
    return std::move(result_);
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::size_t cell(std::int64_t chunk, std::int64_t micro_batch) const {
    return at(chunk * shape_.micro_batches + micro_batch);
  }

  // Runs the stage's next task if its input has arrived.
  bool run_next(std::int64_t stage) {
    const PipelineTask task = nth_task(shape_, stage, next_[at(stage)]);
    const std::int64_t chunk = task.chunk * shape_.stages + stage;
    auto& arrivals = task.forward ? forward_arrival_ : backward_arrival_;
    const Picoseconds arrival = arrivals[cell(chunk, task.micro_batch)];
    if (arrival == kNotYet) return false;

    const StageTimes& times = times_.stages[at(stage)];
    const Picoseconds duration = (task.forward ? times.forward : times.backward)[at(task.chunk)];
    const Picoseconds begin = std::max(result_.finish[at(stage)], arrival);
    const Picoseconds done = begin + duration;
    result_.busy[at(stage)] += duration;
    result_.finish[at(stage)] = done;
    if (timeline_ != nullptr) {
      timeline_->spans.push_back({stage, task.forward ? SpanKind::kForward : SpanKind::kBackward,
                                  chunk, task.micro_batch, begin, done});
    }
    deliver(stage, task, chunk, done);
    ++next_[at(stage)];
    ++result_.events;
    return true;
  }

  void deliver(std::int64_t stage, const PipelineTask& task, std::int64_t chunk, Picoseconds done) {
    // The last chunk's loss starts its own backward; the first chunk's backward ends the chain.
    if (task.forward && chunk + 1 == chunks_) {
      backward_arrival_[cell(chunk, task.micro_batch)] = done;
      return;
    }
    if (!task.forward && chunk == 0) return;
    const Picoseconds transfer = shape_.stages > 1 ? times_.transfer : 0;
    const Picoseconds arrival = done + transfer;
    const std::int64_t to = task.forward ? chunk + 1 : chunk - 1;
    (task.forward ? forward_arrival_ : backward_arrival_)[cell(to, task.micro_batch)] = arrival;
    if (timeline_ != nullptr && transfer > 0) {
      timeline_->spans.push_back(
          {stage, SpanKind::kTransfer, chunk, task.micro_batch, done, arrival});
    }
    if (!times_.sender_waits) return;
    result_.sending[at(stage)] += transfer;
    result_.finish[at(stage)] = arrival;
  }

  const PipelineShape& shape_;
  const PipelineTimes& times_;
  Timeline* timeline_;
  std::int64_t chunks_;
  std::vector<std::int64_t> next_;
  std::vector<Picoseconds> forward_arrival_, backward_arrival_;
  PipelineResult result_;
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
