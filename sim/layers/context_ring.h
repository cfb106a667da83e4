// Exchanges of context parallelism in a ring, priced in place of the gather that the reference
// model executes (docs/decisions/context-parallelism.md). A rank attends pass by pass: first to its
// own chunks, then to half as many keys of every other rank, which balances causal masks. All
// passes take the same time.
//   p2p         Megatron's default, from Transformer Engine (AttnFuncWithCPAndKVP2P). Each pass
//               overlaps the exchange of keys and values for the next pass. Backward begins with
//               the keys and values that arrived last. Gradients go around in the plan's dtype.
//   torch_ring  PyTorch's (torch.distributed.tensor.experimental, context_parallel). Keys and
//               values of as many heads as queries have are gathered, and again in backward. The
//               results of passes are merged in fp32. Gradients are accumulated in fp32, and those
//               of keys and values go around once per pass. An eager program overlaps every
//               exchange but the last with compute. A program that torch.compile traced waits for
//               every exchange where it is issued.
//   a2a         All-to-alls of queries, keys, values and results (DeepSpeed Ulysses, in Transformer
//               Engine AttnFuncWithCPAndQKVOA2A): a rank attends to the whole sequence with a part
//               of the heads. Nothing overlaps with the exchanges. Backward exchanges the gradient
//               of the result and those of queries, keys and values.
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "core/program/program.h"
#include "core/scenario/scenario.h"

namespace tpsim {

struct RingExchange {
  CollectiveRecord record;
  double calls = 1;
  double beside = 0;  // number of calls, each overlapped with one attention step
};
// Replaces one collective of the program.
struct RingExchanges {
  std::vector<RingExchange> sent;
  Bytes copied;  // read and written around the exchanges, and to merge the results of the steps
};

bool attends_in_ring(const StackSpec& stack);
// Returns the exchanges that replace a collective of keys and values, or of their gradients.
// `in_backward`: the collective belongs to attention's backward.
// Error if all-to-alls cannot give every context-parallel rank whole heads.
Status check_exchange(const StackSpec& stack, const ModelSpec& model, const Plan& plan);
RingExchanges ring_exchanges(const Scenario& scenario, const Plan& plan,
                             const CollectiveRecord& record, bool in_backward);

}  // namespace tpsim
