// How long NCCL takes for one collective of one group, from the shape of its algorithms.
//
// A collective is priced as latency + traffic / bandwidth for each algorithm (ring, double binary
// tree; an all-to-all sends directly to every peer at once) and protocol (LL, LL128, Simple); the
// least time wins, which is what NCCL's own tuner does (src/graph/tuning.cc, v2.28). Where the
// tuner is known to choose wrongly, its choice is priced: broadcasts, and trees of large
// all-reduces. Not modelled: in-network reduction (SHARP), NVLink multicast (NVLS, which enters
// only through measured samples).
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

// The machine as one group sees it: shares are taken already.
struct CollectivePath {
  std::int64_t ranks = 1;
  std::int64_t nodes = 1;
  BytesPerSecond intra_bandwidth;  // bus bandwidth between GPUs of a node, one direction
  BytesPerSecond inter_bandwidth;  // of this group across a node's boundary, one direction
  Seconds base_latency;            // launch and synchronisation of one collective
  Seconds intra_latency;           // one hop of a small message (LL)
  Seconds inter_latency;
};

struct CollectiveEstimate {
  Seconds time;  // latency + traffic
  Seconds latency;
  Seconds traffic;
  CollectiveAlgorithm algorithm{};
  CollectiveProtocol protocol{};
};

// Bytes that cross the busiest link, over the message size: 2(n-1)/n for an all-reduce, (n-1)/n for
// all-gather, reduce-scatter and all-to-all, 1 for a broadcast or a transfer; nccl-tests' bus
// bandwidth factor.
double bus_factor(CollectiveKind kind, std::int64_t ranks);
// Hops that a message makes around a ring: 2(n-1) or n-1.
std::int64_t ring_steps(CollectiveKind kind, std::int64_t ranks);

// Zero for a group of one rank or an empty message.
CollectiveEstimate nccl_estimate(CollectiveKind kind, Bytes bytes, const CollectivePath& path);

}  // namespace tpsim
