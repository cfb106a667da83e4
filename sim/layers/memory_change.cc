#include "sim/layers/memory_change.h"

#include <algorithm>
#include <cmath>

namespace tpsim {
namespace {

BytesByCategory sum(const BytesByCategory& a, const BytesByCategory& b) {
  BytesByCategory result = a;
  for (std::size_t i = 0; i < b.size(); ++i) result[i] += b[i];
  return result;
}

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

MemoryChange memory_change(const Program& program, std::size_t begin, std::size_t end,
                           Bytes granularity) {
  MemoryChange change;
  double now = 0, highest = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const ProgramEvent& event = program.events[i];
    const bool allocate = event.kind == ProgramEvent::Kind::kAllocate;
    if (!allocate && event.kind != ProgramEvent::Kind::kFree) continue;
    const AllocationRecord& allocation = program.allocations[event.index];
    if (allocation.category == MemoryCategory::kHost) continue;
    const double rounded = std::ceil(static_cast<double>(allocation.bytes) / granularity.value()) *
                           granularity.value();
    const double signed_bytes = allocate ? rounded : -rounded;
    const auto category = static_cast<std::size_t>(allocation.category);
    change.left[category] += signed_bytes;
    change.each[category] = std::max(change.each[category], change.left[category]);
    now += signed_bytes;
    if (now > highest) {
      highest = now;
      change.highest = change.left;
    }
  }
  return change;
}

Bytes host_bytes(const Program& program) {
  double sum = 0;
  for (const AllocationRecord& allocation : program.allocations) {
    if (allocation.category == MemoryCategory::kHost) sum += static_cast<double>(allocation.bytes);
  }
  return Bytes(sum);
}

}  // namespace tpsim
