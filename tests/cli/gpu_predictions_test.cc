// Predictions of runs on GPUs, compared with measurements.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "kernels/cuda/runtime/gpu_facts.h"
#include "tests/cli/training_runs.h"

namespace tpsim::test {
namespace {

// The number after the last `key` in `json`.
double number_of(const std::string& json, const std::string& key) {
  const std::size_t at = json.rfind("\"" + key + "\": ");
  REQUIRE(at != std::string::npos);
  return std::strtod(json.c_str() + at + key.size() + 4, nullptr);
}

}  // namespace

TEST_CASE("the driver's memory is predicted for whole models and for ranks of large ones") {
  if (gpu_facts().name != "emulated GPU") return;  // on real GPUs tools/gpu_check.sh compares it
  const Folder folder;
  const std::string tpsim = std::string(TPSIM_BINARY_DIR) + "/tpsim ";
  const std::string plan = (folder / "plan.json").string();
  const std::string profile = (folder / "profile.json").string();
  const std::string idle = "env TPSIM_EMULATED_GPU=idle " + tpsim;  // allocates without work
  REQUIRE(run(tpsim + "profile --device cuda --quick -o " + profile).code == 0);
  struct Case {
    const char* plan;
    int rank;
  };
  for (const Case& one :
       {Case{"--model bloom-176b --tp 4 --pp 12 --micro-batch 1 --global-batch 16 --recompute none",
             20},
        Case{"--model llama-2-70b --tp 8 --pp 4 --micro-batch 1 --global-batch 8 --recompute none",
             24},
        // The sums of dq need more memory than the workspace of GEMMs.
        Case{"--model llama-3-70b --tp 8 --pp 4 --seq 65536 --attention flash --micro-batch 1 "
             "--global-batch 4 --recompute full",
             8},
        Case{"--model bloom-7b1 --recompute full --micro-batch 1 --global-batch 4", 0},
        Case{"--model bloom-1b7 --attention unfused --micro-batch 4 --global-batch 8 --recompute "
             "none",
             0}}) {
    INFO(one.plan);
    const Finished saved =
        run(tpsim + "simulate --allow-oom --ignore-stack-limits --cluster dgx-h200 " + one.plan +
            " --save " + plan);
    INFO(saved.err);
    REQUIRE(saved.code == 0);
    const Finished ran = run(idle + "run " + plan + " --device cuda --steps 3 --json --profile " +
                             profile + " --rank " + std::to_string(one.rank));
    INFO(ran.err);
    REQUIRE(ran.code == 0);
    CHECK(number_of(ran.out, "predicted_peak_memory_gib") ==
          Approx(number_of(ran.out, "peak_memory_gib")).epsilon(1e-4));
  }
}

TEST_CASE("the driver's memory is predicted with communicators and messages in flight") {
  if (gpu_facts().name != "emulated GPU") return;  // NCCL's memory is emulated
  const Folder folder;
  const std::string tpsim = std::string(TPSIM_BINARY_DIR) + "/tpsim ";
  const std::string plan = (folder / "plan.json").string();
  const std::string profile = (folder / "profile.json").string();
  const std::string model = std::string(TPSIM_SOURCE_DIR) + "/tests/golden/bloom-tiny/config.json";
  const std::string idle = "export TPSIM_EMULATED_GPU=idle; ";
  REQUIRE(run(tpsim + "profile --device cuda --quick -o " + profile).code == 0);
  // No op of a quick profile determines the vector peak.
  REQUIRE(run("sed -i 's|\"vector_peak\": .*|\"vector_peak\": \"1 TFLOP/s\",|' " + profile).code ==
          0);
  for (const char* layout : {"--pp 3 --dp 1", "--tp 2 --pp 2 --dp 1",
                             "--pp 2 --dp 2 --virtual-stages 2 --schedule interleaved"}) {
    INFO(layout);
    const Finished saved = run(tpsim + "simulate --model " + model +
                               " --seq 1024 --micro-batch 8 --global-batch 96 " + layout +
                               " --dtype bf16 --attention flash --stack reference --cluster "
                               "dgx-h200-node --ignore-stack-limits --save " +
                               plan);
    INFO(saved.err);
    REQUIRE(saved.code == 0);
    const int ranks = std::string(layout).find("3") != std::string::npos ? 3 : 4;
    const Finished ran = run(idle + tpsim_under_mpirun(ranks, "validate " + plan +
                                                                  " --device cuda --steps 2 --json"
                                                                  " --profile " +
                                                                  profile));
    INFO(ran.err);
    REQUIRE(ran.code == 0);
    CHECK(number_of(ran.out, "predicted_gib") ==
          Approx(number_of(ran.out, "measured_gib")).epsilon(1e-4));
  }
}

TEST_CASE("a plan is profiled on a GPU, predicted and run, whatever software it was planned for") {
  const Folder folder;
  const std::string tpsim = "exec " + std::string(TPSIM_BINARY_DIR) + "/tpsim ";
  const std::string plan = (folder / "plan.json").string();
  const std::string profile = (folder / "profile.json").string();
  const std::string model = std::string(TPSIM_SOURCE_DIR) + "/tests/golden/bloom-tiny/config.json";
  REQUIRE(run(tpsim + "simulate --model " + model +
              " --seq 32 --micro-batch 1 --global-batch 2 --recompute none --attention flash"
              " --cluster jean-zay-a100 --ignore-stack-limits --save " +
              plan)
              .code == 0);
  const Finished profiled = run(tpsim + "profile " + plan + " --device cuda --quick -o " + profile);
  INFO(profiled.err);
  REQUIRE(profiled.code == 0);
  const Finished validated =
      run(tpsim + "validate " + plan + " --device cuda --steps 3 --json --profile " + profile);
  INFO(validated.err);
  REQUIRE(validated.code == 0);
  const Finished priced =
      run(tpsim + "simulate " + plan + " --ignore-stack-limits --json --profile " + profile);
  // The plan's stack adds a few ops that the profile does not hold. Their share is about 1 % of the
  // time, or more if another process disturbs the measured neighbours.
  CHECK(number_of(priced.out, "exact_entries") > 0.9);
  CHECK(number_of(priced.out, "model") == 0);
}

}  // namespace tpsim::test
