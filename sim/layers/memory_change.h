// Memory change over a range of a program: remaining allocations and peak.
#pragma once

#include <array>
#include <numeric>

#include "core/base/units.h"
#include "core/program/program.h"

namespace tpsim {

using BytesByCategory = std::array<double, kMemoryCategoryCount>;

// Indices of BytesByCategory.
namespace memory_index {
inline constexpr auto kGradients = static_cast<std::size_t>(MemoryCategory::kGradients);
inline constexpr auto kActivations = static_cast<std::size_t>(MemoryCategory::kActivations);
inline constexpr auto kOptimizer = static_cast<std::size_t>(MemoryCategory::kOptimizer);
inline constexpr auto kWorkspace = static_cast<std::size_t>(MemoryCategory::kWorkspace);
inline constexpr auto kCommunication = static_cast<std::size_t>(MemoryCategory::kCommunication);
}  // namespace memory_index

inline double total(const BytesByCategory& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), 0.0);
}

// Relative to the allocations at the start of the range.
struct MemoryChange {
  BytesByCategory left{};     // still allocated at the end; negative if the range freed more
  BytesByCategory highest{};  // at the moment of the largest total; zero if it never rises
  BytesByCategory each{};     // peak of every category by itself
};
// `first`, then `second`.
MemoryChange then(const MemoryChange& first, const MemoryChange& second);
// n times in a row.
MemoryChange repeat(const MemoryChange& once, std::int64_t n);

// Replays the allocations and frees of events [begin, end), each rounded up to `granularity`. Host
// memory is excluded.
MemoryChange memory_change(const Program& program, std::size_t begin, std::size_t end,
                           Bytes granularity);
// Bytes that a program allocates in host memory.
Bytes host_bytes(const Program& program);

}  // namespace tpsim
