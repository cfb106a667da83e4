#include "reference_model/schedule.h"

#include <algorithm>

namespace tpsim {
namespace {

// The k-th forward (or backward) of an interleaved stage: groups of p micro-batches visit the
// chunks in turn, backward in reverse order of chunks.
PipelineTask interleaved_task(const PipelineShape& shape, std::int64_t k, bool forward) {
  const std::int64_t p = shape.stages, v = shape.virtual_stages;
  const std::int64_t group = k / (p * v), within = k % (p * v);
  const std::int64_t chunk = within / p;
  return {forward, static_cast<std::int32_t>(forward ? chunk : v - 1 - chunk),
          static_cast<std::int32_t>(group * p + within % p)};
}

}  // namespace

PipelineShape pipeline_shape(const Plan& plan) {
  return {plan.schedule, plan.degrees.pp, plan.virtual_stages, micro_batches(plan)};
}

bool alternates(const PipelineShape& shape) {
  return shape.stages == 1 && shape.virtual_stages == 1 && most_in_flight(shape, 0) == 1;
}

std::int64_t warmup_forwards(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t total = shape.micro_batches * shape.virtual_stages;
  switch (shape.schedule) {
    case ScheduleKind::kGpipe: return total;
    case ScheduleKind::kOneFOneB: return std::min(total, shape.stages - 1 - stage);
    case ScheduleKind::kInterleaved:
      // With one group of micro-batches there is nothing to alternate with.
      if (shape.micro_batches == shape.stages) return total;
      return std::min(total,
                      (shape.stages - 1 - stage) * 2 + (shape.virtual_stages - 1) * shape.stages);
  }
  return total;
}

PipelineTask nth_task(const PipelineShape& shape, std::int64_t stage, std::int64_t k) {
  const std::int64_t total = shape.micro_batches * shape.virtual_stages;
  const std::int64_t warmup = warmup_forwards(shape, stage);
  if (k < warmup) return interleaved_task(shape, k, true);
  if (k >= 2 * total - warmup) return interleaved_task(shape, k - total, false);
  const std::int64_t pair = (k - warmup) / 2;
  const bool forward = (k - warmup) % 2 == 0;
  return interleaved_task(shape, forward ? warmup + pair : pair, forward);
}

std::vector<PipelineTask> schedule_of(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t total = 2 * shape.micro_batches * shape.virtual_stages;
  std::vector<PipelineTask> tasks;
  tasks.reserve(static_cast<std::size_t>(total));
  for (std::int64_t k = 0; k < total; ++k) tasks.push_back(nth_task(shape, stage, k));
  return tasks;
}

std::int64_t most_in_flight(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t total = shape.micro_batches * shape.virtual_stages;
  return std::min(total, warmup_forwards(shape, stage) + 1);
}

}  // namespace tpsim
