#include "sim/schedule/pipeline.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>

namespace tpsim {
namespace {

PipelineTimes equal_stages(std::int64_t stages, std::int64_t chunks, Picoseconds forward,
                           Picoseconds backward) {
  PipelineTimes times;
  const auto n = static_cast<std::size_t>(chunks);
  times.stages.assign(
      static_cast<std::size_t>(stages),
      StageTimes{{std::vector<Picoseconds>(n, forward), std::vector<Picoseconds>(n, backward),
                  std::vector<Picoseconds>(n, 0)}});
  return times;
}

PipelineTimes random_stages(unsigned seed, std::int64_t stages, std::int64_t chunks) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<Picoseconds> time(1, 1000);
  PipelineTimes times = equal_stages(stages, chunks, 0, 0);
  for (StageTimes& stage : times.stages) {
    for (const TaskKind task : {TaskKind::kForward, TaskKind::kBackward}) {
      for (auto& t : stage[task]) t = time(random);
    }
  }
  times.transfer = time(random) / 10;
  return times;
}

Picoseconds sum(const std::vector<Picoseconds>& times) {
  Picoseconds total = 0;
  for (const Picoseconds time : times) total += time;
  return total;
}

// Returns a lower bound for any schedule: the maximum over stages of the time before the first
// task, the stage's own work, and the time after its last task. Equal to run_pipeline() for equal
// stages and zero transfer time.
Picoseconds pipeline_lower_bound(const PipelineShape& shape, const PipelineTimes& times) {
  const bool splits = splits_backward(shape.schedule);  // the last task sends nothing
  Picoseconds bound = 0, way_in = 0, way_out = 0;
  for (const StageTimes& stage : times.stages) {
    Picoseconds own = 0;
    for (const std::vector<Picoseconds>& tasks : stage) own += shape.micro_batches * sum(tasks);
    bound = std::max(bound, way_in + own + way_out);
    // Before its first task, the next stage waits only for the forward of this stage's first chunk.
    // After its last task, only the backward of this stage's first chunk follows.
    way_in += stage[TaskKind::kForward].front() + times.transfer;
    if (!splits) way_out += stage[TaskKind::kBackward].front() + times.transfer;
  }
  return bound;
}

}  // namespace

TEST_CASE("equal stages take (m + p - 1)(f + b) under gpipe and 1f1b") {
  for (const auto schedule : {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB}) {
    for (const std::int64_t p : {1, 2, 3, 8}) {
      for (const std::int64_t m : {1, 2, 3, 8, 33}) {
        const PipelineShape shape{schedule, p, 1, m};
        const PipelineTimes times = equal_stages(p, 1, 100, 217);
        CHECK(run_pipeline(shape, times, nullptr).end == (m + p - 1) * 317);
        CHECK(pipeline_lower_bound(shape, times) == (m + p - 1) * 317);
      }
    }
  }
}

TEST_CASE("the bubble of zb-h1 is the closed form of its paper, and never above that of 1f1b") {
  std::mt19937 random(1);
  const auto draw = [&](Picoseconds most) {
    return std::uniform_int_distribution<Picoseconds>(1, most)(random);
  };
  for (int i = 0; i < 300; ++i) {
    const std::int64_t p = draw(8), m = draw(4 * p);
    const Picoseconds forward = draw(100), backward = draw(100), gradient = draw(100);
    PipelineTimes times = equal_stages(p, 1, forward, backward);
    for (StageTimes& stage : times.stages) stage[TaskKind::kWeightGradient] = {gradient};
    const Picoseconds all = forward + backward + gradient;
    const PipelineShape shape{ScheduleKind::kZbH1, p, 1, m};
    const Picoseconds bubble = run_pipeline(shape, times, nullptr).end - m * all;
    INFO(p << " stages, " << m << " micro-batches: " << forward << ", " << backward << ", "
           << gradient);
    CHECK(bubble <= (p - 1) * all);
    CHECK(m * all + bubble >= pipeline_lower_bound(shape, times));
    // Qi et al. 2023, table 2; with weight gradients that are longer than a forward or a backward,
    // the other two terms are larger.
    if (m < p) continue;
    CHECK(bubble == (p - 1) * std::max({forward + backward - gradient, forward, backward}));
  }
}

TEST_CASE("interleaving divides the bubble by the virtual stages") {
  for (const std::int64_t p : {2, 4, 8}) {
    for (const std::int64_t v : {2, 3}) {
      for (const std::int64_t groups : {1, 2, 5}) {
        const PipelineShape shape{ScheduleKind::kInterleaved, p, v, groups * p};
        const PipelineTimes times = equal_stages(p, v, 100, 200);
        CHECK(run_pipeline(shape, times, nullptr).end == (groups * p * v + p - 1) * 300);
      }
    }
  }
}

TEST_CASE("no schedule is faster than the lower bound, and every task runs once") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const std::int64_t p = 1 + seed % 6, v = 1 + seed % 3;
    const bool interleaved = v > 1 && p > 1;
    const std::array others = {ScheduleKind::kOneFOneB, ScheduleKind::kGpipe, ScheduleKind::kZbH1};
    const PipelineShape shape{interleaved ? ScheduleKind::kInterleaved : others[seed / 3 % 3], p,
                              interleaved ? v : 1, p * (1 + seed % 4)};
    PipelineTimes times = random_stages(seed, p, shape.virtual_stages);
    if (splits_backward(shape.schedule)) {
      for (StageTimes& stage : times.stages) {
        stage[TaskKind::kWeightGradient] = {stage[TaskKind::kBackward][0] * (1 + seed % 4) / 3};
      }
    }
    for (const bool waits : {false, true}) {
      times.p2p.sender_waits = waits;
      const PipelineResult result = run_pipeline(shape, times, nullptr);
      CHECK(result.end >= pipeline_lower_bound(shape, times));
      CHECK(static_cast<double>(result.events) ==
            tasks_per_micro_batch(shape.schedule) *
                static_cast<double>(p * shape.virtual_stages * shape.micro_batches));
    }
  }
}

TEST_CASE("a faster transfer or task never delays the pipeline") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const PipelineShape shape{ScheduleKind::kOneFOneB, 4, 1, 9};
    PipelineTimes times = random_stages(seed, 4, 1);
    const Picoseconds before = run_pipeline(shape, times, nullptr).end;
    times.transfer /= 2;
    const Picoseconds faster_links = run_pipeline(shape, times, nullptr).end;
    CHECK(faster_links <= before);
    times.stages[seed % 4][TaskKind::kForward][0] /= 2;
    CHECK(run_pipeline(shape, times, nullptr).end <= faster_links);
  }
}

TEST_CASE("spans of a stage do not overlap and contain all its work") {
  const PipelineShape shape{ScheduleKind::kInterleaved, 3, 2, 6};
  const PipelineTimes times = random_stages(3, 3, 2);
  Timeline timeline;
  const PipelineResult result = run_pipeline(shape, times, &timeline);
  std::vector<Picoseconds> clock(3, 0), busy(3, 0);
  for (const TimelineSpan& span : timeline.spans) {
    if (span.kind == SpanKind::kTransfer) continue;
    const auto s = static_cast<std::size_t>(span.stage);
    CHECK(span.begin >= clock[s]);
    clock[s] = span.end;
    busy[s] += span.end - span.begin;
  }
  CHECK(busy == result.busy);
}

}  // namespace tpsim
