// Work that threads share.
#pragma once

#include <cstdint>
#include <functional>

namespace tpsim {

using IndexWork = std::function<void(std::int64_t index)>;

// Works on every index from 0 to count - 1 once, on that many threads, the calling one among them.
// Each takes the next free index and works with what `make_worker` made on it. Where the system has
// fewer threads to give, fewer work.
//
// An exception in any thread is thrown on from here, the first of several, once all threads have
// ended; indices that nobody had begun by then are left.
void parallel_for(std::int64_t count, int threads, const std::function<IndexWork()>& make_worker);

}  // namespace tpsim
