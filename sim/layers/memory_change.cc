#include "sim/layers/memory_change.h"

#include <algorithm>

namespace tpsim {
namespace {

BytesByCategory sum(const BytesByCategory& a, const BytesByCategory& b) {
  BytesByCategory result = a;
  for (std::size_t i = 0; i < b.size(); ++i) result[i] += b[i];
  return result;
}

// Adds up allocations and frees in order.
struct MemoryWalk {
  MemoryChange change;
  double now = 0, highest = 0;

  // `bytes`: negative for a free. Host memory is excluded.
  void visit(MemoryCategory category, double bytes) {
    if (category == MemoryCategory::kHost) return;
    const auto index = static_cast<std::size_t>(category);
    change.left[index] += bytes;
    change.each[index] = std::max(change.each[index], change.left[index]);
    now += bytes;
    if (now <= highest) return;
    highest = now;
    change.highest = change.left;
  }
};

}  // namespace

MemoryChange then(const MemoryChange& first, const MemoryChange& second) {
  MemoryChange result{sum(first.left, second.left), first.highest, {}};
  const BytesByCategory later = sum(first.left, second.highest);
  if (total(later) > total(result.highest)) result.highest = later;
  const BytesByCategory each = sum(first.left, second.each);
  for (std::size_t i = 0; i < each.size(); ++i) result.each[i] = std::max(first.each[i], each[i]);
  return result;
}

MemoryChange repeat(const MemoryChange& once, std::int64_t n) {
  MemoryChange result;
  if (n == 0) return result;
  // The highest repetition is the last one if each leaves memory allocated, else the first.
  const auto times = static_cast<double>(n);
  const double before = total(once.left) > 0 ? times - 1 : 0;
  const bool rises = total(once.highest) + before * total(once.left) > 0;
  for (std::size_t i = 0; i < once.left.size(); ++i) {
    result.left[i] = times * once.left[i];
    if (rises) result.highest[i] = before * once.left[i] + once.highest[i];
    result.each[i] = once.each[i] + std::max(0.0, (times - 1) * once.left[i]);
  }
  return result;
}

MemoryChange memory_change(const LoweredLayer& layer, std::initializer_list<Phase> phases,
                           const AllocationRounding& rounding) {
  MemoryWalk walk;
  for (const Phase phase : phases) {
    for (const LoweredEvent& event : layer.phase(phase).events) {
      const bool allocates = event.kind == LoweredEvent::Kind::kAllocate;
      if (!allocates && event.kind != LoweredEvent::Kind::kFree) continue;
      const LoweredAllocation& made = layer.allocations[event.index];
      walk.visit(made.category, (allocates ? 1 : -1) * allocated_bytes(made, rounding));
    }
  }
  return walk.change;
}

Bytes host_bytes(const LoweredLayer& layer) {
  double sum = 0;
  for (const LoweredAllocation& allocation : layer.allocations) {
    if (allocation.category == MemoryCategory::kHost) sum += static_cast<double>(allocation.bytes);
  }
  return Bytes(sum);
}

}  // namespace tpsim
