#include "lowering/passes/context_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "lowering/passes/lower.h"

namespace tpsim {

std::string_view cp_comm_type(const StackSpec& stack) { return name_of(stack.parts.cp_comm_type); }
namespace {

struct Shares {
  double queries = 0;  // query elements of this rank; its attention output has as many
  double both = 0;     // key and value elements of this rank
  double others = 0;   // number of other context-parallel ranks
};

Shares shares_of(const Scenario& scenario, const Plan& plan, const CollectiveRecord& record) {
  const AttentionShape& attention = scenario.model.attention;
  const double both = static_cast<double>(record.bytes) /
                      static_cast<double>(plan.degrees.cp * size_of(plan.dtype));
  // A tensor-parallel rank has at least one key head.
  const std::int64_t kept = std::max(attention.kv_heads, plan.degrees.tp);
  const double repeated = static_cast<double>(attention.heads) / static_cast<double>(kept);
  return {both / 2 * repeated, both, static_cast<double>(plan.degrees.cp - 1)};
}

RingExchange exchange(const CollectiveRecord& record, CollectiveKind kind, double bytes) {
  RingExchange sent{record};
  sent.record.kind = kind;
  sent.record.bytes = std::llround(bytes);
  return sent;
}

// Bytes that PyTorch's ring reads and writes per query element, in bf16 and fp32. Compiled code is
// one fused pass over inputs and outputs; in eager mode every op is a pass.
struct TorchTraffic {
  double merge, gradients, first, last;
};
constexpr TorchTraffic kCompiled{
    .merge = 2 + 8, .gradients = 10 + 2 * 9, .first = 3 * 6, .last = 3 * 6};
// Merging casts to fp32, subtracts, scales and subtracts. Gradients of half of the keys and values
// are added to that half, and the halves are concatenated. Both gradients are packed for the
// exchange.
constexpr TorchTraffic kEager{.merge = 6 + 12 + 8 + 12,
                              .gradients = 10 + 2 * (5 + 8) + 16,
                              .first = 12 + 3 * 10 + 16,
                              .last = 3 * 6};

RingExchanges torch_ring(const Scenario& scenario, const Plan& plan, const CollectiveRecord& record,
                         bool in_backward) {
  const auto [queries, both, others] = shares_of(scenario, plan, record);
  const auto narrow = static_cast<double>(size_of(plan.dtype));
  const bool waits = scenario.stack.parts.compile;
  const TorchTraffic& traffic = waits ? kCompiled : kEager;
  if (record.kind == CollectiveKind::kAllGather) {
    RingExchange gather =
        exchange(record, CollectiveKind::kAllGather, (others + 1) * 2 * queries * narrow);
    gather.beside = waits ? 0 : 1;
    const double one_tensor = 2 * 2 * queries * narrow;
    const double merged = in_backward ? 0 : queries * others * traffic.merge;
    return {{gather}, Bytes(one_tensor + merged)};
  }
  RingExchange sent = exchange(record, CollectiveKind::kSend, 2 * queries * sizeof(float));
  sent.calls = others + 1;
  sent.beside = waits ? 0 : others;
  return {{sent}, Bytes(queries * (traffic.first + others * traffic.gradients + traffic.last))};
}

// A pass with keys of a later rank uses half of the queries; a pass with keys of an earlier rank
// uses half of the keys. Each pass copies this half. Numbers are means over ranks.
RingExchanges megatron_ring(const Scenario& scenario, const Plan& plan,
                            const CollectiveRecord& record, bool in_backward) {
  const auto [queries, both, others] = shares_of(scenario, plan, record);
  const auto narrow = static_cast<double>(size_of(plan.dtype));
  constexpr double kCopy = 2, kSum = 3;  // tensors read and written by a copy and by a sum
  constexpr double kHalf = 0.5 / 2, kSummed = 0.75;
  if (record.kind != CollectiveKind::kAllGather) {
    RingExchange last = exchange(record, CollectiveKind::kSend, both * narrow);
    last.beside = 1;
    const double summed = both * (kCopy + others * kSummed * kSum);
    return {{last}, Bytes(narrow * summed)};
  }
  RingExchange keys = exchange(record, CollectiveKind::kSend, both * narrow);
  if (!in_backward) {
    keys.calls = keys.beside = others;
    const double copied = kCopy * (both + others * kHalf * (both + queries));
    const double merged = queries * (kCopy + others * kSummed * kSum);
    return {{keys}, Bytes(narrow * (copied + merged))};
  }
  keys.beside = 1;
  RingExchange with_gradients = exchange(record, CollectiveKind::kSend, 2 * both * narrow);
  with_gradients.calls = with_gradients.beside = others - 1;
  // Queries, attention outputs, and gradients of the outputs are copied.
  const double copied = kCopy * (both + others * kHalf * (both + 3 * queries));
  const double summed = queries * (kCopy + others * kSummed * kSum);
  return {{keys, with_gradients}, Bytes(narrow * (copied + summed))};
}

// One all-to-all per tensor converts a shard of the tokens into a shard of the heads, or back.
// Tokens are reordered before and after the exchange, with one copy each.
RingExchanges all_to_all(const Scenario& scenario, const Plan& plan, const CollectiveRecord& record,
                         bool in_backward) {
  const auto [queries, both, others] = shares_of(scenario, plan, record);
  const auto narrow = static_cast<double>(size_of(plan.dtype));
  const auto exchanged = [&](double elements) {
    return exchange(record, CollectiveKind::kAllToAll, elements * narrow);
  };
  constexpr double kCopies = 2 * 2;                 // read and written, before and after
  if (record.kind != CollectiveKind::kAllGather) {  // gradients of queries, keys and values
    RingExchange keys = exchanged(both / 2);
    keys.calls = 2;
    return {{exchanged(queries), keys}, Bytes(narrow * kCopies * (queries + both))};
  }
  if (in_backward) {  // gradient of the output; exchanged q, k and v were saved
    return {{exchanged(queries)}, Bytes(narrow * kCopies * queries)};
  }
  RingExchange keys = exchanged(both / 2);
  keys.calls = 2;
  RingExchange whole = exchanged(queries);
  whole.calls = 2;  // queries and output
  return {{whole, keys}, Bytes(narrow * kCopies * (2 * queries + both))};
}

using Kind = LoweredEvent::Kind;

// A context-parallel attention of the trace: the gather of keys and values and, in backward, the
// reduction of their gradients. `ops`: from the gather to the end of attention.
struct TracedExchange {
  LoweredCollective gather;
  std::optional<LoweredCollective> gradients = {};
  OpRange ops = {};
};

// Removes the exchanges of the trace from the phase and returns them.
std::vector<TracedExchange> taken_exchanges(LoweredLayer& layer, LoweredPhase& phase) {
  std::vector<TracedExchange> taken;
  std::erase_if(phase.events, [&](const LoweredEvent& event) {
    if (event.kind == Kind::kCollective) {
      const LoweredCollective& record = layer.collectives[event.index];
      if (record.group != GroupKind::kContext) return false;
      if (record.kind == CollectiveKind::kAllGather) {
        taken.push_back({record});
      } else {
        taken.back().gradients = record;
      }
      return true;
    }
    if (event.kind != Kind::kOp) return false;
    const ModelPart part = layer.ops[event.index].label.part;
    if (part == ModelPart::kAttentionCore && !taken.empty()) {
      OpRange& ops = taken.back().ops;
      if (ops.last == 0) ops.first = event.index;
      ops.last = event.index + 1;
    }
    return part == ModelPart::kContextParallel;
  });
  return taken;
}

void add_exchanges(LoweredLayer& layer, const LayerInputs& inputs, const TracedExchange& traced,
                   const CollectiveRecord& replaced, std::vector<LoweredEvent>& events) {
  const RingExchanges ring =
      ring_exchanges(inputs.scenario, inputs.plan, replaced, traced.gradients.has_value());
  for (const RingExchange& sent : ring.sent) {
    LoweredCollective exchange{sent.record};
    exchange.calls = sent.calls;
    exchange.overlap = sent.beside > 0 ? Overlap::kAttentionPass : Overlap::kNone;
    exchange.overlapped_calls = sent.beside;
    exchange.beside = traced.ops;
    exchange.share = 1 / static_cast<double>(inputs.plan.degrees.cp);
    events.push_back(added(layer, exchange));
  }
  events.push_back(added(
      layer,
      LoweredCopy{.label = {ModelPart::kContextParallel, "attention.ring"}, .moved = ring.copied}));
}

}  // namespace

Status check_exchange(const StackSpec& stack, const ModelSpec& model, const Plan& plan) {
  const std::int64_t cp = plan.degrees.cp;
  if (stack.parts.cp_comm_type != CpCommType::kA2a || cp == 1) return Ok{};
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    const BlockShape block = block_of_kind(model, kind);
    if (block.mixer != MixerKind::kAttention) continue;
    const std::int64_t ranks = plan.degrees.tp * cp;
    const AttentionShape& attention = block.attention;
    if (attention.heads % ranks == 0 && attention.kv_heads % ranks == 0) continue;
    return bad_input(
        fmt::format("cp_comm_type is a2a, but tp {} x cp {} does not divide the {} heads and {} "
                    "key/value heads",
                    plan.degrees.tp, cp, attention.heads, attention.kv_heads),
        "", "use --cp-comm-type p2p, which does not divide the heads by cp");
  }
  return Ok{};
}

RingExchanges ring_exchanges(const Scenario& scenario, const Plan& plan,
                             const CollectiveRecord& record, bool in_backward) {
  switch (scenario.stack.parts.cp_comm_type) {
    case CpCommType::kTorchRing: return torch_ring(scenario, plan, record, in_backward);
    case CpCommType::kA2a: return all_to_all(scenario, plan, record, in_backward);
    case CpCommType::kAllGather:
    case CpCommType::kP2p: break;
  }
  return megatron_ring(scenario, plan, record, in_backward);
}

void exchange_context(LoweredLayer& layer, const LayerInputs& inputs) {
  if (inputs.scenario.stack.parts.cp_comm_type == CpCommType::kAllGather) return;
  for (LoweredPhase& phase : layer.phases) {
    for (const TracedExchange& traced : taken_exchanges(layer, phase)) {
      add_exchanges(layer, inputs, traced, traced.gather, phase.events);
      if (traced.gradients) add_exchanges(layer, inputs, traced, *traced.gradients, phase.events);
    }
  }
}

}  // namespace tpsim
