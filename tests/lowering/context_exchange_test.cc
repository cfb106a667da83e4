// Laws of context-parallel rings: overlap with attention, exposed time, and bytes sent.
#include "lowering/passes/context_exchange.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/step/simulate.h"
#include "tests/sim/with_parts.h"

namespace tpsim {
namespace {

using test::with;

struct RingCase {
  Scenario scenario;
  Plan plan;
};

// Grouped query attention with two queries per key head.
RingCase case_of(std::int64_t seq, std::int64_t cp) {
  ModelSpec model = test::small_llama();
  model.seq = seq;
  RingCase c{test::small_scenario(model), test::plan_of(model, {.tp = 1, .pp = 1, .dp = 1}, 8)};
  c.scenario.cluster.gpus_per_node = 4;
  c.plan.degrees.cp = cp;
  c.plan.recompute = Recompute::kNone;
  c.plan.attention = AttentionKind::kFlash;
  return c;
}

PartValues exchange_by(CpCommType exchange) {
  return {{StackPart::kCpCommType, static_cast<std::int64_t>(exchange)}};
}

Seconds exchanged(const RingCase& c, const PartValues& parts) {
  return time_of(with(c.scenario, c.plan, parts), StepTerm::kContextCommunication);
}

const PartValues kGather = exchange_by(CpCommType::kAllGather);
const PartValues kMegatron = exchange_by(CpCommType::kP2p);
const PartValues kTorch = exchange_by(CpCommType::kTorchRing);

}  // namespace

TEST_CASE("without context parallelism every exchange of keys and values is free") {
  const RingCase c = case_of(128, 1);
  const Seconds step = with(c.scenario, c.plan, kGather).step;
  CHECK(with(c.scenario, c.plan, kMegatron).step == step);
  CHECK(with(c.scenario, c.plan, kTorch).step == step);
}

TEST_CASE("all-to-alls need whole heads on every rank") {
  RingCase c = case_of(128, 4);
  c.scenario.stack.parts.cp_comm_type = CpCommType::kA2a;
  CHECK(check_exchange(c.scenario.stack, c.scenario.model, c.plan).ok());
  c.scenario.model.attention.kv_heads = 2;
  CHECK_FALSE(check_exchange(c.scenario.stack, c.scenario.model, c.plan).ok());
  c.scenario.stack.parts.cp_comm_type = CpCommType::kP2p;
  CHECK(check_exchange(c.scenario.stack, c.scenario.model, c.plan).ok());
}

TEST_CASE("PyTorch's ring sends more than a gather, and is exposed in compiled code") {
  const RingCase c = case_of(128, 4);
  const Seconds eager = exchanged(c, kTorch);
  PartValues compiled = kTorch;
  compiled[StackPart::kCompile] = 1;
  CHECK(exchanged(c, compiled) > std::max(exchanged(c, kGather), eager));
}

TEST_CASE("Megatron's ring overlaps with attention, up to the time of a pass") {
  // Attention grows with the square of the sequence length, the bytes sent only linearly.
  RingCase c = case_of(1 << 15, 4);
  c.scenario.stack.overlap_slowdown = 1;
  CHECK(exchanged(c, kMegatron) < 0.01 * exchanged(c, kGather));
  // Overlapped communication slows attention.
  c.scenario.stack.overlap_slowdown = 1.5;
  const Seconds slowed = exchanged(c, kMegatron);
  CHECK(slowed > Seconds());
  CHECK(slowed < exchanged(c, kGather));
  // Attention passes are shorter than the communication.
  c = case_of(256, 4);
  c.scenario.stack.overlap_slowdown = 1;
  const Seconds seen = exchanged(c, kMegatron);
  c.scenario.stack.overlap_slowdown = 1.5;
  CHECK(seen > Seconds());
  CHECK(exchanged(c, kMegatron) > seen);
}

TEST_CASE("a ring sends every rank's keys and values to all others once, and their gradients") {
  const RingCase c = case_of(1024, 4);
  const double rank_keys = 2.0 * 4 * 64 * 256 * 2;  // keys and values, heads, width, rows, bytes
  const CollectiveRecord gather{.kind = CollectiveKind::kAllGather,
                                .group = GroupKind::kContext,
                                .bytes = static_cast<std::int64_t>(4 * rank_keys),
                                .label = {ModelPart::kContextParallel, "keys_and_values"}};
  CollectiveRecord reduce = gather;
  reduce.kind = CollectiveKind::kReduceScatter;
  const auto sent_by = [&](CpCommType exchange, const CollectiveRecord& record, bool backward) {
    Scenario scenario = c.scenario;
    scenario.stack.parts.cp_comm_type = exchange;
    double bytes = 0;
    for (const RingExchange& one : ring_exchanges(scenario, c.plan, record, backward).sent) {
      CHECK(one.overlapped <= one.calls);
      bytes += one.calls * static_cast<double>(one.record.bytes);
    }
    return bytes / rank_keys;
  };
  // Ulysses: queries, keys, values and results, and the gradients of each.
  CHECK(sent_by(CpCommType::kA2a, gather, false) == Approx(3));
  CHECK(sent_by(CpCommType::kA2a, gather, true) == Approx(1));
  CHECK(sent_by(CpCommType::kA2a, reduce, true) == Approx(2));
  CHECK(sent_by(CpCommType::kP2p, gather, false) == Approx(3));
  CHECK(sent_by(CpCommType::kP2p, gather, true) + sent_by(CpCommType::kP2p, reduce, true) ==
        Approx(3 + 3));
  // PyTorch repeats key/value heads to the number of query heads, and sends fp32 gradients.
  CHECK(sent_by(CpCommType::kTorchRing, gather, false) == Approx(4 * 2));
  CHECK(sent_by(CpCommType::kTorchRing, reduce, true) == Approx(4 * 2 * 2));
}

}  // namespace tpsim
