// Exchanges of ring and all-to-all context parallelism. They replace the all-gather that the
// reference model executes (docs/decisions/context-parallelism.md). In a ring, a rank computes
// attention in passes: first with its own keys, then with half as many keys of every other rank,
// which balances causal masks. All passes take the same time.
//   p2p         Megatron's default, from Transformer Engine (AttnFuncWithCPAndKVP2P). Each pass
//               overlaps the exchange of keys and values for the next pass. Backward begins with
//               the keys and values that arrived last. Gradients are exchanged in the plan's dtype.
//   torch_ring  PyTorch's (torch.distributed.tensor.experimental, context_parallel). Keys and
//               values are repeated to the number of query heads and all-gathered, again in
//               backward. The results of passes are merged in fp32. Gradients are accumulated in
//               fp32; those of keys and values are sent on after every pass. An eager program
//               overlaps every exchange but the last with compute. A program traced by
//               torch.compile waits for every exchange immediately.
//   a2a         All-to-alls of queries, keys, values and outputs (DeepSpeed Ulysses, in Transformer
//               Engine AttnFuncWithCPAndQKVOA2A). A rank computes attention over the whole sequence
//               with a part of the heads. The exchanges do not overlap with compute. Backward
//               exchanges the gradients of the output and of queries, keys and values.
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "core/program/program.h"
#include "core/scenario/scenario.h"

namespace tpsim {

struct RingExchange {
  CollectiveRecord record;
  double calls = 1;
  double overlapped = 0;  // number of calls that each overlap with one attention pass
};
// The exchanges that replace one collective of the program.
struct RingExchanges {
  std::vector<RingExchange> sent;
  // Bytes read and written around the exchanges and to merge the results of the passes.
  Bytes copied;
};

// Returns the name of the exchange.
std::string_view cp_comm_type(const StackSpec& stack);

// check_exchange(): error if all-to-alls cannot give every context-parallel rank whole heads.
// ring_exchanges(): returns the exchanges that replace a collective of keys and values, or of their
// gradients. `in_backward`: the collective belongs to attention's backward.
Status check_exchange(const StackSpec& stack, const ModelSpec& model, const Plan& plan);
RingExchanges ring_exchanges(const Scenario& scenario, const Plan& plan,
                             const CollectiveRecord& record, bool in_backward);

}  // namespace tpsim
