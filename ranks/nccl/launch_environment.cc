#include "ranks/nccl/launch_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "ranks/nccl/text_server.h"

namespace tpsim {
namespace {

constexpr int kDefaultPort = 29517;
// Range of default ports, selected by the job number: jobs that share a node need different ports.
// The range is below the ephemeral ports (32768 and up).
constexpr int kJobPorts = 20000, kJobPortCount = 9000;

Result<int> number(const Environment& environment, const char* name, int fallback) {
  const std::optional<std::string> text = environment(name);
  if (!text) return fallback;
  const std::optional<int> value = whole_number(text);
  if (value && *value >= 0) return *value;
  return bad_input(fmt::format("'{}' is not a whole number of at least 0", *text), name);
}

// Returns the default port, derived from Slurm's job and step numbers; kDefaultPort without Slurm.
int port_of_job(const Environment& environment) {
  const std::optional<int> job = whole_number(environment("SLURM_JOB_ID"));
  if (!job || *job < 0) return kDefaultPort;
  const int step = whole_number(environment("SLURM_STEP_ID")).value_or(0);
  const std::int64_t number = std::int64_t{*job} * 16 + std::max(step, 0) % 16;
  return kJobPorts + static_cast<int>(number % kJobPortCount);
}

// Returns TPSIM_PORT if set, else MASTER_PORT + 1, else the job's default port.
Result<int> port_of(const Environment& environment) {
  constexpr int kMostPort = 65535;
  const bool given = environment("TPSIM_PORT").has_value();
  const char* name = given ? "TPSIM_PORT" : "MASTER_PORT";
  const int most = given ? kMostPort : kMostPort - 1;
  TPSIM_TRY(const int port, number(environment, name, port_of_job(environment) - 1));
  if (port >= 1 && port <= most) return given ? port : port + 1;
  return bad_input(
      fmt::format("{} is not a valid port; the port must be from 1 to {}", port, most), name,
      given ? "" : "tpsim uses the port MASTER_PORT + 1; set TPSIM_PORT to use another port");
}

Result<std::string> address_of(const Environment& environment, const LauncherVariables& names,
                               int size) {
  if (const auto given = environment("MASTER_ADDR")) return *given;
  for (const char* list : {"SLURM_STEP_NODELIST", "SLURM_NODELIST"}) {
    if (const auto nodes = environment(list)) return first_host(*nodes);
  }
  if (names.local_size != nullptr) {
    TPSIM_TRY(const int local_size, number(environment, names.local_size, 0));
    if (local_size == size) return std::string("127.0.0.1");
  }
  return bad_input(
      "no environment variable gives the address of rank 0", "MASTER_ADDR",
      "set MASTER_ADDR to the host of rank 0, or TPSIM_RENDEZVOUS to an empty shared folder");
}

// Returns the secret of the job. It is equal on all ranks of a job and different for other jobs.
std::string token_of(const Environment& environment, int size) {
  if (const auto given = environment("TPSIM_TOKEN")) return *given;
  std::string token = fmt::format("tpsim/{}", size);
  for (const char* name : {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE",
                           "OMPI_MCA_ess_base_jobid"}) {
    token += "/" + environment(name).value_or("");
  }
  return token;
}

Result<Launch> read_launch(const Environment& environment, const LauncherVariables& names) {
  Launch launch;
  TPSIM_TRY(launch.rank, number(environment, names.rank, 0));
  TPSIM_TRY(launch.size, number(environment, names.size, 1));
  TPSIM_TRY(launch.local_rank, number(environment, names.local_rank, 0));
  if (launch.rank >= launch.size) {
    return bad_input(
        fmt::format("rank {} must be below the number of ranks, {}", launch.rank, launch.size),
        names.rank);
  }
  launch.folder = environment("TPSIM_RENDEZVOUS").value_or("");
  launch.under_mpi = environment("TPSIM_UNDER_MPI").has_value();
  if (!launch.folder.empty() || launch.size == 1) return launch;
  TPSIM_TRY(launch.address, address_of(environment, names, launch.size));
  TPSIM_TRY(launch.port, port_of(environment));
  launch.bind = environment("TPSIM_BIND").value_or(launch.address);
  launch.token = token_of(environment, launch.size);
  if (launch.token.empty() || launch.token.size() > kLongestToken) {
    return bad_input(fmt::format("the token must have 1 to {} characters", kLongestToken),
                     "TPSIM_TOKEN");
  }
  return launch;
}

}  // namespace

std::string first_host(const std::string& node_list) {
  std::string host;
  for (std::size_t at = 0; at < node_list.size() && node_list[at] != ',';) {
    const std::size_t bracket = std::min(node_list.find_first_of(",[", at), node_list.size());
    host += node_list.substr(at, bracket - at);
    if (bracket == node_list.size() || node_list[bracket] == ',') break;
    const std::size_t first_end =
        std::min(node_list.find_first_of(",-]", bracket), node_list.size());
    host += node_list.substr(bracket + 1, first_end - bracket - 1);
    at = std::min(node_list.find(']', bracket), node_list.size() - 1) + 1;
  }
  return host;
}

Result<std::optional<Launch>> launch_from(const Environment& environment) {
  for (const LauncherVariables& names : launchers()) {
    if (!environment(names.rank) || !environment(names.size)) continue;
    TPSIM_TRY(const Launch launch, read_launch(environment, names));
    if (launch.size > 1) return std::optional<Launch>(launch);
  }
  return std::optional<Launch>();
}

}  // namespace tpsim
