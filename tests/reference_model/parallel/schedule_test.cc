#include "reference_model/parallel/schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <vector>

namespace tpsim {
namespace {

std::vector<PipelineTask> schedule_of(const PipelineShape& shape, std::int64_t stage) {
  std::vector<PipelineTask> tasks;
  for (ScheduleCursor next(shape, stage); !next.done(); next.advance()) {
    tasks.push_back(next.current());
  }
  return tasks;
}

// The k-th forward or backward of a stage, computed by division: section 2.2 of Narayanan et al.
// 2021.
PipelineTask nth_of_kind(const PipelineShape& shape, TaskKind kind, std::int64_t k) {
  const std::int64_t p = shape.stages, v = shape.virtual_stages;
  const std::int64_t turn = k % (p * v) / p;
  const std::int64_t chunk = kind == TaskKind::kForward ? turn : v - 1 - turn;
  return {kind, static_cast<std::int32_t>(chunk),
          static_cast<std::int32_t>(k / (p * v) * p + k % p)};
}

// Number of warm-up forwards of a stage: those before the first forward-backward pair.
std::int64_t warmup_forwards(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t p = shape.stages, v = shape.virtual_stages, m = shape.micro_batches;
  if (shape.schedule == ScheduleKind::kGpipe) return m;
  if (shape.schedule == ScheduleKind::kOneFOneB) return std::min(m, p - 1 - stage);
  return m == p ? m * v : std::min(m * v, 2 * (p - 1 - stage) + (v - 1) * p);
}

// The shapes of zb-h1, whose backward is split.
std::vector<PipelineShape> split_shapes() {
  std::vector<PipelineShape> list;
  for (const std::int64_t p : {2, 3, 5}) {
    for (const std::int64_t m : {1, 2, 4, 7, 16}) list.push_back({ScheduleKind::kZbH1, p, 1, m});
  }
  return list;
}

std::vector<PipelineShape> shapes() {
  std::vector<PipelineShape> list;
  for (const std::int64_t p : {1, 2, 3, 5}) {
    for (const std::int64_t m : {1, 2, 4, 7}) {
      list.push_back({ScheduleKind::kGpipe, p, 1, m});
      list.push_back({ScheduleKind::kOneFOneB, p, 1, m});
      if (p > 1) list.push_back({ScheduleKind::kInterleaved, p, 3, m * p});
    }
  }
  return list;
}

}  // namespace

TEST_CASE("forward and backward alternate only if nothing is in flight between them") {
  CHECK(alternates({ScheduleKind::kOneFOneB, 1, 1, 7}));
  CHECK(alternates({ScheduleKind::kGpipe, 1, 1, 1}));
  CHECK_FALSE(alternates({ScheduleKind::kGpipe, 1, 1, 2}));
  CHECK_FALSE(alternates({ScheduleKind::kOneFOneB, 2, 1, 1}));
  for (const PipelineShape& shape : shapes()) {
    if (!alternates(shape)) continue;
    const std::vector<PipelineTask> tasks = schedule_of(shape, 0);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      CHECK(tasks[i].kind == (i % 2 == 0 ? TaskKind::kForward : TaskKind::kBackward));
    }
  }
}

TEST_CASE("every stage runs each micro-batch of each chunk once forward, then once backward") {
  for (const PipelineShape& shape : shapes()) {
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      std::set<std::pair<int, int>> forward, backward;
      for (const PipelineTask& task : schedule_of(shape, stage)) {
        const auto cell = std::pair(task.chunk, task.micro_batch);
        if (task.kind == TaskKind::kForward) {
          CHECK(forward.insert(cell).second);
        } else {
          CHECK(forward.count(cell) == 1);
          CHECK(backward.insert(cell).second);
        }
      }
      CHECK(forward.size() == static_cast<std::size_t>(shape.micro_batches * shape.virtual_stages));
      CHECK(forward == backward);
    }
  }
}

TEST_CASE(
    "a stage warms up, alternates forward and backward, and ends with the remaining backwards") {
  for (const PipelineShape& shape : shapes()) {
    const std::int64_t total = shape.micro_batches * shape.virtual_stages;
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      const std::int64_t warmup = warmup_forwards(shape, stage);
      std::vector<PipelineTask> tasks;
      for (std::int64_t i = 0; i < total + warmup; ++i) {
        if (i < total) tasks.push_back(nth_of_kind(shape, TaskKind::kForward, i));
        if (i >= warmup) tasks.push_back(nth_of_kind(shape, TaskKind::kBackward, i - warmup));
      }
      CAPTURE(name_of(shape.schedule), shape.stages, shape.micro_batches, stage);
      CHECK(schedule_of(shape, stage) == tasks);
    }
  }
}

TEST_CASE("1f1b keeps at most min(m, p - stage) micro-batches in flight") {
  for (const PipelineShape& shape : shapes()) {
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      std::int64_t now = 0, most = 0;
      for (const PipelineTask& task : schedule_of(shape, stage)) {
        now += task.kind == TaskKind::kForward ? 1 : -1;
        most = std::max(most, now);
      }
      CHECK(most == most_in_flight(shape, stage));
      if (shape.schedule == ScheduleKind::kOneFOneB) {
        CHECK(most == std::min(shape.micro_batches, shape.stages - stage));
      }
    }
  }
}

TEST_CASE("zb-h1 is 1f1b with weight gradients that run a number of backwards later") {
  for (const PipelineShape& shape : split_shapes()) {
    PipelineShape whole = shape;
    whole.schedule = ScheduleKind::kOneFOneB;
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      CAPTURE(shape.stages, shape.micro_batches, stage);
      std::vector<PipelineTask> others;
      std::int64_t forwards = 0, backwards = 0, gradients = 0;
      for (const PipelineTask& task : schedule_of(shape, stage)) {
        if (task.kind != TaskKind::kWeightGradient) others.push_back(task);
        if (task.kind == TaskKind::kForward) ++forwards;
        if (task.kind == TaskKind::kBackward) ++backwards;
        if (task.kind == TaskKind::kWeightGradient) {
          CHECK(task.micro_batch == gradients++);
          CHECK((backwards == gradients + stage || backwards == shape.micro_batches));
        }
        CHECK(backwards - gradients <= stage + 1);
        CHECK(forwards - gradients <= shape.stages);  // as on the first stage of 1f1b
      }
      CHECK(gradients == shape.micro_batches);
      CHECK(others == schedule_of(whole, stage));
    }
  }
}

}  // namespace tpsim
