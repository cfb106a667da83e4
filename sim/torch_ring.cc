#include "sim/torch_ring.h"

#include <cmath>

namespace tpsim {
namespace {

// Of a rank's queries, and of its keys when they are repeated for each of these.
double elements_of(const Scenario& scenario, const Plan& plan, const CollectiveRecord& record) {
  const AttentionShape& attention = scenario.model.attention;
  const double both = static_cast<double>(record.bytes) /
                      static_cast<double>(plan.degrees.cp * size_of(plan.dtype));
  return both / 2 * static_cast<double>(attention.heads) / static_cast<double>(attention.kv_heads);
}

// Bytes of an element, read and written, in bf16 and fp32. Compiled ops are one pass over what goes
// in and comes out; eager ones have a pass each.
struct Traffic {
  double merge, gradients, first, last;
};
constexpr Traffic kCompiled{.merge = 2 + 8, .gradients = 10 + 2 * 9, .first = 3 * 6, .last = 3 * 6};
// Merging widens, subtracts, scales, subtracts; gradients of half the keys and values are added
// to that half, both are put together, and both tensors in one for the exchange.
constexpr Traffic kEager{.merge = 6 + 12 + 8 + 12,
                         .gradients = 10 + 2 * (5 + 8) + 16,
                         .first = 12 + 3 * 10 + 16,
                         .last = 3 * 6};

const Traffic& traffic_of(const StackSpec& stack) {
  return stack.parts.compile ? kCompiled : kEager;
}

}  // namespace

bool attends_in_ring(const StackSpec& stack) {
  return stack.parts.context_exchange == ContextExchange::kTorchRing;
}

RingExchange ring_exchange(const Scenario& scenario, const Plan& plan,
                           const CollectiveRecord& record) {
  const double elements = elements_of(scenario, plan, record);
  const auto others = static_cast<double>(plan.degrees.cp - 1);
  const auto narrow = static_cast<double>(size_of(plan.dtype));
  const bool waits = scenario.stack.parts.compile;
  const Traffic& traffic = traffic_of(scenario.stack);
  RingExchange exchange{record, 1, 1, Bytes()};
  if (record.kind == CollectiveKind::kAllGather) {
    exchange.record.bytes = std::llround((others + 1) * 2 * elements * narrow);
    exchange.waited = waits ? 1 : 0;
    exchange.copied = Bytes(2 * 2 * elements * narrow);  // put together in one tensor
    return exchange;
  }
  exchange.record.kind = CollectiveKind::kSend;
  exchange.record.bytes = std::llround(2 * elements * sizeof(float));
  exchange.calls = others + 1;
  exchange.waited = waits ? 1 : 1 / exchange.calls;
  exchange.copied = Bytes(elements * (traffic.first + others * traffic.gradients + traffic.last));
  return exchange;
}

Bytes merged_in_ring(const Scenario& scenario, const Plan& plan, const CollectiveRecord& gather) {
  const auto others = static_cast<double>(plan.degrees.cp - 1);
  return Bytes(elements_of(scenario, plan, gather) * others * traffic_of(scenario.stack).merge);
}

}  // namespace tpsim
