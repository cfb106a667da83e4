// Costs of a block's experts besides the GEMMs: all-to-all of tokens, launches around it, and
// waiting for the busiest rank.
//
// Copies of tokens, with T tokens per rank, k of E experts per token, and R ranks on N nodes
// (NVLink domains):
//   all-gather  every token to every rank
//   all-to-all  k copies of a token, one per expert
//   DeepEP and HybridEP  one copy to every other node with any of a token's experts, forwarded to
//     every rank there with any. Of n equal parts, uniformly random choices reach
//     E (1 - C(E - E/n, k) / C(E, k)) / E on average (hypergeometric), at most the parts of the
//     groups that the router keeps. Both directions overlap; the slower one counts.
// These kernels copy with some of the GPU's SMs, each at its own rate: docs/experts.md.
#pragma once

#include <string>

#include "core/plan/plan.h"
#include "core/program/program.h"
#include "core/scenario/scenario.h"
#include "costs/collective_cost.h"
#include "sim/layers/layer_cost.h"
#include "sim/trace/trace.h"

namespace tpsim {

// Tokens of the group's busiest rank over the mean, at least 1, for every layer and micro-batch.
// Without a stated load, the experts' shares vary as with an auxiliary loss. With counts, the
// result is the mean over their blocks, each with its own busiest rank.
double busiest_load(const StackSpec& stack, const ModelSpec& model, const Plan& plan);

// Error if the software uses expert counts that the model does not have.
Status check_load(const StackSpec& stack, const ModelSpec& model);

// Load from the model's expert counts, with consecutive experts on each rank.
double counted_load(const ExpertShape& experts, std::int64_t ranks);

// Load if the experts' shares of the tokens have this standard deviation over their mean.
double busiest_load(const ModelSpec& model, const Plan& plan, double spread);

// Expected number of `parts` equal parts of the experts with any of a token's experts. Respects the
// groups that the router keeps.
double expected_destinations(const ExpertShape& experts, std::int64_t parts);

// Time of dispatch or combine. `record` is the program's all-to-all over the expert group; its
// bytes count the k copies of a rank's tokens.
Seconds dispatch_time(const Scenario& scenario, const CollectiveCostModel& collectives,
                      const CollectiveRecord& record, const GroupPlacement& group);

// Explains the price: bytes, number of copies, kernels.
std::string explain_dispatch(const Scenario& scenario, const CollectiveCostModel& collectives,
                             const CollectiveRecord& record, const GroupPlacement& group);

// Scales allocations for received tokens by `size`, if no tokens are dropped.
void grow_arrivals(Program& program, const ModelSpec& model, double size);

// Tokens that the buffers of the busiest rank hold, over the mean: its load, or the stack's fixed
// capacity.
double buffered_load(const StackSpec& stack, const ModelSpec& model, const Plan& plan);

// Bytes of a block's saved activations of experts that Megatron-Core's paged stash packs.
struct StashedBytes {
  double buffers = 0;  // as they are allocated
  double tokens = 0;   // of the mean number of tokens: read and written by either copy
  double stash = 0;    // as the stash keeps them
};
StashedBytes stashed_bytes(const LayerTrace& trace, const StackSpec& stack, const ModelSpec& model,
                           const Plan& plan);
// Forward leaves the stash in place of the buffers, which are back before backward begins.
void keep_in_stash(LayerMemory& memory, const StashedBytes& bytes);

// Whether the op or collective processes received tokens, whose number depends on the rank.
bool waits_for_busiest(const Label& label);

// Whether the op is unnecessary: DeepEP and HybridEP do not copy a token per expert before dispatch
// or after combine.
bool is_left_to_dispatcher(const OpRecord& op, const StackSpec& stack);

}  // namespace tpsim
