// tpsim-mpi: `tpsim run`, `profile` or `validate` as one process of an MPI job. A separate program,
// so that planning does not need MPI. Under mpirun, tpsim replaces itself by tpsim-mpi.
#include <cstdlib>
#include <string>

#include "cli/commands/program.h"
#include "core/base/standard_streams.h"
#include "ranks/mpi/mpi_world.h"

namespace {

// Sets the rendezvous variables (RANK, WORLD_SIZE, ...) with which GPU ranks initialize NCCL. Keeps
// variables that the user has set.
void tell_where_to_meet(const tpsim::MpiPlace& place) {
  const auto set = [](const char* name, const std::string& value) {
    setenv(name, value.c_str(), /*overwrite=*/0);
  };
  set("RANK", std::to_string(place.rank));
  set("WORLD_SIZE", std::to_string(place.size));
  set("LOCAL_RANK", std::to_string(place.local_rank));
  set("MASTER_ADDR", place.first_host);
  set("TPSIM_PORT", std::to_string(place.free_port));
  set("TPSIM_TOKEN", place.token);
  set("TPSIM_UNDER_MPI", "1");
}

}  // namespace

int main(int argc, char** argv) {
  tpsim::hold_standard_streams();
  const auto body = [&](tpsim::World&) -> tpsim::Status {
    tell_where_to_meet(tpsim::mpi_place());
    TPSIM_TRY(const auto line, tpsim::cli::parse_command_line(argc, argv));
    return tpsim::cli::run_program(line);
  };
  return tpsim::run_under_mpi(
             body,
             [](const tpsim::Error& error) {
               return tpsim::cli::report(error);
             }).ok()
             ? 0
             : 1;
}
