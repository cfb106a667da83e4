#include "reference_model/schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

namespace tpsim {
namespace {

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

TEST_CASE("forward and backward alternate only where nothing is in flight between them") {
  CHECK(alternates({ScheduleKind::kOneFOneB, 1, 1, 7}));
  CHECK(alternates({ScheduleKind::kGpipe, 1, 1, 1}));
  CHECK_FALSE(alternates({ScheduleKind::kGpipe, 1, 1, 2}));
  CHECK_FALSE(alternates({ScheduleKind::kOneFOneB, 2, 1, 1}));
  for (const PipelineShape& shape : shapes()) {
    if (!alternates(shape)) continue;
    const std::vector<PipelineTask> tasks = schedule_of(shape, 0);
    for (std::size_t i = 0; i < tasks.size(); ++i) CHECK(tasks[i].forward == (i % 2 == 0));
  }
}

TEST_CASE("every stage runs each micro-batch of each chunk once forward, then once backward") {
  for (const PipelineShape& shape : shapes()) {
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      std::set<std::pair<int, int>> forward, backward;
      for (const PipelineTask& task : schedule_of(shape, stage)) {
        const auto cell = std::pair(task.chunk, task.micro_batch);
        if (task.forward) {
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

TEST_CASE("1f1b keeps at most min(m, p - stage) micro-batches in flight") {
  for (const PipelineShape& shape : shapes()) {
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      std::int64_t now = 0, most = 0;
      for (const PipelineTask& task : schedule_of(shape, stage)) {
        now += task.forward ? 1 : -1;
        most = std::max(most, now);
      }
      CHECK(most == most_in_flight(shape, stage));
      if (shape.schedule == ScheduleKind::kOneFOneB) {
        CHECK(most == std::min(shape.micro_batches, shape.stages - stage));
      }
    }
  }
}

}  // namespace tpsim
