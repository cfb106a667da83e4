// A linter for the shape of a model under a plan. Finds sizes that prevent aligned loads or do not
// fill GEMM tiles or waves. Suggests the nearest better sizes with their predicted gain.
#pragma once

#include <string>
#include <vector>

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// A change of one size of the model: hidden, heads, ffn_hidden or vocab.
struct ShapeChange {
  std::string size;
  std::int64_t from = 0, to = 0;
  ModelSpec model;  // model with this size and the sizes that follow from it
};

struct ShapeFinding {
  // For example "head_dim 108 is not a multiple of 8: rows of 216 bytes prevent 16-byte loads".
  std::string what;
  // Nearest smaller and larger sizes with a gain of at least 1 %; empty if there are none nearby.
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

// Return the model with another hidden size and the same number of heads, or with another number of
// heads and the same hidden size. head_dim becomes hidden / heads. with_hidden() also scales an FFN
// width that is a multiple of the old hidden size.
ModelSpec with_hidden(ModelSpec model, std::int64_t hidden);
ModelSpec with_heads(ModelSpec model, std::int64_t heads);

}  // namespace tpsim
