// Rings of context parallelism, where the program gathers keys and values and attends at once
// (docs/decisions/0023). A rank attends pass by pass: first to its own share of the sequence, then
// to half of as much with every other rank's, which balances causal masks. Every pass takes as
// long.
//   p2p         Megatron's default, Transformer Engine's (AttnFuncWithCPAndKVP2P): keys and values
//   go
//               around beside the pass before; backward begins with those that came last, and
//               gradients follow them in the plan's dtype.
//   torch_ring  PyTorch's (torch.distributed.tensor.experimental, context_parallel). Keys and
//   values
//               of as many heads as queries have are gathered, in backward again; results of a pass
//               are merged with those before in fp32; gradients add up in fp32, and those of keys
//               and values go around, once for every pass. An eager program computes beside what
//               travels, but the last; one that torch.compile traced waits for every exchange where
//               it is issued.
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "core/program/program.h"
#include "core/scenario/scenario.h"

namespace tpsim {

struct RingExchange {
  CollectiveRecord record;
  double calls = 1;
  double beside = 0;  // of the calls: each runs beside one pass
};
// In place of one collective of the program.
struct RingExchanges {
  std::vector<RingExchange> sent;
  Bytes copied;  // read and written around them, and to merge the results of passes
};

bool attends_in_ring(const StackSpec& stack);
// Of a collective of keys and values, or of their gradients; `in_backward`: of attention's
// backward.
RingExchanges ring_exchanges(const Scenario& scenario, const Plan& plan,
                             const CollectiveRecord& record, bool in_backward);

}  // namespace tpsim
