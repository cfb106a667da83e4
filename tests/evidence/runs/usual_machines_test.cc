// Machine and software of runs that no known table describes.
#include "evidence/runs/usual_machines.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <string>

#include "evidence/runs/run_setup.h"
#include "sim/step/predict.h"

namespace tpsim {
namespace {

const std::filesystem::path kData = std::filesystem::path(TPSIM_SOURCE_DIR) / "data";

PublishedRun run_on(const char* gpu, const char* framework) {
  PublishedRun run;
  run.gpu = gpu;
  run.framework = framework;
  run.layers = 8;
  run.hidden = 1536;
  run.heads = 12;
  run.seq = 1024;
  run.tp = run.pp = run.dp = run.micro_batch = 1;
  run.global_batch = 4;
  return run;
}

TEST_CASE("the most specific name of a GPU selects the usual machine of a run") {
  const auto machine_of = [](const char* gpu, const char* framework) {
    RunLoader loader(Catalogue(kData), {}, {});
    const auto setup = loader.setup(run_on(gpu, framework));
    REQUIRE(setup.ok());
    return setup->scenario.cluster.name + " " + setup->scenario.stack.name;
  };
  CHECK(machine_of("NVIDIA H100 PCIe", "Megatron-LM") == "h100-pcie-8 megatron-core");
  CHECK(machine_of("H100-80GB-SXM", "Megatron-LM") == "dgx-h100 megatron-core");
  CHECK(machine_of("H100-80GB-SXM", "a program of one's own") == "dgx-h100 nemo");
  CHECK(machine_of("A100-80GB", "Megatron-LM") == "dgx-a100 megatron-lm");
  CHECK(machine_of("A100-80GB", "NeMo") == "dgx-a100 nemo");
  CHECK(machine_of("A100-80GB", "Composer") == "a100-4x100g composer-fsdp");
  CHECK(machine_of("H100-80GB-SXM", "Composer") == "dgx-h100 composer-fsdp-hopper");
  CHECK(machine_of("RTX A6000 Ada", "a loop of one's own") == "rtx-6000-ada-8 pytorch");
}

TEST_CASE("a row may name a cluster of the catalogue instead of a GPU") {
  const auto machine_of = [](const char* cluster, const char* gpu) {
    RunLoader loader(Catalogue(kData), {}, {});
    PublishedRun run = run_on(gpu, "Megatron-LM");
    run.cluster = cluster;
    const auto setup = loader.setup(run);
    return setup.ok() ? setup->scenario.cluster.name : setup.error().message;
  };
  CHECK(machine_of("dgx-h100", "") == "dgx-h100");
  CHECK(machine_of("dgx-h100-node", "") == "dgx-h100-node");
  CHECK(machine_of("h100-pcie-8", "H100") == "h100-pcie-8");
  CHECK_THAT(machine_of("a place", ""), Catch::Contains("unknown cluster 'a place'"));
}

TEST_CASE("the month of a run selects the release of Megatron-LM") {
  const auto stack_of = [](const char* gpu, const char* framework, const char* date) {
    RunLoader loader(Catalogue(kData), {}, {});
    PublishedRun run = run_on(gpu, framework);
    run.date = date;
    const auto setup = loader.setup(run);
    REQUIRE(setup.ok());
    return setup->scenario.stack.name;
  };
  CHECK(stack_of("A800-80GB", "Megatron-LM", "2023-11") == "megatron-lm");
  CHECK(stack_of("A800-80GB", "Megatron-LM", "2023-12") == "megatron-lm-2024");
  CHECK(stack_of("H800-80GB", "Megatron-LM", "2023-11") == "megatron-lm");
  CHECK(stack_of("H800-80GB", "Megatron-LM", "2024-07") == "megatron-lm-2024");
  CHECK(stack_of("H100-80GB", "megatron-core core_v0.6.0", "2024-06") == "megatron-lm-2024");
  CHECK(stack_of("H100-80GB", "megatron-core core_v0.8.0", "2024-08") == "megatron-core");
}

TEST_CASE("the month of a run selects the release of ROCm") {
  const auto machine_of = [](const char* date) {
    RunLoader loader(Catalogue(kData), {}, {});
    PublishedRun run = run_on("MI300X", "torchtitan FSDP2");
    run.date = date;
    const auto setup = loader.setup(run);
    REQUIRE(setup.ok());
    return setup->scenario.cluster.name;
  };
  CHECK(machine_of("2024-09") == "mi300x-8-rocm-6.1");
  CHECK(machine_of("2024-10") == "mi300x-8");
  CHECK(machine_of("") == "mi300x-8");
}

TEST_CASE("a machine that a row names is used if its GPU is a variant of the row's") {
  RunLoader loader(Catalogue(kData), {}, {});
  PublishedRun run = run_on("B200-SXM", "Megatron-Core");
  run.cluster = "SimuMax";
  auto setup = loader.setup(run);
  REQUIRE(setup.ok());
  CHECK(setup->scenario.cluster.name == "simumax-b200-node");
  run.gpu = "H100-80GB-SXM";
  setup = loader.setup(run);
  REQUIRE(setup.ok());
  CHECK(setup->scenario.cluster.name == "dgx-h100");
}

TEST_CASE("rows of known tables are priced with the whole stack, as simulate prices it") {
  const Result<StackSpec> stack = Catalogue(kData).load_stack("torchtitan");
  REQUIRE(stack.ok());
  REQUIRE(stack->uncalibrated_overhead > 0);
  RunEnvironment known;
  known.cluster = "known";
  known.runs_on = "dgx-h100";
  known.stack = "torchtitan";
  RunLoader loader(Catalogue(kData), {known}, {});
  PublishedRun run = run_on("H100-80GB-SXM", "torchtitan");
  run.cluster = "known";
  const auto setup = loader.setup(run);
  REQUIRE(setup.ok());
  CHECK(setup->scenario.stack.uncalibrated_overhead == stack->uncalibrated_overhead);
  CHECK(setup->scenario.stack.residual_spread == stack->residual_spread);
}

TEST_CASE("steps of a program that no stack describes are less certain") {
  RunLoader loader(Catalogue(kData), {}, {});
  const auto stack_of = [&](const char* framework) {
    const auto setup = loader.setup(run_on("H100-80GB-SXM", framework));
    REQUIRE(setup.ok());
    return setup->scenario.stack;
  };
  const StackSpec described = stack_of("HF SFTTrainer, accelerate FSDP");
  CHECK(described.residual_spread < kUncalibratedSpread + 0.01);
  const StackSpec own_loop = stack_of("MyTrainingLoop (PyTorch FSDP)");
  CHECK(own_loop.name == described.name);
  CHECK(own_loop.residual_spread == Approx(std::hypot(described.residual_spread, kOtherRunSpread)));
  const double nemo = stack_of("NeMo").residual_spread;
  CHECK(nemo < kUncalibratedSpread + 0.02);
  CHECK(stack_of("a program of one's own").residual_spread ==
        Approx(std::hypot(nemo, kOtherRunSpread)));
  CHECK(stack_of("").residual_spread == Approx(std::hypot(nemo, kOtherRunSpread)));
  CHECK(stack_of("a program of one's own").memory.spread >= kUncalibratedMemorySpread);
}

TEST_CASE("a row with a setting that its stack cannot run is as uncertain as another program") {
  RunLoader loader(Catalogue(kData), {}, {});
  PublishedRun run = run_on("H100-80GB-SXM", "HF SFTTrainer");
  run.dtype = "fp8";
  const auto setup = loader.setup(run);
  REQUIRE(setup.ok());
  CHECK_THAT(setup->assumed.back(), Catch::Contains("--precision fp8"));
  CHECK(setup->scenario.stack.residual_spread >= kOtherRunSpread);
}

TEST_CASE("no run of unseen software is called safe that fills two thirds of the memory") {
  RunLoader loader(Catalogue(kData), {}, {});
  for (const char* framework : {"torchtitan", "HF SFTTrainer", "my own loop", "DeepSpeed ZeRO-3"}) {
    const auto setup = loader.setup(run_on("H100-80GB-SXM", framework));
    REQUIRE(setup.ok());
    const Bytes capacity = setup->scenario.profile.device.memory;
    INFO(framework);
    CHECK(probability_of_oom(setup->scenario, 0.66 * capacity) > 0.001);
    CHECK(probability_of_oom(setup->scenario, 0.3 * capacity) < 0.001);
    CHECK(probability_of_oom(setup->scenario, capacity) == Approx(0.5));
  }
}

}  // namespace
}  // namespace tpsim
