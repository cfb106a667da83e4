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

#include "core/model/model_spec.h"
#include "costs/collective_cost.h"
#include "lowering/passes/lowered_layer.h"

namespace tpsim {

// Returns how many of `parts` equal parts of the experts contain any of a token's experts, on
// average. Respects the group limit of the router.
double expected_destinations(const ExpertShape& experts, std::int64_t parts);

// Returns the time of dispatch or combine. `record`: the program's all-to-all over the expert
// group, whose bytes count k copies of each token of a rank.
Seconds dispatch_time(const ExpertShape& experts, const CollectiveCostModel& collectives,
                      const LoweredCollective& record, const GroupPlacement& group);

// Returns a text that explains this time: bytes, number of copies, kernels.
std::string explain_dispatch(const ExpertShape& experts, const CollectiveCostModel& collectives,
                             const LoweredCollective& record, const GroupPlacement& group);

}  // namespace tpsim
