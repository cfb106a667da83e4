// Change of allocated memory over a range of a program: remaining allocations and peak.
#pragma once

#include <array>
#include <initializer_list>
#include <numeric>

#include "core/base/units.h"
#include "core/program/program.h"
#include "lowering/passes/lowered_layer.h"

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

// Bytes relative to the allocations at the start of a range of events.
struct MemoryChange {
  BytesByCategory left{};     // still allocated at the end; negative if the range freed more
  BytesByCategory highest{};  // at the largest total; zero if the total never rises
  BytesByCategory each{};     // peak of every category by itself
};
// Returns the change of `first` followed by `second`.
MemoryChange then(const MemoryChange& first, const MemoryChange& second);
// Returns the change of `once`, n times in a row.
MemoryChange repeat(const MemoryChange& once, std::int64_t n);

// Replays the allocations and frees of phases of a layer, one after the other. Each traced
// allocation is rounded up. Host memory is excluded.
MemoryChange memory_change(const LoweredLayer& layer, std::initializer_list<Phase> phases,
                           const AllocationRounding& rounding);
// Returns the bytes that a layer allocates in host memory.
Bytes host_bytes(const LoweredLayer& layer);

}  // namespace tpsim
