// A parallel loop over indices.
#pragma once

#include <cstdint>
#include <functional>

namespace tpsim {

using IndexWork = std::function<void(std::int64_t index)>;

// Processes every index from 0 to count - 1 once, with `threads` threads including the caller. Each
// thread calls `make_worker` once and then processes the next free index. If the system provides
// fewer threads, fewer are used.
//
// The first exception of any thread is rethrown when all threads have ended. Indices that had not
// been started are skipped.
void parallel_for(std::int64_t count, int threads, const std::function<IndexWork()>& make_worker);

}  // namespace tpsim
