// Time of one NCCL collective of one group, from the structure of its algorithms.
//
// Each algorithm (ring, double binary tree; direct sends for all-to-all) and protocol (LL, LL128,
// Simple) costs latency + traffic / bandwidth. The fastest one is chosen, as by NCCL's tuner
// (src/graph/tuning.cc, v2.28). For broadcasts and large all-reduces, the tuner is known to choose
// a slower algorithm or protocol. The time is then that of this choice.
//
// Not modelled: in-network reduction (SHARP), and NVLink multicast (NVLS, present only in measured
// samples).
#pragma once

#include <cstdint>

#include "core/base/enum_words.h"
#include "core/base/units.h"
#include "core/program/program.h"

namespace tpsim {

enum class CollectiveAlgorithm : std::uint8_t { kRing, kTree, kDirect };
template <>
inline constexpr auto kEnumNames<CollectiveAlgorithm> = words<3>("ring tree direct");
enum class CollectiveProtocol : std::uint8_t { kLl, kLl128, kSimple };
template <>
inline constexpr auto kEnumNames<CollectiveProtocol> = words<3>("LL LL128 Simple");

// Bandwidths and latencies of one group, after links are shared with other groups.
struct CollectivePath {
  std::int64_t ranks = 1;
  std::int64_t nodes = 1;
  BytesPerSecond intra_bandwidth;  // bus bandwidth between GPUs of a node, one direction
  BytesPerSecond inter_bandwidth;  // of this group out of a node, one direction
  Seconds base_latency;            // launch and synchronization of one collective
  Seconds intra_latency;           // one hop of a small message (LL) inside a node
  Seconds inter_latency;           // one hop of a small message (LL) between nodes
  // Ranks on the node that limits an all-to-all; 0: ranks / nodes, rounded up.
  std::int64_t limiting_ranks = 0;
};

struct CollectiveEstimate {
  Seconds time;  // latency + traffic
  Seconds latency;
  Seconds traffic;
  CollectiveAlgorithm algorithm{};
  CollectiveProtocol protocol{};
};

// Returns the bytes on the busiest link over the message size, as the bus bandwidth factor of
// nccl-tests: 2(n-1)/n for all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all, 1 for
// a broadcast or a transfer.
double bus_factor(CollectiveKind kind, std::int64_t ranks);
// Returns the consecutive hops on a ring: 2(n-1) for all-reduce, n-1 for all-gather, reduce-scatter
// and broadcast, 1 for all-to-all and transfers.
std::int64_t ring_steps(CollectiveKind kind, std::int64_t ranks);

// Returns 0 for a group of one rank or an empty message.
CollectiveEstimate nccl_estimate(CollectiveKind kind, Bytes bytes, const CollectivePath& path);

}  // namespace tpsim
