#include "tests/ranks/collective_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "core/base/half_floats.h"
#include "kernels/normal_stream.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

using Values = std::vector<double>;

// Returns a tensor with element i = f(i).
Tensor tensor_of(Device& device, const CollectiveSize& size,
                 const std::function<double(std::int64_t)>& f) {
  const Tensor x =
      device.allocate({size.elements}, size.dtype, MemoryCategory::kCommunication, "test");
  Values values;
  for (std::int64_t i = 0; i < size.elements; ++i) values.push_back(f(i));
  std::vector<std::byte> bytes(static_cast<std::size_t>(x.bytes()));
  encode(values, size.dtype, bytes.data());
  device.upload(bytes, x);
  return x;
}

Status expect(Device& device, const Communicator& group, const char* what, const Tensor& x,
              const std::function<double(std::int64_t)>& f) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(x.bytes()));
  device.download(x, bytes);
  Values values(static_cast<std::size_t>(x.elements()));
  decode(bytes.data(), x.dtype(), values);
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const double actual = values[static_cast<std::size_t>(i)];
    if (actual != f(i)) {
      return Error{
          ErrorKind::kBug,
          fmt::format("{} of {} {} on rank {} of {}: element {} is {}, not {}", what, x.elements(),
                      name_of(x.dtype()), group.rank(), group.size(), i, actual, f(i)),
          "", ""};
    }
  }
  return Ok{};
}

// Integers, so that sums over eight ranks are exact in every dtype.
double number(int rank, std::int64_t i) { return static_cast<double>((i * 7 + rank * 3) % 11 - 5); }

double sum_of_numbers(int size, std::int64_t i) {
  double sum = 0;
  for (int r = 0; r < size; ++r) sum += number(r, i);
  return sum;
}

double max_of_numbers(int size, std::int64_t i) {
  double max = number(0, i);
  for (int r = 1; r < size; ++r) max = std::fmax(max, number(r, i));
  return max;
}

Status check_reductions(Device& device, Communicator& group, const CollectiveSize& size) {
  const auto mine = [&](std::int64_t i) { return number(group.rank(), i); };
  const auto sum = [&](std::int64_t i) { return sum_of_numbers(group.size(), i); };
  const Tensor added = tensor_of(device, size, mine), largest = tensor_of(device, size, mine);
  group.all_reduce(added, ReduceOp::kSum, test::kTest);
  group.all_reduce(largest, ReduceOp::kMax, test::kTest);
  TPSIM_TRY_STATUS(expect(device, group, "sum", added, sum));
  TPSIM_TRY_STATUS(expect(device, group, "max", largest,
                          [&](std::int64_t i) { return max_of_numbers(group.size(), i); }));

  const CollectiveSize whole{size.elements * group.size(), size.dtype};
  const std::int64_t first = group.rank() * size.elements;
  const auto my_sum = [&](std::int64_t i) { return sum(first + i); };
  const Tensor all = tensor_of(device, whole, mine), part = tensor_of(device, size, mine);
  group.reduce_scatter(all, part, test::kTest);
  TPSIM_TRY_STATUS(expect(device, group, "reduce_scatter", part, my_sum));
  const Tensor inside = tensor_of(device, whole, mine);
  group.reduce_scatter(inside, inside.slice(first, size.elements), test::kTest);
  return expect(device, group, "reduce_scatter in place", inside.slice(first, size.elements),
                my_sum);
}

// Several non-blocking reductions in flight, with ops on other tensors between them.
Status check_reductions_beside(Device& device, Communicator& group, const CollectiveSize& size) {
  const auto mine = [&](std::int64_t i) { return number(group.rank(), i); };
  const auto sum = [&](std::int64_t i) { return sum_of_numbers(group.size(), i); };
  const CollectiveSize whole{size.elements * group.size(), size.dtype};
  const std::int64_t first = group.rank() * size.elements;
  const auto my_sum = [&](std::int64_t i) { return sum(first + i); };
  for (int round = 0; round < 2; ++round) {
    const Tensor added = tensor_of(device, size, mine), largest = tensor_of(device, size, mine);
    const Tensor all = tensor_of(device, whole, mine), part = tensor_of(device, size, mine);
    const Tensor inside = tensor_of(device, whole, mine);
    const Tensor other = tensor_of(device, size, mine);
    group.begin_all_reduce(added, ReduceOp::kSum, test::kTest);
    for (int i = 0; i < 3; ++i) device.run(Fill{other, 2.0F, test::kTest});
    group.begin_reduce_scatter(all, part, test::kTest);
    group.begin_all_reduce(largest, ReduceOp::kMax, test::kTest);
    device.run(Fill{other, 3.0F, test::kTest});
    group.begin_reduce_scatter(inside, inside.slice(first, size.elements), test::kTest);
    group.finish();
    TPSIM_TRY_STATUS(expect(device, group, "sum beside ops", added, sum));
    TPSIM_TRY_STATUS(expect(device, group, "max beside ops", largest,
                            [&](std::int64_t i) { return max_of_numbers(group.size(), i); }));
    TPSIM_TRY_STATUS(expect(device, group, "reduce_scatter beside ops", part, my_sum));
    TPSIM_TRY_STATUS(expect(device, group, "reduce_scatter in place beside ops",
                            inside.slice(first, size.elements), my_sum));
  }
  return Ok{};
}

Status check_copies(Device& device, Communicator& group, const CollectiveSize& size) {
  const CollectiveSize whole{size.elements * group.size(), size.dtype};
  const auto gathered = [&](std::int64_t i) {
    return number(static_cast<int>(i / size.elements), i % size.elements);
  };
  const auto mine = [&](std::int64_t i) { return number(group.rank(), i); };
  const auto nothing = [](std::int64_t) { return -9.0; };
  const Tensor part = tensor_of(device, size, mine), all = tensor_of(device, whole, nothing);
  group.all_gather(part, all, test::kTest);
  TPSIM_TRY_STATUS(expect(device, group, "all_gather", all, gathered));
  const std::int64_t first = group.rank() * size.elements;
  const Tensor inside = tensor_of(device, whole, [&](std::int64_t i) {
    return i / size.elements == group.rank() ? mine(i % size.elements) : -9.0;
  });
  group.all_gather(inside.slice(first, size.elements), inside, test::kTest);
  TPSIM_TRY_STATUS(expect(device, group, "all_gather in place", inside, gathered));

  // Part r sent by rank q has the numbers of (q, r).
  const auto sent = [&](std::int64_t from, std::int64_t i) {
    return number(static_cast<int>(from), i % size.elements + 5 * (i / size.elements));
  };
  const Tensor outgoing =
      tensor_of(device, whole, [&](std::int64_t i) { return sent(group.rank(), i); });
  const Tensor incoming = tensor_of(device, whole, nothing);
  group.all_to_all(outgoing, incoming, test::kTest);
  const auto arrived = [&](std::int64_t i) {
    return sent(i / size.elements, group.rank() * size.elements + i % size.elements);
  };
  if (group.size() > 1) {
    TPSIM_TRY_STATUS(expect(device, group, "all_to_all", incoming, arrived));
  }

  const int root = group.size() - 1;
  const Tensor copy = tensor_of(device, size, mine);
  group.broadcast(copy, root, test::kTest);
  return expect(device, group, "broadcast", copy, [&](std::int64_t i) { return number(root, i); });
}

}  // namespace

Status check_collectives(Device& device, Communicator& group, const CollectiveSize& size) {
  TPSIM_TRY_STATUS(check_reductions(device, group, size));
  TPSIM_TRY_STATUS(check_reductions_beside(device, group, size));
  return check_copies(device, group, size);
}

Status check_messages(Device& device, Communicator& group) {
  const int next = (group.rank() + 1) % group.size();
  const int previous = (group.rank() + group.size() - 1) % group.size();
  const CollectiveSize sizes[] = {{1}, {100'000, DType::kBFloat16}, {3, DType::kInt32}, {65'537}};
  for (const CollectiveSize& size : sizes) {
    group.send(tensor_of(device, size, [&](std::int64_t i) { return number(group.rank(), i); }),
               next, test::kTest);
  }
  for (const CollectiveSize& size : sizes) {
    const Tensor x = tensor_of(device, size, [](std::int64_t) { return 9.0; });
    group.receive(x, previous, test::kTest);
    TPSIM_TRY_STATUS(
        expect(device, group, "message", x, [&](std::int64_t i) { return number(previous, i); }));
  }
  return Ok{};
}

Tensor filled(Device& device, std::int64_t elements, float value) {
  return tensor_of(device, {elements}, [=](std::int64_t) { return static_cast<double>(value); });
}

std::vector<float> floats_of(Device& device, const Tensor& x) {
  std::vector<float> values(static_cast<std::size_t>(x.elements()));
  device.download(x, std::as_writable_bytes(std::span(values)));
  return values;
}

Tensor awkward_sum(Device& device, int rank, std::int64_t elements) {
  const std::uint64_t key = stream_key(1, static_cast<std::uint64_t>(rank));
  return tensor_of(device, {elements}, [=](std::int64_t i) {
    return std::exp(8.0 * normal_at(key, static_cast<std::uint64_t>(i))) *
           ((i + rank) % 2 == 0 ? 1.0 : -1.0);
  });
}

}  // namespace tpsim
