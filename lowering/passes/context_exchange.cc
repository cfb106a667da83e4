#include "lowering/passes/context_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

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
    gather.overlapped = waits ? 0 : 1;
    const double one_tensor = 2 * 2 * queries * narrow;
    const double merged = in_backward ? 0 : queries * others * traffic.merge;
    return {{gather}, Bytes(one_tensor + merged)};
  }
  RingExchange sent = exchange(record, CollectiveKind::kSend, 2 * queries * sizeof(float));
  sent.calls = others + 1;
  sent.overlapped = waits ? 0 : others;
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
    last.overlapped = 1;
    const double summed = both * (kCopy + others * kSummed * kSum);
    return {{last}, Bytes(narrow * summed)};
  }
  RingExchange keys = exchange(record, CollectiveKind::kSend, both * narrow);
  if (!in_backward) {
    keys.calls = keys.overlapped = others;
    const double copied = kCopy * (both + others * kHalf * (both + queries));
    const double merged = queries * (kCopy + others * kSummed * kSum);
    return {{keys}, Bytes(narrow * (copied + merged))};
  }
  keys.overlapped = 1;
  RingExchange with_gradients = exchange(record, CollectiveKind::kSend, 2 * both * narrow);
  with_gradients.calls = with_gradients.overlapped = others - 1;
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
using Events = std::vector<LoweredEvent>;

// A context-parallel attention of the trace: the gather of keys and values and, in backward, the
// reduction of their gradients. Events [first, last) of the phase are from the first to the last op
// of the attention core.
struct TracedExchange {
  LoweredCollective gather;
  std::optional<LoweredCollective> gradients = {};
  std::size_t first = 0, last = 0;
};

bool is_core(const LoweredLayer& layer, const LoweredEvent& event) {
  return event.kind == Kind::kOp && layer.ops[event.index].label.part == ModelPart::kAttentionCore;
}

// Removes the exchanges of the trace from the phase and returns them.
std::vector<TracedExchange> taken_exchanges(const LoweredLayer& layer, Events& events) {
  std::vector<TracedExchange> taken;
  Events others;
  for (const LoweredEvent& event : events) {
    if (event.kind == Kind::kCollective) {
      const LoweredCollective& record = layer.collectives[event.index];
      const bool is_gather = record.kind == CollectiveKind::kAllGather;
      if (record.group != GroupKind::kContext) {
        others.push_back(event);
      } else if (is_gather) {
        taken.push_back({record});
      } else {
        taken.back().gradients = record;
      }
      continue;
    }
    const bool is_op = event.kind == Kind::kOp;
    if (is_op && layer.ops[event.index].label.part == ModelPart::kContextParallel) continue;
    others.push_back(event);
    if (taken.empty() || !is_core(layer, event)) continue;
    if (taken.back().last == 0) taken.back().first = others.size() - 1;
    taken.back().last = others.size();
  }
  events = std::move(others);
  return taken;
}

// The calls and copies of a rank that replace an exchange of the trace.
struct Exchange {
  Events overlapped;  // calls, each during a pass of attention
  Events after;       // the other calls, and copies
};

void add_calls(LoweredLayer& layer, const RingExchanges& ring, Exchange& exchange) {
  const auto call = [&](const CollectiveRecord& record, double calls) {
    LoweredCollective sent{record};
    sent.calls = calls;
    return added(layer, sent);
  };
  for (const RingExchange& sent : ring.sent) {
    const auto overlapped = static_cast<std::size_t>(sent.overlapped);
    if (overlapped > 0)
      exchange.overlapped.resize(exchange.overlapped.size() + overlapped, call(sent.record, 1));
    const double others = sent.calls - sent.overlapped;
    if (others > 0) exchange.after.push_back(call(sent.record, others));
  }
  exchange.after.push_back(added(
      layer,
      LoweredCopy{.label = {ModelPart::kContextParallel, "attention.ring"}, .moved = ring.copied}));
}

// Appends attention in passes. A call runs during each of the first passes.
void append_passes(LoweredLayer& layer, const Events& attention, std::int64_t passes,
                   const Exchange& exchange, Events& events) {
  Events core;  // that later passes run too
  for (const LoweredEvent& event : attention) {
    if (!is_core(layer, event)) continue;
    layer.ops[event.index].repeats /= static_cast<double>(passes);
    core.push_back(event);
    core.back().is_first = false;
  }
  for (std::size_t pass = 0; pass < static_cast<std::size_t>(passes); ++pass) {
    const bool has_call = pass < exchange.overlapped.size();
    if (has_call) events.push_back(with_kind(exchange.overlapped[pass], Kind::kStart));
    const Events& run = pass == 0 ? attention : core;
    events.insert(events.end(), run.begin(), run.end());
    if (has_call) events.push_back(with_kind(exchange.overlapped[pass], Kind::kWait));
  }
}

void exchange_in_phase(LoweredLayer& layer, const LayerInputs& inputs, LoweredPhase& phase) {
  const std::vector<TracedExchange> all = taken_exchanges(layer, phase.events);
  const Events old = std::exchange(phase.events, {});
  std::size_t next = 0;
  const auto append_until = [&](std::size_t end) {
    for (; next < end; ++next) phase.events.push_back(old[next]);
  };
  for (const TracedExchange& traced : all) {
    const auto ring_of = [&](const LoweredCollective& replaced) {
      return ring_exchanges(inputs.scenario, inputs.plan, replaced, traced.gradients.has_value());
    };
    Exchange exchange;
    add_calls(layer, ring_of(traced.gather), exchange);
    if (traced.gradients) add_calls(layer, ring_of(*traced.gradients), exchange);
    append_until(traced.first);
    if (!exchange.overlapped.empty()) {
      const Events attention(old.begin() + static_cast<std::ptrdiff_t>(traced.first),
                             old.begin() + static_cast<std::ptrdiff_t>(traced.last));
      append_passes(layer, attention, inputs.plan.degrees.cp, exchange, phase.events);
      next = traced.last;
    }
    append_until(traced.last);
    phase.events.insert(phase.events.end(), exchange.after.begin(), exchange.after.end());
  }
  append_until(old.size());
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
  const auto is_exchange = [](const LoweredCollective& record) {
    return record.group == GroupKind::kContext;
  };
  if (std::none_of(layer.collectives.begin(), layer.collectives.end(), is_exchange)) return;
  for (LoweredPhase& phase : layer.phases) exchange_in_phase(layer, inputs, phase);
}

}  // namespace tpsim
