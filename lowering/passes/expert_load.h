// How unevenly a router distributes tokens over the ranks of the experts.
#pragma once

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Returns the tokens of the busiest rank of the expert group over the mean, at least 1. The same
// value applies to every layer and micro-batch. If the load is not stated, the experts' shares vary
// as they do with an auxiliary loss. With expert counts, returns the mean over the blocks of the
// counts; each block has its own busiest rank.
double busiest_load(const StackSpec& stack, const ModelSpec& model, const Plan& plan);

// Returns what the software states about the load.
std::string load_text(const StackSpec& stack);

// Error if the software sets expert_load to counted and the model has no expert counts.
Status check_load(const StackSpec& stack, const ModelSpec& model);

// Returns the load of the busiest rank from the model's expert counts. Each rank has consecutive
// experts.
double counted_load(const ExpertShape& experts, std::int64_t ranks);

// Returns the load of the busiest rank if the experts' shares of the tokens have the relative
// standard deviation `spread`.
double busiest_load(const ModelSpec& model, const Plan& plan, double spread);

// Returns the size of the busiest rank's token buffers over the mean number of tokens: its load, or
// the fixed capacity that the stack states.
double buffered_load(const StackSpec& stack, const ModelSpec& model, const Plan& plan);

}  // namespace tpsim
