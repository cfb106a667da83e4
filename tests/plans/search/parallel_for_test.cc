#include "plans/search/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <thread>
#include <vector>

#include "core/base/check.h"

namespace tpsim {

TEST_CASE("every index is processed once, with any number of threads") {
  const int threads = GENERATE(0, 1, 2, 7, 40);
  std::vector<std::atomic<int>> worked(25);
  std::atomic<int> workers = 0;
  parallel_for(25, threads, [&]() -> IndexWork {
    ++workers;
    return [&](std::int64_t i) { ++worked[static_cast<std::size_t>(i)]; };
  });
  CHECK(std::all_of(worked.begin(), worked.end(), [](const auto& times) { return times == 1; }));
  CHECK(workers == std::max(1, threads));
}

TEST_CASE("an exception of one thread is rethrown after the others have ended") {
  const bool caller_throws = GENERATE(false, true);
  const auto caller = std::this_thread::get_id();
  std::latch both_work{2};  // so that neither thread processes all indices
  std::atomic<int> ended = 0;
  const auto work = [&](std::int64_t) {
    both_work.arrive_and_wait();
    if ((std::this_thread::get_id() == caller) == caller_throws) throw BugError("a failed check");
    ++ended;
  };
  CHECK_THROWS_WITH(parallel_for(2, 2, [&] { return work; }), "a failed check");
  CHECK(ended == 1);
}

TEST_CASE("after a failure no new index is started") {
  int begun = 0;
  const auto work = [&](std::int64_t i) {
    ++begun;
    if (i == 3) throw BugError("a failed check");
  };
  CHECK_THROWS_AS(parallel_for(1000, 1, [&] { return work; }), BugError);
  CHECK(begun == 4);
}

TEST_CASE("an exception while creating a worker is rethrown") {
  CHECK_THROWS_AS(parallel_for(3, 4, []() -> IndexWork { throw BugError("no worker"); }), BugError);
}

}  // namespace tpsim
