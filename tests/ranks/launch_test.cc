// Launch variables and rendezvous of processes, without GPU.
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <thread>

#include "ranks/nccl/launch_environment.h"
#include "ranks/nccl/rendezvous.h"
#include "tests/ranks/environment.h"
#include "tests/temporary_folder.h"

namespace tpsim {
namespace {

Launch launched(const std::map<std::string, std::string>& variables) {
  const auto launch = launch_from(environment(variables));
  REQUIRE(launch.ok());
  REQUIRE(launch->has_value());
  return **launch;
}

// All ranks read the value that rank 1 writes. Rank 0 stays until all have read it.
void check_meeting(Launch launch) {
  std::vector<std::string> got(3);
  const auto attend = [&got, launch](int rank, auto last) {
    Launch mine = launch;
    mine.rank = rank;
    const auto met = meet(mine);
    if (!met.ok()) return;
    if (rank == 1 && !(*met)->put("id-1", std::string("a\0b", 3)).ok()) return;
    const auto value = (*met)->get("id-1", std::chrono::seconds(20));
    if (value.ok()) got[static_cast<std::size_t>(rank)] = *value;
    last();
  };
  const auto nothing = [] {};
  std::thread two([&] { attend(2, nothing); });
  std::thread one([&] { attend(1, nothing); });
  attend(0, [&] {
    one.join();
    two.join();
  });
  for (std::thread* thread : {&one, &two}) {
    if (thread->joinable()) thread->join();
  }
  for (const std::string& value : got) CHECK(value == std::string("a\0b", 3));
}

}  // namespace

TEST_CASE("a process that no launcher started is alone") {
  for (const std::map<std::string, std::string>& variables :
       {std::map<std::string, std::string>{},
        {{"RANK", "0"}, {"WORLD_SIZE", "1"}},
        {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}},
        {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}}) {
    const auto launch = launch_from(environment(variables));
    REQUIRE(launch.ok());
    CHECK_FALSE(launch->has_value());
  }
}

TEST_CASE("each launcher's variables give the rank, the GPU and the rendezvous") {
  const Launch torchrun = launched({{"RANK", "5"},
                                    {"WORLD_SIZE", "16"},
                                    {"LOCAL_RANK", "1"},
                                    {"MASTER_ADDR", "10.0.0.7"},
                                    {"MASTER_PORT", "29400"}});
  CHECK(torchrun.rank == 5);
  CHECK(torchrun.size == 16);
  CHECK(torchrun.local_rank == 1);
  CHECK(torchrun.address == "10.0.0.7");
  CHECK(torchrun.port == 29401);

  const Launch slurm = launched({{"SLURM_PROCID", "9"},
                                 {"SLURM_STEP_NUM_TASKS", "16"},
                                 {"SLURM_LOCALID", "1"},
                                 {"SLURM_STEP_NODELIST", "gpu[07-09]"},
                                 {"TPSIM_PORT", "1234"}});
  CHECK(slurm.rank == 9);
  CHECK(slurm.address == "gpu07");
  CHECK(slurm.port == 1234);

  const Launch mpirun = launched({{"OMPI_COMM_WORLD_RANK", "3"},
                                  {"OMPI_COMM_WORLD_SIZE", "4"},
                                  {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}});
  CHECK(mpirun.local_rank == 3);
  CHECK(mpirun.address == "127.0.0.1");

  const Launch mpich = launched({{"PMI_RANK", "2"},
                                 {"PMI_SIZE", "8"},
                                 {"MPI_LOCALRANKID", "2"},
                                 {"MPI_LOCALNRANKS", "4"},
                                 {"MASTER_ADDR", "node1"}});
  CHECK(mpich.rank == 2);
  CHECK(mpich.local_rank == 2);
  CHECK(mpich.address == "node1");
}

TEST_CASE("invalid variables are errors with their name") {
  const std::map<std::string, std::string> several_nodes = {{"OMPI_COMM_WORLD_RANK", "3"},
                                                            {"OMPI_COMM_WORLD_SIZE", "8"},
                                                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  for (const auto& [variables, name] :
       {std::pair{std::map<std::string, std::string>{{"RANK", "x"}, {"WORLD_SIZE", "2"}},
                  std::string("RANK")},
        {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK"},
        {several_nodes, "MASTER_ADDR"}}) {
    const auto launch = launch_from(environment(variables));
    REQUIRE_FALSE(launch.ok());
    CHECK(launch.error().where == name);
  }
}

TEST_CASE("an invalid port is refused by name, before any connection") {
  const auto port_of = [](std::map<std::string, std::string> ports) {
    ports.insert({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}});
    return launch_from(environment(ports));
  };
  for (const auto& [name, port] : {std::pair<std::string, std::string>{"MASTER_PORT", "65535"},
                                   {"MASTER_PORT", "2147483647"},
                                   {"MASTER_PORT", "0"},
                                   {"TPSIM_PORT", "65536"},
                                   {"TPSIM_PORT", "99999"},
                                   {"TPSIM_PORT", "0"}}) {
    const auto launch = port_of({{name, port}});
    INFO(name << " " << port);
    REQUIRE_FALSE(launch.ok());
    CHECK(launch.error().where == name);
  }
  CHECK((*port_of({{"MASTER_PORT", "65534"}}))->port == 65535);
  CHECK((*port_of({{"TPSIM_PORT", "65535"}, {"MASTER_PORT", "65535"}}))->port == 65535);
}

TEST_CASE("the ranks of a job have one token, other jobs another") {
  const auto token_of = [](std::map<std::string, std::string> more) {
    more.insert({{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"RANK", "0"}});
    return launched(more).token;
  };
  CHECK(token_of({{"TPSIM_TOKEN", "secret"}}) == "secret");
  CHECK(token_of({{"TORCHELASTIC_RUN_ID", "a"}}) ==
        token_of({{"TORCHELASTIC_RUN_ID", "a"}, {"RANK", "1"}}));
  CHECK(token_of({{"TORCHELASTIC_RUN_ID", "a"}}) != token_of({{"TORCHELASTIC_RUN_ID", "b"}}));
  CHECK(token_of({{"SLURM_JOB_ID", "7"}}) != token_of({{"SLURM_JOB_ID", "8"}}));
  for (const std::string& token : {std::string(), std::string(300, 'x')}) {
    const auto refused = launch_from(environment(
        {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"TPSIM_TOKEN", token}}));
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().where == "TPSIM_TOKEN");
  }
}

TEST_CASE("jobs of Slurm that share a node use different ports") {
  const auto port_of = [](const char* job, const char* step) {
    return launched({{"SLURM_PROCID", "1"},
                     {"SLURM_STEP_NUM_TASKS", "2"},
                     {"SLURM_STEP_NODELIST", "gpu7"},
                     {"SLURM_JOB_ID", job},
                     {"SLURM_STEP_ID", step}})
        .port;
  };
  CHECK(port_of("4711", "0") == port_of("4711", "0"));
  CHECK(port_of("4711", "0") != port_of("4711", "1"));
  CHECK(port_of("4711", "0") != port_of("4712", "0"));
  for (const char* job : {"1", "4711", "2147483647"}) {
    CHECK(port_of(job, "0") >= 20000);
    CHECK(port_of(job, "0") < 29000);
  }
}

TEST_CASE("the first host of a node list") {
  CHECK(first_host("login1") == "login1");
  CHECK(first_host("a1,a2") == "a1");
  CHECK(first_host("gpu[007-012,015],login1") == "gpu007");
  CHECK(first_host("gpu[7,9]") == "gpu7");
  CHECK(first_host("rack[1-2]n3") == "rack1n3");
  CHECK(first_host("gpu[01-04]-ib,login1") == "gpu01-ib");
  CHECK(first_host("r[1,4]n[07-12]") == "r1n07");
  CHECK(first_host("gpu[7").substr(0, 3) == "gpu");  // not a Slurm list
}

TEST_CASE("ranks meet in a shared folder") {
  Launch launch;
  launch.size = 3;
  const test::TemporaryFolder folder;
  launch.folder = folder.path().string();
  check_meeting(launch);
}

TEST_CASE("ranks meet at rank 0's port") {
  Launch launch;
  launch.size = 3;
  launch.address = launch.bind = "127.0.0.1";
  launch.port = 29631;
  launch.token = "of this job";
  check_meeting(launch);
}

TEST_CASE("a missing key is an error after the timeout") {
  Launch launch;
  launch.folder = std::filesystem::temp_directory_path().string();
  const auto met = meet(launch);
  REQUIRE(met.ok());
  const auto value = (*met)->get("tpsim-nobody-puts-this", std::chrono::seconds(0));
  REQUIRE_FALSE(value.ok());
  CHECK(value.error().kind == ErrorKind::kMissing);
}

TEST_CASE("a failure of another rank ends the wait for a key before the timeout") {
  Launch launch;
  launch.folder = std::filesystem::temp_directory_path().string();
  const auto met = meet(launch);
  REQUIRE(met.ok());
  int asked = 0;
  const auto failure = [&] { return std::string(++asked < 2 ? "" : "rank 2: out of memory"); };
  const auto value = (*met)->get("tpsim-nobody-puts-this", std::chrono::hours(1), failure);
  REQUIRE_FALSE(value.ok());
  CHECK(value.error().message == "rank 2: out of memory");
  CHECK(asked == 2);
}

}  // namespace tpsim
