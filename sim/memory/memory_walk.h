// Memory of one pipeline stage over a step: every allocation and free in order. From the lowered
// programs of the stage's layers. memory_by_stage() computes the same peak in closed form, for
// searches.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "core/program/timeline.h"
#include "sim/schedule/stage_costs.h"

namespace tpsim {

// Allocations with one label in one part of the model.
struct TensorGroup {
  std::string_view part;  // "block", "head", "between stages"
  MemoryCategory category{};
  std::string_view label;  // "attention.flash"
  friend bool operator==(const TensorGroup&, const TensorGroup&) = default;
};

// The group of memory that belongs to no single layer.
constexpr TensorGroup whole_stage(MemoryCategory category, std::string_view label) {
  return {"whole stage", category, label};
}

struct MemoryEvent {
  Picoseconds time = 0;  // since the start of the step
  double bytes = 0;      // negative: freed
  TensorGroup group;
  std::size_t task = 0;  // index into Timeline::spans; kStepStart
};
inline constexpr std::size_t kStepStart = ~std::size_t{0};  // before the first task
using MemoryVisitor = std::function<void(const MemoryEvent&)>;

// Calls `visit` with the memory of a stage at the start of the step, then with its allocations and
// frees in order. Host memory is excluded. `timeline`: of simulate_timeline() for the plan.
void walk_memory(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs,
                 const Timeline& timeline, std::int64_t stage, const MemoryVisitor& visit);

}  // namespace tpsim
