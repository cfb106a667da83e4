#include "plans/search/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tpsim {

void parallel_for(std::int64_t count, int threads, const std::function<IndexWork()>& make_worker) {
  std::atomic<std::int64_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto take_indices = [&] {
    try {
      const IndexWork work = make_worker();
      for (std::int64_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  others.reserve(static_cast<std::size_t>(std::max(threads, 1)));
  try {
    while (static_cast<int>(others.size()) < threads - 1) others.emplace_back(take_indices);
  } catch (const std::system_error&) {
    // The system cannot start more threads. The started ones and the caller do all the work.
  }
  take_indices();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tpsim
