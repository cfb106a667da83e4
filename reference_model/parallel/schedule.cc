#include "reference_model/parallel/schedule.h"

#include <algorithm>

namespace tpsim {

PipelineShape pipeline_shape(const Plan& plan) {
  return {plan.schedule, plan.degrees.pp, plan.virtual_stages, micro_batches(plan)};
}

std::int64_t most_in_flight(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t total = shape.micro_batches * shape.virtual_stages;
  const std::int64_t stages_after = shape.stages - 1 - stage;
  switch (shape.schedule) {
    case ScheduleKind::kGpipe: return total;
    case ScheduleKind::kOneFOneB:
    case ScheduleKind::kZbH1: return std::min(total, stages_after + 1);
    case ScheduleKind::kInterleaved:
      // With a single group of micro-batches, all forwards run before the first backward.
      if (shape.micro_batches == shape.stages) return total;
      return std::min(total, 2 * stages_after + (shape.virtual_stages - 1) * shape.stages + 1);
  }
  return total;
}

bool alternates(const PipelineShape& shape) {
  return shape.stages == 1 && shape.virtual_stages == 1 && most_in_flight(shape, 0) == 1;
}

ScheduleCursor::Walk::Walk(TaskKind kind, const PipelineShape& shape)
    : stages_(static_cast<std::int32_t>(shape.stages)) {
  const auto last = static_cast<std::int32_t>(shape.virtual_stages - 1);
  switch (kind) {
    case TaskKind::kForward:
      last_chunk_ = last;
      step_ = 1;
      break;
    case TaskKind::kBackward:
    case TaskKind::kWeightGradient:
      first_chunk_ = last;
      step_ = -1;
      break;
  }
  chunk_ = first_chunk_;
}

ScheduleCursor::ScheduleCursor(const PipelineShape& shape, std::int64_t stage)
    : forwards_(TaskKind::kForward, shape),
      backwards_(TaskKind::kBackward, shape),
      weight_gradients_(TaskKind::kWeightGradient, shape),
      splits_(splits_backward(shape.schedule)),
      most_in_flight_(static_cast<std::int32_t>(most_in_flight(shape, stage))),
      most_awaiting_(static_cast<std::int32_t>(stage)),
      forwards_left_(static_cast<std::int32_t>(shape.micro_batches * shape.virtual_stages)) {}

}  // namespace tpsim
