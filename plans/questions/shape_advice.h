// A linter for the shape of a model under a plan: sizes that miss alignment, tiles or waves of the
// matrix products, and the nearest better ones, with the gain that predicting them anew gives.
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
  ModelSpec model;  // with the change, and what follows from it
};

struct ShapeFinding {
  std::string what;  // "head_dim 108 is no multiple of 8: rows of 216 bytes miss 16-byte loads"
  // The nearest sizes that are better by 1 % or more; empty when there is none near.
  struct Better {
    ShapeChange change;
    double gain = 0;  // of model FLOP/s per GPU, relative: sizes change how much work there is
  };
  std::vector<Better> better;
};

// Findings in the order hidden, heads, FFN, vocabulary, waves. Empty for a shape without any.
std::vector<ShapeFinding> shape_findings(const Scenario& scenario, const Plan& plan);

// Sizes of planned ops that are multiples of model.hidden become those of `hidden`.
void scale_planned(ModelSpec& model, std::int64_t hidden);

// The model with another hidden size and the same number of heads; with other heads and the same
// hidden size. FFN widths follow the hidden size where they were a multiple of it.
ModelSpec with_hidden(ModelSpec model, std::int64_t hidden);
ModelSpec with_heads(ModelSpec model, std::int64_t heads);

}  // namespace tpsim
