#include "ranks/mpi/mpi_world.h"

#include <fmt/format.h>
#include <mpi.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "core/base/check.h"
#include "ranks/launcher.h"
#include "ranks/mpi/mpi_values.h"
#include "ranks/mpi/mpi_watch.h"

namespace tpsim {
namespace {

// Returns a currently unused port.
int free_port() {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  socklen_t size = sizeof any;
  const bool known = bind(descriptor, reinterpret_cast<const sockaddr*>(&any), size) == 0 &&
                     getsockname(descriptor, reinterpret_cast<sockaddr*>(&any), &size) == 0;
  close(descriptor);
  return known ? ntohs(any.sin_port) : 0;
}

// Returns the delay before a rank reports its error. If another rank reports first, it ends this
// process within the delay.
std::chrono::milliseconds patience_of(int rank, bool thrown_out) {
  if (thrown_out) return std::chrono::seconds(10);
  return std::chrono::milliseconds(rank == 0 ? 0 : 500 + 10 * std::min(rank, 100));
}

Error with_rank(int rank, Error error) {
  if (rank != 0) error.message = fmt::format("rank {}: {}", rank, error.message);
  return error;
}

// Reports a timeout and ends the process. Runs on the watch's thread while another thread is inside
// MPI, so it must not call MPI. The launcher ends the job when this process exits.
void give_up(int rank, std::chrono::seconds patience, const std::string& what,
             const MpiErrorReport& report) {
  std::this_thread::sleep_for(patience_of(rank, false));
  const Error error{
      ErrorKind::kMissing,
      fmt::format("another rank has not answered for {} s ({})", patience.count(), what), "",
      "if that rank is only slow, set TPSIM_TIMEOUT to more seconds"};
  std::_Exit(report(with_rank(rank, error)));
}

}  // namespace

MpiPlace mpi_place() {
  MpiPlace place;
  place.rank = rank_in(MPI_COMM_WORLD);
  place.size = size_of_group(MPI_COMM_WORLD);
  MPI_Comm machine = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, place.rank, MPI_INFO_NULL, &machine);
  place.local_rank = rank_in(machine);
  MPI_Comm_free(&machine);
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  place.free_port = place.rank == 0 ? free_port() : 0;
  MPI_Bcast(host.data(), static_cast<int>(host.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_Bcast(&place.free_port, 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::array<unsigned, 4> secret{};
  TPSIM_CHECK(getentropy(secret.data(), sizeof secret) == 0, "random numbers for a token");
  MPI_Bcast(secret.data(), static_cast<int>(secret.size()), MPI_UNSIGNED, 0, MPI_COMM_WORLD);
  for (const unsigned word : secret) place.token += fmt::format("{:08x}", word);
  place.first_host = host.data();
  return place;
}

Status run_under_mpi(const RankBody& body, const MpiErrorReport& report) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  const std::unique_ptr<World> world = mpi_world();
  const auto patience = collective_patience(process_environment);
  std::optional<MpiWatch> watch;
  if (patience) {
    watch.emplace(*patience, [&](const std::string& what) {
      give_up(world->rank(), *patience, what, report);
    });
  }
  bool thrown_out = false;
  const Status status = outcome_of(*world, [&](World& ranks) -> Status {
    if (!patience) return patience.error();
    try {
      return body(ranks);
    } catch (const CommunicatorAborted&) {
      thrown_out = true;
      throw;
    }
  });
  if (!status) {
    std::this_thread::sleep_for(patience_of(world->rank(), thrown_out));
    MPI_Abort(MPI_COMM_WORLD, report(with_rank(world->rank(), status.error())));
  }
  const MpiCall call("the end of the job");
  MPI_Finalize();
  return Ok{};
}

}  // namespace tpsim
