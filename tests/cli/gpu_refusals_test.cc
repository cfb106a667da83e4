// Errors for work that the GPU, its driver or its libraries cannot do. Most of these tests need a
// build with emulated GPUs.
#include <catch2/catch.hpp>

#include "kernels/cuda/runtime/gpu_facts.h"
#include "tests/cli/training_runs.h"

namespace tpsim::test {

TEST_CASE("recipes that a GPU lacks are refused by name") {
  const std::string arguments = golden_arguments("llama-tiny", "cuda", "bf16") + "--steps 1 ";
  const Finished narrower = run(tpsim_run(arguments + "--precision nvfp4"));
  CHECK(narrower.code == 2);
  CHECK(narrower.err.find("nvfp4 can be predicted, but tpsim cannot execute it") !=
        std::string::npos);
  CHECK(narrower.err.find("fp8, fp8-current, fp8-block and mxfp8") != std::string::npos);
  if (gpu_facts().name != "emulated GPU") return;
  struct Case {
    std::string gpu, recipe, said;
  };
  for (const Case& one :
       {Case{"ampere", "fp8-current",
             "compute capability 8.0, and GEMMs of 8 bits by fp8-current need 8.9 or newer"},
        Case{"ada", "fp8-block", "need exactly 9.0; the nearest supported recipe is fp8-current"},
        Case{"hopper", "mxfp8", "need 10.0 or newer; the nearest supported recipe is fp8-block"},
        Case{"blackwell", "fp8-block", "need exactly 9.0; the nearest supported recipe is mxfp8"},
        Case{"blackwell,cublas-12.4", "mxfp8",
             "the installed cuBLASLt is 12.4, but such GEMMs need 12.8 or newer"},
        Case{"hopper,cublas-12.8", "fp8-block",
             "the installed cuBLASLt is 12.8, but such GEMMs need 12.9 or newer"}}) {
    const Finished refused = run("export TPSIM_EMULATED_GPU=" + one.gpu + "; " +
                                 tpsim_run(arguments + "--precision " + one.recipe));
    INFO(one.gpu << " " << one.recipe << ": " << refused.err);
    CHECK(refused.code == 4);
    CHECK(refused.err.find(one.said) != std::string::npos);
  }
}

TEST_CASE("scales of earlier steps are not recorded") {
  const Finished refused = run(tpsim_run(golden_arguments("llama-tiny", "cuda", "bf16") +
                                         "--steps 1 --precision fp8 --cuda-graphs"));
  CHECK(refused.code == 2);
  CHECK(refused.err.find("scales of earlier steps") != std::string::npos);
}

TEST_CASE("a driver that is too old and kernels for other GPUs are named in the error") {
  if (gpu_facts().name != "emulated GPU") return;
  struct Case {
    const char* played;
    const char* said;
  };
  for (const Case& one :
       {Case{"old-driver", "the NVIDIA driver supports CUDA 12.4, but this build needs"},
        Case{"other-architecture",
             "has compute capability 9.0, for which this "
             "build has no kernels"}}) {
    const Finished refused = run("env TPSIM_EMULATED_GPU=" + std::string(one.played) + " " +
                                 TPSIM_BINARY_DIR + "/tpsim run --model bloom-560m --device cuda");
    INFO(refused.err);
    CHECK(refused.code == 4);
    CHECK(refused.err.find(one.said) != std::string::npos);
  }
}

TEST_CASE("profile refuses models that run refuses, with the same error") {
  const Folder folder;
  const std::string tpsim = std::string(TPSIM_BINARY_DIR) + "/tpsim ";
  for (const char* model : {"gpt-oss-tiny", "deepseek-v3-tiny"}) {
    const std::string common = " --device cuda --global-batch 1 --seq 16 --model " +
                               std::string(TPSIM_SOURCE_DIR) + "/tests/golden/" + model +
                               "/config.json";
    const Finished ran = run(tpsim + "run --steps 1" + common);
    const Finished profiled =
        run(tpsim + "profile --quick --gpus 1 -o " + (folder / "profile.json").string() + common);
    INFO(model << ": " << ran.err << profiled.err);
    CHECK(ran.code == 4);
    CHECK(profiled.code == 4);
    CHECK(profiled.err.find("tpsim: error") != std::string::npos);
    CHECK(ran.err.find(profiled.err) != std::string::npos);
  }
}

TEST_CASE("attention by warpgroups is refused by name where it cannot run") {
  if (gpu_facts().name != "emulated GPU") return;
  struct Case {
    const char* variables;
    int code;
    const char* said;
  };
  for (const Case& one : {Case{"TPSIM_EMULATED_GPU=ampere TPSIM_HOPPER_ATTENTION=1", 4,
                               "has compute capability 8.0, but attention by warpgroups needs 9.0"},
                          Case{"TPSIM_HOPPER_ATTENTION=yes", 2,
                               "TPSIM_HOPPER_ATTENTION=yes is not valid: the value must be 0 or 1"},
                          Case{"TPSIM_EMULATED_GPU=ampere TPSIM_HOPPER_ATTENTION=0", 0, ""}}) {
    const Finished finished = run("env " + std::string(one.variables) + " " + TPSIM_BINARY_DIR +
                                  "/tpsim run --checkpoint " + TPSIM_SOURCE_DIR +
                                  "/tests/golden/bloom-tiny --device cuda --seq 16 --steps 1");
    INFO(finished.err);
    CHECK(finished.code == one.code);
    CHECK(finished.err.find(one.said) != std::string::npos);
  }
}

}  // namespace tpsim::test
