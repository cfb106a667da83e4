// Ranks as threads: results and order of messages, and the effect of a failing rank.
#include "ranks/threads/thread_world.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <new>
#include <string>
#include <thread>

#include "kernels/cpu/cpu_device.h"
#include "ranks/gathered.h"
#include "tests/ranks/collective_checks.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

std::unique_ptr<CpuDevice> cpu() { return std::move(CpuDevice::create()).value(); }

}  // namespace

TEST_CASE("gathered texts of any length reach all ranks") {
  for (const int size : {1, 2, 3}) {
    const Status status = run_on_threads(size, [&](World& world) -> Status {
      const auto device = cpu();
      const auto rank = static_cast<std::size_t>(world.rank());
      const std::string mine(rank * rank * 1000, static_cast<char>('a' + rank));
      const std::vector<std::string> all = gathered(world, *device, mine);
      bool right = std::ssize(all) == size && all[rank] == mine && all[0].empty();
      if (size > 1) right = right && all[1] == std::string(1000, 'b');
      return right ? Status(Ok{}) : Error{ErrorKind::kBug, "something else was heard", "", ""};
    });
    INFO("with " << size << " ranks");
    REQUIRE((status.ok() ? "" : status.error().message) == std::string());
  }
}

TEST_CASE("collectives of threads are correct") {
  for (const int size : {2, 3, 4, 8}) {
    const Status status = run_on_threads(size, [&](World& world) -> Status {
      const auto device = cpu();
      const auto group = world.communicator(*device, GroupKind::kWorld, all_ranks(world));
      for (const std::int64_t elements : {1, 7, 64, 5001}) {
        for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
          TPSIM_TRY_STATUS(check_collectives(*device, *group, {elements, dtype}));
        }
      }
      return check_messages(*device, *group);
    });
    INFO("with " << size << " ranks");
    REQUIRE((status.ok() ? "" : status.error().message) == std::string());
  }
}

TEST_CASE("a sum has the same bits on every rank and in every run, for any order of arrival") {
  constexpr int kRanks = 4;
  std::vector<std::vector<float>> results(2 * kRanks);
  for (int run = 0; run < 2; ++run) {
    const Status status = run_on_threads(kRanks, [&](World& world) -> Status {
      const auto device = cpu();
      const auto group = world.communicator(*device, GroupKind::kData, all_ranks(world));
      const Tensor x = awkward_sum(*device, world.rank(), 4099);
      if ((world.rank() + run) % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      group->all_reduce(x, ReduceOp::kSum, test::kTest);
      results[static_cast<std::size_t>(run * kRanks + world.rank())] = floats_of(*device, x);
      return Ok{};
    });
    REQUIRE(status.ok());
  }
  for (const std::vector<float>& result : results) CHECK(result == results[0]);
}

TEST_CASE("groups of some ranks, and two groups of the same ranks, do not mix") {
  const Status status = run_on_threads(4, [](World& world) -> Status {
    const auto device = cpu();
    const std::int64_t mate = world.rank() ^ 1;
    const std::vector<std::int64_t> pair = {std::min<std::int64_t>(world.rank(), mate),
                                            std::max<std::int64_t>(world.rank(), mate)};
    const auto forward = world.communicator(*device, GroupKind::kPipeline, pair);
    const auto backward = world.communicator(*device, GroupKind::kPipeline, pair);
    const int to = 1 - forward->rank();
    const Tensor sent = filled(*device, 3, static_cast<float>(world.rank()));
    const Tensor also = filled(*device, 3, static_cast<float>(world.rank() + 10));
    const Tensor first = filled(*device, 3, -1), second = filled(*device, 3, -1);
    forward->send(sent, to, test::kTest);
    backward->send(also, to, test::kTest);
    backward->receive(second, to, test::kTest);
    forward->receive(first, to, test::kTest);
    const auto from = static_cast<float>(mate);
    if (floats_of(*device, first) != std::vector<float>(3, from) ||
        floats_of(*device, second) != std::vector<float>(3, from + 10)) {
      return Error{ErrorKind::kBug, "messages of two groups were mixed", "", ""};
    }
    return Ok{};
  });
  CHECK(status.ok());
}

TEST_CASE("when one rank fails, the others leave their collectives and its error is the outcome") {
  for (const bool by_exception : {false, true}) {
    for (const bool in_message : {false, true}) {
      const Status status = run_on_threads(4, [&](World& world) -> Status {
        const auto device = cpu();
        const auto group = world.communicator(*device, GroupKind::kWorld, all_ranks(world));
        const Tensor x = filled(*device, 1000, 1);
        group->all_reduce(x, ReduceOp::kSum, test::kTest);
        if (world.rank() == 2) {
          std::this_thread::sleep_for(std::chrono::milliseconds(3));
          if (by_exception) throw OutOfDeviceMemory("no memory for the test");
          return Error{ErrorKind::kDoesNotFit, "no memory for the test", "", ""};
        }
        if (in_message) {
          group->receive(x, 2, test::kTest);
        } else {
          group->all_reduce(x, ReduceOp::kSum, test::kTest);
        }
        return Ok{};
      });
      REQUIRE_FALSE(status.ok());
      CHECK(status.error().kind == ErrorKind::kDoesNotFit);
      CHECK(status.error().message == "rank 2: no memory for the test");
    }
  }
}

TEST_CASE("a rank that fails during a reduction leaves no rank waiting or reading") {
  for (const bool others_wait : {false, true}) {
    const Status status = run_on_threads(3, [&](World& world) -> Status {
      const auto device = cpu();
      const auto group = world.communicator(*device, GroupKind::kWorld, all_ranks(world));
      const Tensor x = filled(*device, 100'000, 1), other = filled(*device, 8, 1);
      if (world.rank() != 2) group->begin_all_reduce(x, ReduceOp::kSum, test::kTest);
      if (world.rank() == 1) throw OutOfDeviceMemory("no memory for the test");
      if (world.rank() == 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        group->begin_all_reduce(x, ReduceOp::kSum, test::kTest);
      }
      if (others_wait) group->finish();
      // Ranks that do not wait get the failure from a later op.
      for (int i = 0; i < 100; ++i) {
        device->run(Fill{other, 2.0F, test::kTest});
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return Error{ErrorKind::kBug, "nobody said that a rank has failed", "", ""};
    });
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().message == "rank 1: no memory for the test");
  }
}

TEST_CASE("a group formed after a failure fails too") {
  const Status status = run_on_threads(2, [&](World& world) -> Status {
    const auto device = cpu();
    if (world.rank() == 1) return Error{ErrorKind::kBadInput, "at once", "", ""};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto group = world.communicator(*device, GroupKind::kWorld, all_ranks(world));
    group->all_reduce(filled(*device, 10, 1), ReduceOp::kSum, test::kTest);
    return Ok{};
  });
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message == "rank 1: at once");
}

TEST_CASE("an out-of-memory rank ends the run with the error kind does_not_fit") {
  const Status status = run_on_threads(3, [&](World& world) -> Status {
    const auto device = cpu();
    const auto group = world.communicator(*device, GroupKind::kWorld, all_ranks(world));
    if (world.rank() == 1) throw std::bad_alloc();
    const Tensor x =
        device->allocate({4}, DType::kFloat32, MemoryCategory::kWorkspace, test::kTest.text);
    group->all_reduce(x, ReduceOp::kSum, test::kTest);
    return Ok{};
  });
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().kind == ErrorKind::kDoesNotFit);
}

TEST_CASE("a failed check on a rank is reported as a bug") {
  const Status status = run_on_threads(2, [](World& world) -> Status {
    TPSIM_CHECK(world.rank() == 0, "only rank 0 here");
    return Ok{};
  });
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().kind == ErrorKind::kBug);
}

}  // namespace tpsim
