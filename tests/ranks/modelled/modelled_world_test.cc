// A single rank with modelled collectives: they wait, and leave finite numbers.
#include "ranks/modelled/modelled_world.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>

#include "kernels/slow/slow_device.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

constexpr double kNoTime = 0;

std::unique_ptr<Communicator> group_of_three(Device& device, CollectiveSeconds seconds) {
  ModelledWorld world(5, 8, std::move(seconds), 100);
  return world.communicator(device, GroupKind::kTensor, {3, 5, 7});
}

Tensor tensor_of(Device& device, const std::vector<float>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  Tensor x = device.allocate({count}, DType::kFloat32, MemoryCategory::kWorkspace, "test");
  device.upload(std::as_bytes(std::span(values)), x);
  return x;
}

template <class T>
std::vector<T> values_of(Device& device, const Tensor& x) {
  std::vector<T> values(static_cast<std::size_t>(x.elements()));
  device.download(x, std::as_writable_bytes(std::span(values)));
  return values;
}

CollectiveSeconds no_time() {
  return [](const CollectiveRecord&) { return kNoTime; };
}

}  // namespace

TEST_CASE("a rank knows its position among the members") {
  SlowDevice device;
  const auto group = group_of_three(device, no_time());
  CHECK(group->rank() == 1);
  CHECK(group->size() == 3);
}

TEST_CASE("gathers repeat this rank's part and reductions keep the local values") {
  SlowDevice device;
  const auto group = group_of_three(device, no_time());
  const Tensor all = tensor_of(device, {1, 2, 3, 4, 5, 6});
  group->all_reduce(all, ReduceOp::kSum, test::kTest);
  CHECK(values_of<float>(device, all) == std::vector<float>{1, 2, 3, 4, 5, 6});
  group->reduce_scatter(all, all.slice(2, 2), test::kTest);
  group->all_gather(all.slice(2, 2), all, test::kTest);
  CHECK(values_of<float>(device, all) == std::vector<float>{3, 4, 3, 4, 3, 4});
}

TEST_CASE("received values are finite, varied, in range, and reproducible") {
  SlowDevice device;
  std::vector<std::vector<float>> received;
  for (int run = 0; run < 2; ++run) {
    const auto group = group_of_three(device, no_time());
    const Tensor x = tensor_of(device, std::vector<float>(64, NAN));
    group->receive(x, 0, test::kTest);
    received.push_back(values_of<float>(device, x));
    const Tensor tokens =
        device.allocate({64}, DType::kInt32, MemoryCategory::kWorkspace, "tokens");
    group->broadcast(tokens, 0, test::kTest);
    for (const std::int32_t token : values_of<std::int32_t>(device, tokens)) {
      CHECK((token >= 0 && token < 100));
    }
  }
  CHECK(received[0] == received[1]);
  CHECK(received[0][0] != received[0][1]);
  for (const float value : received[0]) CHECK(std::isfinite(value));
}

TEST_CASE("a collective takes at least the modelled time of its kind and size") {
  SlowDevice device;
  std::vector<CollectiveRecord> asked;
  const auto group = group_of_three(device, [&](const CollectiveRecord& record) {
    asked.push_back(record);
    return 3e-3;
  });
  const Tensor x = tensor_of(device, {1, 2, 3});
  const auto begin = std::chrono::steady_clock::now();
  group->all_reduce(x, ReduceOp::kSum, test::kTest);
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  CHECK(waited.count() >= 3e-3);
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].kind == CollectiveKind::kAllReduce);
  CHECK(asked[0].group == GroupKind::kTensor);
  CHECK(asked[0].ranks == 3);
  CHECK(asked[0].bytes == 12);
}

}  // namespace tpsim
