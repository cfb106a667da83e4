// Training runs that are killed, stopped, or meet a full disk or a damaged file. The run prints one
// message, and the next start continues with the losses of an undisturbed run.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/cli/saved_runs.h"

namespace tpsim::test {
namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE("killed ranks end the run with one message, and the next start continues") {
  const Folder folder;
  Process run(tpsim_run(saving(folder) + kForever));
  REQUIRE(run.prints("\"step\": 8,"));
  const std::vector<pid_t> ranks = run.descendants("tpsim");
  REQUIRE(ranks.size() == 1);
  ::kill(ranks.front(), SIGKILL);
  const Finished killed = run.finish();
  CHECK(killed.code == 128 + SIGKILL);
  CHECK(count_of(killed.err, "\n") == 1);
  CHECK(killed.err.find("ended by signal 9") != std::string::npos);
  check_goes_on(folder, steps_of(killed.out));
}

TEST_CASE("killing tpsim ends all ranks, and the next start continues") {
  const Folder folder;
  Process run(tpsim_run(saving(folder) + kForever));
  REQUIRE(run.prints("\"step\": 5,"));
  ::kill(run.pid(), SIGKILL);
  const Finished killed = run.finish();
  CHECK(killed.code == 128 + SIGKILL);
  check_goes_on(folder, steps_of(killed.out));
}

TEST_CASE("a killed rank of mpirun ends the job, and the next start continues", "[mpirun]") {
  const Folder folder;
  Process run(under_mpirun(kRanks, saving(folder) + kForever));
  REQUIRE(run.prints("\"step\": 8,"));
  const std::vector<pid_t> ranks = run.descendants("tpsim-mpi");
  REQUIRE(ranks.size() == kRanks);
  ::kill(ranks.back(), SIGKILL);
  const Finished killed = run.finish();
  CHECK(killed.code == 128 + SIGKILL);
  INFO(killed.err);
  CHECK(count_of(killed.err, "tpsim: ") == 1);
  CHECK(killed.err.find("tpsim: error: the process of rank ") != std::string::npos);
  CHECK(killed.err.find(" ended by signal 9") != std::string::npos);
  check_goes_on(folder, steps_of(killed.out));
}

TEST_CASE("a rank of mpirun that hangs times out, and the next start continues", "[mpirun]") {
  const Folder folder;
  Process run("export TPSIM_TIMEOUT=5; " + under_mpirun(kRanks, saving(folder) + kForever));
  REQUIRE(run.prints("\"step\": 5,"));
  const std::vector<pid_t> ranks = run.descendants("tpsim-mpi");
  REQUIRE(ranks.size() == kRanks);
  ::kill(ranks.back(), SIGSTOP);
  const Finished given_up = run.finish();
  INFO(given_up.err);
  CHECK(given_up.code == 4);
  CHECK(count_of(given_up.err, "tpsim: ") == 1);
  CHECK(given_up.err.find("another rank has not answered for 5 s (") != std::string::npos);
  check_goes_on(folder, steps_of(given_up.out));
}

TEST_CASE("a run without GPU ends with a message and exit code 4, under launchers too") {
  const std::string arguments =
      golden_arguments("bloom-tiny") + kLayout + "--steps 1 --device cuda";
  const Finished alone = run(tpsim_run(arguments));
  if (alone.code != 4) return;  // this machine has several GPUs
  CHECK(count_of(alone.err, "\n") == 1);
  const std::string as_rank =
      "env WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29811 LOCAL_RANK=0 RANK=";
  CHECK(run(as_rank + "0 " + tpsim_run(arguments)).code == 4);
  CHECK(run(as_rank + "1 " + tpsim_run(arguments)).code == 4);
}

TEST_CASE("ranks of mpirun without a GPU print one message", "[mpirun]") {
  const std::string arguments =
      golden_arguments("bloom-tiny") + kLayout + "--steps 1 --device cuda";
  const Finished ranks = run(under_mpirun(kRanks, arguments));
  if (ranks.code != 4) return;
  CHECK(count_of(ranks.err, "tpsim: error: ") == 1);
}

TEST_CASE("runs that CUDA graphs cannot record are refused by name") {
  const std::string graphs = golden_arguments("bloom-tiny") + "--steps 1 --cuda-graphs ";
  const Finished ranks = run(tpsim_run(graphs + kLayout));
  CHECK(ranks.code == 2);
  CHECK(ranks.err.find("collectives or P2P between ranks") != std::string::npos);
  const std::string one_rank = graphs + "--micro-batch 2 --global-batch 4 ";
  const Finished timed = run(tpsim_run(one_rank));
  CHECK(timed.code == 2);
  CHECK(timed.err.find("time single ops") != std::string::npos);
  const std::size_t json = one_rank.find("--json");
  const Finished cpu = run(tpsim_run(one_rank.substr(0, json) + one_rank.substr(json + 6)));
  CHECK(cpu.code == 2);
  CHECK(cpu.err.find("CUDA graphs need a GPU") != std::string::npos);
}

TEST_CASE("overlap with GEMMs that is only predicted is refused by name") {
  const Finished refused =
      run(tpsim_run(golden_arguments("bloom-tiny") + "--steps 1 --tp 2 --tp-overlap userbuffers"));
  CHECK(refused.code == 2);
  CHECK(
      refused.err.find("--tp-overlap: userbuffers can be predicted, but tpsim cannot execute it") !=
      std::string::npos);
}

TEST_CASE("a run saves its state on SIGTERM and SIGINT, and the next start continues") {
  for (const int signal : {SIGTERM, SIGINT}) {
    const Folder folder;
    Process run(tpsim_run(saving(folder) + kForever));
    REQUIRE(run.prints("\"step\": 4,"));
    ::kill(run.pid(), signal);
    const Finished stopped = run.finish();
    CHECK(stopped.code == 128 + signal);
    CHECK(count_of(stopped.err, "tpsim: error: stopped by") == 1);
    const std::vector<Step> steps = steps_of(stopped.out);
    CHECK(step_of(states(folder).back()) == steps.back().number);
    CHECK(stopped.out.find("\"completed\": false") != std::string::npos);
    check_goes_on(folder, steps);
  }
}

TEST_CASE("a state that is damaged or cut off is named and skipped") {
  const Folder folder;
  const std::vector<Step> before = trained(tpsim_run(saving(folder) + steps_up_to(6)));
  REQUIRE(states(folder).size() == 2);
  const fs::path newest = states(folder).back();
  const fs::path file = newest / "rank-00001.safetensors";
  SECTION("a byte is another") {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(-5, std::ios::end).put('\x7f');
  }
  SECTION("a file is cut off") { fs::resize_file(file, fs::file_size(file) / 2); }
  SECTION("a file is missing") { fs::remove(file); }
  const Finished next = run(tpsim_run(saving(folder) + steps_up_to(8)));
  CHECK(next.code == 0);
  CHECK(next.err.find(file.string()) != std::string::npos);
  CHECK(steps_of(next.out).front().number == 4);
  check_goes_on(folder, before);
}

TEST_CASE("a state without its manifest is incomplete") {
  const Folder folder;
  const std::vector<Step> before = trained(tpsim_run(saving(folder) + steps_up_to(6)));
  const fs::path newest = states(folder).back();
  fs::remove(newest / "manifest.json");
  // The files of a run that died while it wrote a state.
  fs::create_directories(folder / "state" / ".step-00000009");
  fs::copy(states(folder).front(), folder / "state" / ".step-00000009",
           fs::copy_options::recursive);
  const std::vector<Step> next = trained(tpsim_run(saving(folder) + steps_up_to(7)));
  CHECK(next.front().number == 4);
  check_goes_on(folder, before);
}

TEST_CASE("a run is refused if none of its saved states is complete") {
  const Folder folder;
  trained(tpsim_run(saving(folder) + steps_up_to(3)));
  const fs::path file = states(folder).front() / "rank-00000.safetensors";
  fs::resize_file(file, 100);
  const Finished refused = run(tpsim_run(saving(folder) + steps_up_to(6)));
  CHECK(refused.code == 2);
  CHECK(refused.err.find(file.string()) != std::string::npos);
  CHECK(count_of(refused.err, "tpsim: error") == 1);
}

// Arguments of a small model without checkpoint, with saved state.
std::string saved_by(const Folder& folder, const std::string& more, const std::string& model) {
  return std::string("--model ") + TPSIM_SOURCE_DIR + "/tests/golden/" + model +
         "/config.json --micro-batch 1 --global-batch 2 --save-every 1 --state " +
         (folder / "state").string() + " --json " + more;
}

TEST_CASE("differences from the run that saved a state are listed, another model is refused") {
  const Folder folder;
  const auto started = [&](const std::string& more, const std::string& model = "llama-tiny") {
    return run(tpsim_run(saved_by(folder, more, model)));
  };
  REQUIRE(started("--steps 1 --seq 16 --dtype fp32 --lr 1e-4 --seed 1").code == 0);
  const Finished same = started("--steps 2 --seq 16 --dtype fp32 --lr 1e-4 --seed 1");
  CHECK(same.code == 0);
  CHECK(same.err.find("differs from the run that saved the state") == std::string::npos);
  const Finished other = started("--steps 3 --seq 8 --dtype bf16 --lr 5 --seed 99");
  CHECK(other.code == 0);
  for (const char* difference : {"lr was 0.0001 and is now 5", "seed was 1 and is now 99",
                                 "dtype was fp32 and is now bf16", "seq was 16 and is now 8"}) {
    CHECK(other.err.find(difference) != std::string::npos);
  }
  const Finished refused = started("--steps 4 --seq 16 --dtype fp32", "bloom-tiny");
  CHECK(refused.code == 2);
  CHECK(refused.err.find("of another model") != std::string::npos);
  CHECK(count_of(refused.err, "tpsim: error") == 1);
}

TEST_CASE("saving next to newer, damaged states loses no complete state") {
  const Folder folder;
  const std::vector<Step> before = trained(tpsim_run(saving(folder) + steps_up_to(3)));
  for (const char* name : {"step-00000098", "step-00000099"}) {
    fs::create_directories(folder / "state" / name);
    std::ofstream(folder / "state" / name / "manifest.json") << "{}";
  }
  const Finished next = run(tpsim_run(saving(folder) + steps_up_to(6)));
  CHECK(next.code == 0);
  const Finished after = run(tpsim_run(saving(folder) + steps_up_to(7)));
  INFO(after.err);
  CHECK(after.code == 0);
  CHECK(steps_of(after.out).front().number == 7);
}

TEST_CASE("a full disk is reported once, with no state lost and no files left") {
  const Folder folder;
  const std::vector<Step> before = trained(tpsim_run(saving(folder) + steps_up_to(4)));
  // Writing more than this size, in KiB, fails.
  const Finished full = run("ulimit -f 100; " + tpsim_run(saving(folder) + steps_up_to(9)));
  INFO(full.err);
  CHECK(full.code == 2);
  CHECK(count_of(full.err, "tpsim: error") == 1);
  CHECK(full.err.find("File too large") != std::string::npos);
  CHECK(full.err.find((folder / "state").string()) != std::string::npos);
  check_goes_on(folder, before);
}

// Without TCP the shared memory between processes would exceed the limit too.
TEST_CASE("ranks of mpirun that meet a full disk print one message and lose no state", "[mpirun]") {
  const Folder folder;
  const std::vector<Step> before = trained(tpsim_run(saving(folder) + steps_up_to(4)));
  const Finished full =
      run("exec mpirun --oversubscribe --allow-run-as-root --mca btl self,tcp -n " +
          std::to_string(kRanks) + " bash -c 'ulimit -f 100; " +
          tpsim_run(saving(folder) + steps_up_to(9)) + "'");
  INFO(full.err);
  CHECK(full.code == 2);
  CHECK(count_of(full.err, "tpsim: error") == 1);
  CHECK(full.err.find("File too large") != std::string::npos);
  check_goes_on(folder, before);
}

TEST_CASE("tasks that srun started without MPI are refused once", "[mpirun]") {
  const std::string step = "unset PMIX_RANK PMI_RANK; export SLURM_STEP_NUM_TASKS=2 ";
  const std::string command = tpsim_run(golden_arguments("bloom-tiny") + kLayout + "--steps 1");
  const Finished first = run(step + "SLURM_PROCID=0; " + command);
  CHECK(first.code == 4);
  CHECK(count_of(first.err, "tpsim: error: srun started 2 processes") == 1);
  const Finished second = run(step + "SLURM_PROCID=1; " + command);
  CHECK(second.code == 4);
  CHECK(second.err.empty());
  // An srun plug-in that this MPI does not support.
  const Finished deaf = run(step + "PMI_SIZE=2 PMI_RANK=0; " + command);
  CHECK(deaf.code == 4);
  CHECK(count_of(deaf.err, "tpsim: error: 2 processes were started, but MPI did not") == 1);
  // The shell of a batch script has the job's number of tasks in its environment and starts none of
  // them.
  const Finished batch = run("export SLURM_NTASKS=2 SLURM_PROCID=0; " + command);
  CHECK(batch.code == 0);
}

TEST_CASE("an error of the first rank of mpirun is printed once and ends all ranks", "[mpirun]") {
  const Finished refused = run(under_mpirun(
      kRanks, golden_arguments("bloom-tiny") + kLayout + "--save-every 1 --state /dev/null/state"));
  INFO(refused.err);
  CHECK(refused.code == 2);
  CHECK(count_of(refused.err, "tpsim: error") == 1);
  CHECK(refused.err.find("/dev/null/state: cannot create the folder") != std::string::npos);
}

TEST_CASE("training continues from a saved state in another layout") {
  const Folder folder;
  const std::string common = golden_arguments("bloom-tiny") + "--global-batch 8 --save-every 6 " +
                             "--state " + (folder / "state").string() + " ";
  std::vector<Step> steps = trained(tpsim_run(common + "--tp 2 --pp 2 --steps 6"));
  const std::vector<Step> rest = trained(tpsim_run(common + "--tp 1 --dp 4 --zero 1 --steps 12"));
  steps.insert(steps.end(), rest.begin(), rest.end());
  const std::vector<Step> undisturbed =
      trained(tpsim_run(golden_arguments("bloom-tiny") + "--global-batch 8 --steps 12"));
  REQUIRE(steps.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) {
    CHECK(steps[i].loss == Approx(undisturbed[i].loss).epsilon(1e-5));
  }
}

}  // namespace tpsim::test
