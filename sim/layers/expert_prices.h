// Costs of a block's experts besides the GEMMs: token dispatch and combine, their launches, and
// waiting for the busiest rank.
//
// Bytes sent by a dispatcher, with T tokens per rank, k of E experts per token, and R ranks on N
// nodes (NVLink domains):
//   all-gather  every token to every rank
//   all-to-all  k copies of a token, one per expert
//   DeepEP and HybridEP  one copy of a token to every other node with any of its experts, which
//     forwards the copy to its ranks with any of these experts. If the experts are divided into n
//     equal parts, uniformly random routing reaches n (1 - C(E - E/n, k) / C(E, k)) parts on
//     average (hypergeometric), and at most the parts of the groups that the router keeps.
//     Transfers between nodes and inside a node overlap; the slower one counts.
// DeepEP's and HybridEP's kernels copy with some of the GPU's SMs, at a fixed rate per SM:
// docs/experts.md.
#pragma once

#include <string>

#include "core/plan/plan.h"
#include "core/program/program.h"
#include "core/scenario/scenario.h"
#include "costs/collective_cost.h"
#include "sim/layers/layer_cost.h"
#include "sim/trace/trace.h"

namespace tpsim {

// Returns the tokens of the busiest rank of the expert group over the mean, at least 1. The same
// value applies to every layer and micro-batch. If the load is not stated, the experts' shares vary
// as they do with an auxiliary loss. With expert counts, returns the mean over the blocks of the
// counts; each block has its own busiest rank.
double busiest_load(const StackSpec& stack, const ModelSpec& model, const Plan& plan);

// Error if the software sets expert_load to counted and the model has no expert counts.
Status check_load(const StackSpec& stack, const ModelSpec& model);

// Returns the load of the busiest rank from the model's expert counts. Each rank has consecutive
// experts.
double counted_load(const ExpertShape& experts, std::int64_t ranks);

// Returns the load of the busiest rank if the experts' shares of the tokens have the relative
// standard deviation `spread`.
double busiest_load(const ModelSpec& model, const Plan& plan, double spread);

// Returns how many of `parts` equal parts of the experts contain any of a token's experts, on
// average. Respects the group limit of the router.
double expected_destinations(const ExpertShape& experts, std::int64_t parts);

// Returns the time of dispatch or combine. `record`: the program's all-to-all over the expert
// group, whose bytes count k copies of each token of a rank.
Seconds dispatch_time(const Scenario& scenario, const CollectiveCostModel& collectives,
                      const CollectiveRecord& record, const GroupPlacement& group);

// Returns a text that explains this time: bytes, number of copies, kernels.
std::string explain_dispatch(const Scenario& scenario, const CollectiveCostModel& collectives,
                             const CollectiveRecord& record, const GroupPlacement& group);

// Multiplies the allocations for received tokens by `size`, if the model drops no tokens.
void grow_arrivals(Program& program, const ModelSpec& model, double size);

// Returns the size of the busiest rank's token buffers over the mean number of tokens: its load, or
// the fixed capacity that the stack states.
double buffered_load(const StackSpec& stack, const ModelSpec& model, const Plan& plan);

// Bytes of a block's saved expert activations that Megatron-Core's paged stash compacts.
struct StashedBytes {
  double buffers = 0;  // allocated buffers of the busiest rank
  double tokens = 0;   // mean number of tokens: read and written by each copy
  double stash = 0;    // size in the stash
};
StashedBytes stashed_bytes(const LayerTrace& trace, const StackSpec& stack, const ModelSpec& model,
                           const Plan& plan);
// Replaces the buffers by the stash at the end of forward. Backward begins with the buffers
// restored.
void keep_in_stash(LayerMemory& memory, const StashedBytes& bytes);

// Returns whether the op or collective processes received tokens, whose number differs between
// ranks.
bool waits_for_busiest(const Label& label);

// Returns whether the dispatcher makes the op unnecessary: DeepEP and HybridEP need no copy of a
// token per expert before dispatch or after combine.
bool is_left_to_dispatcher(const OpRecord& op, const StackSpec& stack);

}  // namespace tpsim
