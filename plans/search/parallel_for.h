// A parallel loop over indices.
#pragma once

#include <cstdint>
#include <functional>

namespace tpsim {

using IndexWork = std::function<void(std::int64_t index)>;

// Processes every index from 0 to count - 1 once, with `threads` threads including the caller. Each
// thread calls `make_worker` once and then processes the next free index. Uses fewer threads if the
// system cannot start all of them.
//
// If a thread throws, no further index is started. The first exception is rethrown after all
// threads have ended.
void parallel_for(std::int64_t count, int threads, const std::function<IndexWork()>& make_worker);

}  // namespace tpsim
