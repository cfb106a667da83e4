#include "kernels/mpi/mpi_world.h"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "kernels/mpi/mpi_communicator.h"

namespace tpsim {
namespace {

class MpiWorld final : public World {
 public:
  MpiWorld() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<Communicator> communicator(Device& device, GroupKind group,
                                             const std::vector<std::int64_t>& members) override {
    TPSIM_CHECK(std::find(members.begin(), members.end(), rank_) != members.end(),
                "a rank forms groups that it belongs to");
    const std::vector<int> ranks(members.begin(), members.end());
    MPI_Group world_group, some;
    MPI_Comm_group(MPI_COMM_WORLD, &world_group);
    MPI_Group_incl(world_group, static_cast<int>(ranks.size()), ranks.data(), &some);
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_create_group(MPI_COMM_WORLD, some, 0, &comm);
    MPI_Group_free(&some);
    MPI_Group_free(&world_group);
    return std::make_unique<MpiCommunicator>(device, group, comm);
  }

 private:
  int rank_ = 0;
  int size_ = 1;
};

// Long enough for the report of the rank that speaks to end this process in its sleep.
std::chrono::milliseconds patience_of(int rank, bool thrown_out) {
  if (thrown_out) return std::chrono::seconds(10);
  return std::chrono::milliseconds(rank == 0 ? 0 : 500 + 10 * std::min(rank, 100));
}

void end_job(int rank, Error error, const std::function<int(const Error&)>& report) {
  if (rank != 0) error.message = fmt::format("rank {}: {}", rank, error.message);
  MPI_Abort(MPI_COMM_WORLD, report(error));
}

}  // namespace

std::unique_ptr<World> mpi_world() { return std::make_unique<MpiWorld>(); }

Status run_under_mpi(const RankBody& body, const std::function<int(const Error&)>& report) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MpiWorld world;
  bool thrown_out = false;
  const Status status = outcome_of(world, [&](World& ranks) {
    try {
      return body(ranks);
    } catch (const CommunicatorAborted&) {
      thrown_out = true;
      throw;
    }
  });
  if (!status) {
    std::this_thread::sleep_for(patience_of(world.rank(), thrown_out));
    end_job(world.rank(), status.error(), report);
  }
  MPI_Finalize();
  return Ok{};
}

}  // namespace tpsim
