// A linter for the shape of a model under a plan. Finds sizes that miss alignment, GEMM tiles or
// waves, and the nearest better sizes with their predicted gain.
#pragma once

#include <string>
#include <vector>

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// One size of the model: hidden, heads, ffn_hidden or vocab.
struct ShapeChange {
  std::string size;
  std::int64_t from = 0, to = 0;
  ModelSpec model;  // with the change and its consequences
};

struct ShapeFinding {
  std::string what;  // "head_dim 108 is not a multiple of 8: rows of 216 bytes miss 16-byte loads"
  // Nearest sizes with a gain of 1 % or more; empty if there is none nearby.
  struct Better {
    ShapeChange change;
    double gain = 0;  // relative gain of model FLOP/s per GPU
  };
  std::vector<Better> better;
};

// Returns findings in the order hidden, heads, FFN, vocabulary, waves; empty if there are none.
std::vector<ShapeFinding> shape_findings(const Scenario& scenario, const Plan& plan);

// Scales sizes of planned ops that are multiples of model.hidden to `hidden`.
void scale_planned(ModelSpec& model, std::int64_t hidden);

// Returns the model with another hidden size and the same number of heads, or the reverse. FFN
// widths that were multiples of the hidden size scale with it.
ModelSpec with_hidden(ModelSpec model, std::int64_t hidden);
ModelSpec with_heads(ModelSpec model, std::int64_t heads);

}  // namespace tpsim
