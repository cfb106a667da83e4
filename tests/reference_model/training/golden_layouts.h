// Layouts of the golden models over ranks.
#pragma once

#include <string>
#include <vector>

#include "reference_model/training/training.h"

namespace tpsim::test {

struct GoldenLayout {
  std::string name;
  Plan plan;
  TrainingOptions options;
};

// A plan without ZeRO and recompute, with equal stages.
Plan golden_plan(const ModelSpec& model, ParallelDegrees degrees, std::int64_t micro_batch);
// Every kind of layout that the model's shape supports.
std::vector<GoldenLayout> golden_layouts(const ModelSpec& model);
// Fewer layouts, for recent models: every setting occurs once.
std::vector<GoldenLayout> few_golden_layouts(const ModelSpec& model);

}  // namespace tpsim::test
