// One rank of a test under mpirun. "checks": collectives of the world and of smaller groups give
// the right results, and sums have the bits of an addition in rank order. "failure": one rank fails
// while the others wait for it; the job must end. "hang": one rank stops, and the others must time
// out.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "kernels/cpu/cpu_device.h"
#include "ranks/launcher.h"
#include "ranks/mpi/mpi_world.h"
#include "ranks/reduce.h"
#include "tests/ranks/collective_checks.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

constexpr int kExitCode = 3;

// This rank and its neighbour in decreasing order, so that group ranks differ from world ranks.
std::vector<std::int64_t> pair_of(int rank) {
  const std::int64_t low = rank / 2 * 2;
  return {low + 1, low};
}

Status check_sum_in_rank_order(Device& device, Communicator& group, std::int64_t elements) {
  const Tensor sum = awkward_sum(device, group.rank(), elements);
  const Tensor beside = awkward_sum(device, group.rank(), elements);
  group.all_reduce(sum, ReduceOp::kSum, test::kTest);
  group.begin_all_reduce(beside, ReduceOp::kSum, test::kTest);
  group.finish();
  std::vector<Tensor> terms;
  std::vector<const void*> sources;
  for (int r = 0; r < group.size(); ++r) {
    terms.push_back(awkward_sum(device, r, elements));
    sources.push_back(terms.back().raw());
  }
  void* const result = terms[0].raw();
  reduce({DType::kFloat32, ReduceOp::kSum, 0, elements}, sources, {&result, 1});
  const std::vector<float> expected = floats_of(device, terms[0]);
  if (floats_of(device, sum) == expected && floats_of(device, beside) == expected) return Ok{};
  return Error{ErrorKind::kBug, "a sum has other bits than an addition in rank order", "", ""};
}

Status check_group(Device& device, Communicator& group) {
  for (const std::int64_t elements : {1, 7, 64, 5001}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      TPSIM_TRY_STATUS(check_collectives(device, group, {elements, dtype}));
    }
    TPSIM_TRY_STATUS(check_sum_in_rank_order(device, group, elements));
  }
  // Longer than one piece of a reduction.
  TPSIM_TRY_STATUS(check_collectives(device, group, {600'001, DType::kBFloat16}));
  TPSIM_TRY_STATUS(check_sum_in_rank_order(device, group, 1'100'001));
  return check_messages(device, group);
}

Status checks(World& world) {
  TPSIM_TRY(const auto device, CpuDevice::create());
  const auto everyone = world.communicator(*device, GroupKind::kWorld, all_ranks(world));
  TPSIM_TRY_STATUS(check_group(*device, *everyone));
  const auto pair = world.communicator(*device, GroupKind::kTensor, pair_of(world.rank()));
  return check_group(*device, *pair);
}

Status failure(World& world) {
  TPSIM_TRY(const auto device, CpuDevice::create());
  const auto group = world.communicator(*device, GroupKind::kWorld, all_ranks(world));
  const Tensor x = filled(*device, 1000, 1);
  group->send(x, (world.rank() + 1) % world.size(), test::kTest);
  if (world.rank() == 1) return Error{ErrorKind::kDoesNotFit, "told to fail", "", ""};
  group->all_reduce(x, ReduceOp::kSum, test::kTest);
  return Ok{};
}

Status hang(World& world) {
  TPSIM_TRY(const auto device, CpuDevice::create());
  const auto group = world.communicator(*device, GroupKind::kWorld, all_ranks(world));
  while (world.rank() == 1) ::pause();
  group->all_to_all(filled(*device, 8, 1), filled(*device, 8, 1), test::kTest);
  return Ok{};
}

// This rank's body of the test named on the command line.
RankBody body_of(std::string_view test) {
  if (test == "hang") return hang;
  return test == "failure" ? failure : checks;
}

int report(const Error& error) {
  std::fprintf(stderr, "%s\n", to_string(error).c_str());
  return kExitCode;
}

}  // namespace
}  // namespace tpsim

int main(int argc, char** argv) {
  if (argc != 2 || !tpsim::started_by_mpi_launcher()) {
    std::fprintf(stderr, "usage: mpirun -n RANKS %s checks|failure|hang\n", argv[0]);
    return 2;
  }
  const tpsim::Status status = tpsim::run_under_mpi(tpsim::body_of(argv[1]), tpsim::report);
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
