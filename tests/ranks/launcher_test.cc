// Detection of the launcher from environment variables.
#include "ranks/launcher.h"

#include <catch2/catch.hpp>

#include "tests/ranks/environment.h"

namespace tpsim {
TEST_CASE("a task of several without MPI is detected, the shell of a batch script is none") {
  const auto task = lone_task(environment({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}}));
  REQUIRE(task);
  CHECK(task->launcher == "srun");
  CHECK(task->rank == 3);
  CHECK(task->size == 4);
  CHECK(lone_task(environment({{"RANK", "1"}, {"WORLD_SIZE", "2"}}))->launcher == "torchrun");
  // torchrun, started on two nodes by srun, determines the rank.
  const auto inner = lone_task(environment(
      {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"RANK", "9"}, {"WORLD_SIZE", "16"}}));
  REQUIRE(inner);
  CHECK(inner->launcher == "torchrun");
  CHECK(inner->rank == 9);

  CHECK_FALSE(lone_task(environment({})));
  CHECK_FALSE(lone_task(environment({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}})));
  CHECK_FALSE(lone_task(environment({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}})));
  for (const char* plug_in : {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"}) {
    CHECK_FALSE(lone_task(
        environment({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}, {plug_in, "3"}})));
  }
}

TEST_CASE("the timeout of collectives is a number of seconds") {
  CHECK(collective_patience(environment({}))->count() == 600);
  CHECK(collective_patience(environment({{"TPSIM_TIMEOUT", "5"}}))->count() == 5);
  for (const char* text : {"", "0", "-1", "5s", "1e3", "99999999999"}) {
    const auto refused = collective_patience(environment({{"TPSIM_TIMEOUT", text}}));
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().where == "TPSIM_TIMEOUT");
  }
}

}  // namespace tpsim
