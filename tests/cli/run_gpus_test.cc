// `tpsim` with ranks on GPUs, one process each: compared with PyTorch's float64 losses and
// gradients (tests/golden), and with injected faults. Needs as many GPUs as ranks, or a build with
// emulated GPUs.
#include <signal.h>

#include <catch2/catch.hpp>

#include "kernels/cuda/runtime/cuda_device.h"
#include "kernels/cuda/runtime/gpu_facts.h"
#include "tests/cli/golden_runs.h"

namespace tpsim::test {
namespace {

bool has_gpus(int count) {
  if (visible_gpus().gpus >= count) return true;
  WARN("left out: it takes " << count << " GPUs");
  return false;
}

struct Layout {
  int ranks;
  const char* arguments;
};

void check_layouts(const std::string& model, const std::string& dtype, double tolerance,
                   std::initializer_list<Layout> layouts) {
  for (const Layout& layout : layouts) {
    if (!has_gpus(layout.ranks)) continue;
    INFO(model << " " << dtype << " " << layout.arguments);
    const Folder folder;
    const auto gradients = folder / "gradients.safetensors";
    const std::string arguments = golden_arguments(model, "cuda", dtype) + layout.arguments +
                                  " --global-batch 8 --steps 3 --dump-gradients " +
                                  gradients.string();
    check_losses(model, 3, trained(under_mpirun(layout.ranks, arguments)), tolerance);
    if (dtype == "fp32") check_gradients(model, gradients);
  }
}

void check_given_up(Process& run) {
  const Finished given_up = run.finish();
  INFO(given_up.err);
  CHECK(given_up.code == 4);
  CHECK(given_up.err.find("another rank has stopped or hangs") != std::string::npos);
  CHECK(given_up.err.find("NCCL could not abort") == std::string::npos);
}

}  // namespace

TEST_CASE("ranks on GPUs follow PyTorch's losses and gradients of BLOOM in fp32", "[long]") {
  check_layouts("bloom-tiny", "fp32", 1e-5,
                {{6, "--tp 2 --pp 3 --dp 1 --zero 1 --micro-batch 1"},
                 {4, "--tp 2 --dp 2 --zero 2 --micro-batch 2"},
                 {4, "--tp 2 --pp 2 --sequence-parallel on --recompute full --micro-batch 4"},
                 {2, "--cp 2 --attention flash --micro-batch 4"}});
}

// The same layouts as on the CPU (run_layouts_test.cc).
TEST_CASE("8-bit GEMMs on GPUs follow PyTorch's losses under every layout", "[long]") {
  check_layouts("llama-tiny", "bf16", 3e-2,
                {{1, "--precision fp8-current --micro-batch 4"},
                 {4, "--precision fp8 --tp 2 --dp 2 --zero 3 --micro-batch 2"},
                 {4, "--precision fp8-block --tp 2 --dp 2 --zero 1 --micro-batch 2"}});
}

TEST_CASE("ranks on GPUs follow PyTorch's losses and gradients of LLaMA in fp32") {
  check_layouts("llama-tiny", "fp32", 1e-5,
                {{4, "--pp 2 --dp 2 --zero 3 --micro-batch 1"},
                 {2, "--pp 2 --virtual-stages 2 --schedule interleaved --micro-batch 1"},
                 {4, "--dp 4 --zero 3 --recompute selective --micro-batch 1"}});
}

TEST_CASE("ranks on GPUs follow PyTorch with an expert layout that differs from attention's") {
  check_layouts(
      "mixtral-tiny", "fp32", 1e-5,
      {{4, "--tp 2 --dp 2 --ep 4 --etp 1 --sequence-parallel on --zero 1 --micro-batch 2"},
       {4, "--tp 1 --dp 4 --ep 2 --etp 2 --micro-batch 2"}});
}

TEST_CASE("ranks on GPUs follow PyTorch's losses in bf16") {
  check_layouts("bloom-tiny", "bf16", 1e-2, {{4, "--tp 2 --pp 2 --attention flash"}});
  check_layouts("llama-tiny", "bf16", 1e-2, {{4, "--tp 2 --dp 2 --zero 1 --micro-batch 2"}});
}

namespace {

const std::string kOneAlgorithm = "export TPSIM_EMULATED_GPU=one-algorithm; ";

// Results are compared bit by bit only if GEMMs always use the same algorithm.
bool compares_bits() {
  if (!has_gpus(4)) return false;
  if (gpu_facts().name == "emulated GPU") return true;
  WARN("left out: two runs may choose other algorithms of products");
  return false;
}

const std::string kReduced = " --micro-batch 1 --global-batch 8 --zero ";

void check_reduced_replicas(const std::string& zero) {
  INFO("zero " << zero);
  CHECK(reduces_alike(2,
                      golden_arguments("llama-tiny", "cuda", "bf16") + "--dp 2" + kReduced + zero,
                      kOneAlgorithm));
}

void check_reduced_stages(const std::string& zero) {
  INFO("stages, zero " << zero);
  const std::string layout = "--pp 2 --dp 2" + kReduced + zero;
  CHECK(reduces_alike(4, golden_arguments("bloom-tiny", "cuda", "fp32") + layout, kOneAlgorithm));
}

std::string tensor_layout(const std::string& sequence_parallel) {
  return " --tp 2 --dp 2 --zero 1 --micro-batch 1 --global-batch 8 --sequence-parallel " +
         sequence_parallel;
}

void check_summed_beside(const std::string& sequence_parallel) {
  INFO("sums, sequence parallel " << sequence_parallel);
  CHECK(trains_alike(
      4, golden_arguments("llama-tiny", "cuda", "bf16") + tensor_layout(sequence_parallel),
      {"--tp-overlap none", "--tp-overlap reductions"}, kOneAlgorithm));
}

void check_overwritten(const std::string& sequence_parallel) {
  INFO("overwritten, sequence parallel " << sequence_parallel);
  CHECK(trains_alike(
      4, golden_arguments("bloom-tiny", "cuda", "bf16") + tensor_layout(sequence_parallel),
      {"--gradient-accumulation fused", "--gradient-accumulation overwriting"}, kOneAlgorithm));
}

}  // namespace

TEST_CASE("overlapping the gradient reduction with backward does not change a bit on GPUs") {
  if (!compares_bits()) return;
  check_reduced_stages("1");
}

TEST_CASE("neither overlapped sums nor overwritten gradients change a bit on GPUs") {
  if (!compares_bits()) return;
  check_summed_beside("on");
  check_overwritten("off");
}

TEST_CASE("neither overlap nor overwritten gradients change a bit, in more layouts", "[long]") {
  if (!compares_bits()) return;
  for (const std::string zero : {"0", "1", "2", "3"}) check_reduced_replicas(zero);
  for (const std::string zero : {"0", "2", "3"}) check_reduced_stages(zero);
  check_summed_beside("off");
  check_overwritten("on");
}

TEST_CASE("processes connect by environment variables, over a port or a folder") {
  if (!has_gpus(2)) return;
  const Folder folder;
  for (const std::string& meeting : {std::string("MASTER_ADDR=127.0.0.1 MASTER_PORT=29713"),
                                     "TPSIM_RENDEZVOUS=" + (folder / "meeting").string()}) {
    INFO(meeting);
    const std::string arguments =
        golden_arguments("bloom-tiny", "cuda", "fp32") + "--tp 2 --global-batch 8 --steps 1";
    const auto rank = [&](const std::string& number) {
      return "env WORLD_SIZE=2 RANK=" + number + " LOCAL_RANK=" + number + " " + meeting + " " +
             tpsim_run(arguments).substr(5);
    };
    Process second(rank("1"));
    check_losses("bloom-tiny", 1, trained(rank("0")), 1e-5);
    const Finished other = second.finish();
    CHECK(other.code == 0);
    CHECK(other.out.empty());
  }
}

TEST_CASE("tensor-parallel ranks with different GEMM algorithms route tokens as PyTorch does") {
  if (gpu_facts().name != "emulated GPU") return;
  const Folder folder;
  const std::string arguments =
      golden_arguments("mixtral-tiny", "cuda", "fp32") +
      "--tp 2 --sequence-parallel on --global-batch 8 --micro-batch 2 --steps 3";
  const auto rank = [&](const std::string& number, const std::string& algorithm) {
    return "env WORLD_SIZE=2 RANK=" + number + " LOCAL_RANK=" + number +
           " TPSIM_EMULATED_GPU=" + algorithm +
           " TPSIM_RENDEZVOUS=" + (folder / "meeting").string() + " " +
           tpsim_run(arguments).substr(5);
  };
  Process second(rank("1", "other-algorithm"));
  check_losses("mixtral-tiny", 3, trained(rank("0", "one-algorithm")), 1e-5);
  CHECK(second.finish().code == 0);
}

TEST_CASE("a killed rank on a GPU ends the job with one message, and the next start continues") {
  if (!has_gpus(2)) return;
  const Folder folder;
  const std::string arguments = golden_arguments("bloom-tiny", "cuda", "fp32") +
                                "--tp 2 --global-batch 8 --save-every 1 --state " +
                                (folder / "state").string() + " --steps ";
  Process run(under_mpirun(2, arguments + "1000000"));
  REQUIRE(run.prints("\"step\": 3,"));
  const std::vector<pid_t> ranks = run.descendants("tpsim-mpi");
  REQUIRE(ranks.size() == 2);
  ::kill(ranks.back(), SIGKILL);
  const Finished killed = run.finish();
  INFO(killed.err);
  CHECK(killed.code == 128 + SIGKILL);
  const std::string message = "tpsim: error: the process of rank ";
  const std::size_t first = killed.err.find(message);
  CHECK(first != std::string::npos);
  CHECK(killed.err.find("tpsim: ", first + message.size()) == std::string::npos);
  const std::int64_t last = steps_of(killed.out).back().number + 1;
  const std::vector<Step> after = trained(under_mpirun(2, arguments + std::to_string(last)));
  REQUIRE_FALSE(after.empty());
  CHECK(after.front().number > 1);
  check_losses("bloom-tiny", after.size(), after, 1e-5);
}

TEST_CASE("a rank on a GPU that hangs times out, also while the others wait for it") {
  if (!has_gpus(2)) return;
  for (const std::size_t hangs : {0, 1}) {
    Process run("export TPSIM_TIMEOUT=20; " +
                under_mpirun(2, golden_arguments("bloom-tiny", "cuda", "fp32") +
                                    "--tp 2 --global-batch 8 --steps 1000000"));
    REQUIRE(run.prints("\"step\": 1,"));
    const std::vector<pid_t> ranks = run.descendants("tpsim-mpi");
    REQUIRE(ranks.size() == 2);
    ::kill(ranks[hangs], SIGSTOP);
    check_given_up(run);
  }
}

// Collectives of the tensor group are then queued on the ops' stream after a receive that never
// completes.
TEST_CASE("ranks that wait in several groups for a hanging rank are released") {
  if (!has_gpus(4)) return;
  Process run("export TPSIM_TIMEOUT=20; " +
              under_mpirun(4, golden_arguments("bloom-tiny", "cuda", "fp32") +
                                  "--tp 2 --pp 2 --global-batch 8 --steps 1000000"));
  REQUIRE(run.prints("\"step\": 1,"));
  const std::vector<pid_t> ranks = run.descendants("tpsim-mpi");
  REQUIRE(ranks.size() == 4);
  for (const std::size_t last_stage : {2, 3}) ::kill(ranks[last_stage], SIGSTOP);
  check_given_up(run);
}

}  // namespace tpsim::test
