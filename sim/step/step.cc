#include "sim/step/step.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/normal.h"
#include "sim/layers/pass_times.h"
#include "sim/step/step_end.h"

namespace tpsim {
namespace {

// Times of a stage without pipeline after some of its tasks. The host runs ahead over
// micro-batches.
class SingleStage {
 public:
  SingleStage(const ChunkCost& chunk, const StackSpec& stack, const PipelineShape& shape)
      : forward_(single_stage_forward(stack, chunk.tasks[TaskKind::kForward].time)),
        backward_(chunk.tasks[TaskKind::kBackward].time),
        forwards_first_(shape.schedule == ScheduleKind::kGpipe ? shape.micro_batches : 0) {}

  // Returns the time after the first `forwards` and `backwards`, in the order of the schedule.
  Picoseconds after(std::int64_t forwards, std::int64_t backwards) const {
    if (forwards_first_ > 0) {
      return to_picoseconds(then(repeat(forward_, forwards), repeat(backward_, backwards)).alone());
    }
    const HostDeviceTime both = repeat(then(forward_, backward_), backwards);
    return to_picoseconds((forwards > backwards ? then(both, forward_) : both).alone());
  }
  // Returns the number of forwards before the backward of micro-batch i, and the reverse.
  std::int64_t forwards_before(std::int64_t i) const { return std::max(forwards_first_, i + 1); }
  std::int64_t backwards_before(std::int64_t i) const { return forwards_first_ > 0 ? 0 : i; }

 private:
  HostDeviceTime forward_, backward_;
  std::int64_t forwards_first_;  // GPipe runs all forwards first
};

PipelineResult run_single_stage(const ChunkCost& chunk, const StackSpec& stack,
                                const PipelineShape& shape, Timeline* timeline) {
  const SingleStage stage(chunk, stack, shape);
  const std::int64_t m = shape.micro_batches;
  PipelineResult result;
  result.end = stage.after(m, m);
  result.finish = result.busy = {result.end};
  result.sending = {0};
  result.events = 2 * m;
  if (timeline == nullptr) return result;
  for (std::int64_t i = 0; i < m; ++i) {
    const std::int64_t forwards = stage.forwards_before(i), backwards = stage.backwards_before(i);
    timeline->spans.push_back(
        {0, SpanKind::kForward, 0, i, stage.after(i, backwards), stage.after(i + 1, backwards)});
    timeline->spans.push_back(
        {0, SpanKind::kBackward, 0, i, stage.after(forwards, i), stage.after(forwards, i + 1)});
  }
  return result;
}

// Splits the busy time of the busiest stage into device terms, host wait and transfers.
void add_pipeline_terms(StepCost& cost, const PlanCosts& costs, const PipelineShape& shape) {
  const auto m = static_cast<double>(shape.micro_batches);
  const auto s = static_cast<std::size_t>(cost.busiest_stage);
  const StageCost& stage = costs.stages[s];
  Seconds device, gathers;
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
    const ChunkCost& chunk = costs.chunk(stage, c);
    for (const PhaseCost& task : chunk.tasks) {
      for (const StepTerm term : kWorkTerms) {
        const Seconds time = m * task.work[term];
        cost.terms[term] += time;
        device += time;
      }
      cost.by_source += m * task.by_source;
    }
    const double received = (chunk.is_first ? 0.0 : 1.0) + (chunk.is_last ? 0.0 : 1.0);
    gathers += m * received * costs.transfer.gather;
  }
  const Seconds busy = to_seconds(cost.pipeline.busy[s]);
  const Seconds sending = to_seconds(cost.pipeline.sending[s]);
  // Tasks are rounded to picoseconds, so the difference may be slightly negative.
  cost.terms[StepTerm::kHostWait] = std::max(Seconds(), busy - device - gathers);
  cost.terms[StepTerm::kTransfer] = gathers + sending;
}

double bubble_fraction(const PipelineResult& pipeline) {
  double idle = 0;
  for (const Picoseconds busy : pipeline.busy) {
    idle += static_cast<double>(pipeline.end - busy) / static_cast<double>(pipeline.end);
  }
  return idle / static_cast<double>(pipeline.busy.size());
}

// Terms that apply to all stages alike, at the end of the step.
constexpr std::array<std::pair<SpanKind, StepTerm>, 3> kWholeStepKinds = {
    {{SpanKind::kHostStep, StepTerm::kHostStep},
     {SpanKind::kStragglers, StepTerm::kStragglers},
     {SpanKind::kUncalibratedOverhead, StepTerm::kUncalibratedOverhead}}};

// Appends spans to a stage, one directly after the other.
class SpanAppender {
 public:
  SpanAppender(Timeline& timeline, std::int64_t stage, Picoseconds begin)
      : timeline_(timeline), stage_(stage), end_(begin) {}
  void add(SpanKind kind, Seconds time) { add_until(kind, end_ + to_picoseconds(time)); }
  void add_until(SpanKind kind, Picoseconds end) {
    if (end > end_) timeline_.spans.push_back({stage_, kind, 0, 0, end_, end});
    end_ = std::max(end_, end);
  }
  Picoseconds end() const { return end_; }

 private:
  Timeline& timeline_;
  std::int64_t stage_;
  Picoseconds end_;
};

// Appends the spans between the end of the pipeline and the end of the step. All ranks wait for
// each other twice: at the global norm, which ends at `norm_end`, and at the end of the slowest
// update.
void append_end(Timeline& timeline, const StepCost& cost, const std::vector<StageEnd>& ends,
                Seconds norm, Picoseconds norm_end) {
  timeline.end = to_picoseconds(cost.step);
  Picoseconds updated = 0;
  for (std::size_t s = 0; s < ends.size(); ++s) {
    const auto stage = static_cast<std::int64_t>(s);
    SpanAppender before(timeline, stage, cost.pipeline.finish[s]);
    before.add(SpanKind::kGradientReduction, ends[s].reduction);
    before.add(SpanKind::kTiedEmbedding, ends[s].tied);
    before.add(SpanKind::kClipping, ends[s].local);
    const Picoseconds norm_begin = std::max(before.end(), norm_end - to_picoseconds(norm));
    SpanAppender after(timeline, stage, norm_begin);
    after.add_until(SpanKind::kClipping, norm_end);
    after.add(SpanKind::kOptimizer, ends[s].update);
    after.add(SpanKind::kWeightGather, ends[s].gather);
    updated = std::max(updated, after.end());
  }
  for (std::int64_t stage = 0; stage < timeline.stages; ++stage) {
    const Picoseconds begin = std::min(updated, timeline.end);
    SpanAppender rest(timeline, stage, begin);
    for (const auto& [kind, term] : kWholeStepKinds) rest.add(kind, cost.terms[term]);
    // Each time is rounded to picoseconds, so their sum may differ from the end by a few
    // picoseconds.
    if (rest.end() > begin) timeline.spans.back().end = timeline.end;
  }
}

}  // namespace

StepCost step_cost(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs,
                   Timeline* timeline) {
  const StackSpec& stack = pricer.scenario().stack;
  const PipelineTimes times = pipeline_times(stack, costs);
  const PipelineShape shape = pipeline_shape(plan);

  StepCost cost;
  if (timeline != nullptr) timeline->stages = shape.stages;
  cost.pipeline = shape.stages == 1 ? run_single_stage(costs.kinds[0], stack, shape, timeline)
                                    : run_pipeline(shape, times, timeline);
  cost.bubble_fraction = bubble_fraction(cost.pipeline);

  // All ranks synchronize at the global norm. The terms up to this point are those of the stage
  // with the most work; the rest of the time is bubble.
  Seconds meeting, most;
  const std::vector<StageEnd> ends = stage_ends(pricer, plan, costs, times);
  for (std::size_t s = 0; s < ends.size(); ++s) {
    const Seconds tail = ends[s].before_norm();
    const Seconds own = to_seconds(cost.pipeline.busy[s] + cost.pipeline.sending[s]) + tail;
    meeting = std::max(meeting, to_seconds(cost.pipeline.finish[s]) + tail);
    if (own > most) {
      most = own;
      cost.busiest_stage = static_cast<std::int64_t>(s);
    }
  }
  const StageEnd& tail = ends[static_cast<std::size_t>(cost.busiest_stage)];
  add_pipeline_terms(cost, costs, shape);
  cost.terms[StepTerm::kBubble] = meeting - most;
  cost.terms[StepTerm::kTiedEmbedding] = tail.tied;
  cost.terms[StepTerm::kGradientReduction] = tail.reduction;
  const Seconds norm = pricer.global_norm(plan);
  cost.terms[StepTerm::kClipping] = tail.local + norm;

  // After the norm, every stage updates its weights. The slowest stage determines the end of the
  // step.
  Seconds slowest = Seconds(-1);
  for (const StageEnd& end : ends) {
    if (end.after_norm() <= slowest) continue;
    slowest = end.after_norm();
    cost.terms[StepTerm::kOptimizer] = end.update;
    cost.terms[StepTerm::kWeightGather] = end.gather;
  }
  cost.terms[StepTerm::kHostStep] = stack.host.per_step;
  cost.terms[StepTerm::kStragglers] =
      stack.rank_jitter * expected_maximum(gpu_count(plan)) * to_seconds(cost.pipeline.end);
  for (const Seconds term : cost.terms) cost.step += term;
  cost.terms[StepTerm::kUncalibratedOverhead] = stack.uncalibrated_overhead * cost.step;
  cost.step += cost.terms[StepTerm::kUncalibratedOverhead];
  if (timeline != nullptr) {
    append_end(*timeline, cost, ends, norm, to_picoseconds(meeting + norm));
  }
  return cost;
}

}  // namespace tpsim
