// Context parallelism as PyTorch has it (torch.distributed.tensor.experimental, context_parallel),
// where the program gathers keys and values and attends at once (docs/decisions/0023). A rank
// attends pass by pass: first to its own share of the sequence, then to half of as much with every
// other rank's, which balances causal masks.
//   forward   keys and values of as many heads as queries have are gathered; results of a pass are
//             merged with those before in fp32.
//   backward  they are gathered again; gradients add up in fp32, and those of keys and values go
//             around the ranks, one exchange for every pass.
// An eager program computes beside what travels, but the last exchange; one that torch.compile
// traced waits for every exchange where it is issued.
#pragma once

#include "core/plan.h"
#include "core/program.h"
#include "core/scenario.h"

namespace tpsim {

// In place of one collective of the program.
struct RingExchange {
  CollectiveRecord record;
  double calls = 1;
  double waited = 1;  // share of the calls that no compute runs beside
  Bytes copied;       // read and written around it
};

bool attends_in_ring(const StackSpec& stack);
RingExchange ring_exchange(const Scenario& scenario, const Plan& plan,
                           const CollectiveRecord& record);
// Read and written to merge the results of all passes, where `gather` came before them.
Bytes merged_in_ring(const Scenario& scenario, const Plan& plan, const CollectiveRecord& gather);

}  // namespace tpsim
