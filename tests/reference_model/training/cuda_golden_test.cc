// The reference model on a GPU compared with PyTorch's autograd in float64 (tests/golden), on one
// rank.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "core/json/json_document.h"
#include "core/model/model_json.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "ranks/meta/lone_world.h"
#include "reference_model/training/training.h"

namespace tpsim {
namespace {

// TPSIM_GOLDEN sets the folder if the tests run without their source tree.
std::filesystem::path golden_folder() {
  const char* elsewhere = std::getenv("TPSIM_GOLDEN");
  if (elsewhere != nullptr) return elsewhere;
  return std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/golden";
}

struct Golden {
  TrainingRun run;
  TokenSource tokens;
  std::vector<double> losses;
};

Golden load(const std::string& name) {
  const std::filesystem::path folder = golden_folder() / name;
  Golden golden{{}, *TokenSource::open(folder / "tokens.safetensors"), {}};
  TrainingRun& run = golden.run;
  run.model = *read_model(folder / "config.json");
  run.model.seq = golden.tokens.seq();
  run.checkpoint = folder;
  run.optimizer = {1e-3, 0.9, 0.95, 1e-8, 0.1, 1.0};
  run.plan.global_batch = 8;
  run.plan.micro_batch = 4;
  run.plan.zero = 0;
  run.plan.recompute = Recompute::kNone;
  run.plan.stage_layers = {run.model.layers};
  const JsonValue expected = *read_json_file(folder / "expected.json");
  for (const JsonValue& x : *expected.find("loss")->as<JsonValue::Array>()) {
    golden.losses.push_back(*x.as<double>());
  }
  run.steps = static_cast<std::int64_t>(golden.losses.size());
  return golden;
}

void check_losses(const Golden& golden, double tolerance) {
  std::int64_t reported = 0;
  const Status status = run_alone([&](World& world) -> Status {
    TPSIM_TRY(const auto device, CudaDevice::create());
    return train(world, *device, golden.run, golden.tokens, [&](const StepReport& report) {
      INFO("step " << report.step);
      CHECK(report.loss ==
            Approx(golden.losses[static_cast<std::size_t>(report.step - 1)]).epsilon(tolerance));
      ++reported;
    });
  });
  INFO((status.ok() ? std::string() : to_string(status.error())));
  REQUIRE(status.ok());
  CHECK(reported == golden.run.steps);
}

template <class OnDevice>
std::vector<double> losses_on(const TrainingRun& run, const TokenSource& tokens) {
  std::vector<double> losses;
  const Status status = run_alone([&](World& world) -> Status {
    TPSIM_TRY(const auto device, OnDevice::create());
    return train(world, *device, run, tokens,
                 [&](const StepReport& report) { losses.push_back(report.loss); });
  });
  INFO((status.ok() ? std::string() : to_string(status.error())));
  REQUIRE(status.ok());
  return losses;
}

std::vector<double> losses_on_gpu(const TrainingRun& run, const TokenSource& tokens) {
  return losses_on<CudaDevice>(run, tokens);
}

void check_training(const std::string& name, DType dtype, double tolerance) {
  for (const AttentionKind attention : {AttentionKind::kUnfused, AttentionKind::kFlash}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      Golden golden = load(name);
      golden.run.plan.attention = attention;
      golden.run.plan.dtype = dtype;
      golden.run.plan.recompute = recompute;
      INFO(name << (attention == AttentionKind::kFlash ? ", flash" : ""));
      check_losses(golden, tolerance);
    }
  }
}

}  // namespace

// Norms of heads, windows, biases of q, k and v, and scaled rotary embeddings.
TEST_CASE("models of today in fp32 on CUDA follow PyTorch's losses", "[long]") {
  for (const char* name : {"qwen3-tiny", "qwen2-tiny", "llama3-tiny"}) {
    check_training(name, DType::kFloat32, 1e-4);
  }
}

TEST_CASE("micro-batches replayed as CUDA graphs have the losses of launched ones", "[long]") {
  for (const auto& [name, overwrites] :
       {std::pair{"bloom-tiny", true}, {"bloom-tiny", false}, {"llama-tiny", true}}) {
    Golden golden = load(name);
    golden.run.options.gradient_accumulation =
        overwrites ? GradientAccumulation::kOverwriting : GradientAccumulation::kFused;
    golden.run.plan.micro_batch = 2;  // four per step
    golden.run.plan.dtype = DType::kBFloat16;
    const std::vector<double> issued = losses_on_gpu(golden.run, golden.tokens);
    golden.run.record_work = true;
    const std::vector<double> replayed = losses_on_gpu(golden.run, golden.tokens);
    REQUIRE(replayed.size() == issued.size());
    // The algorithms of GEMMs may differ between two devices.
    for (std::size_t i = 0; i < issued.size(); ++i)
      CHECK(replayed[i] == Approx(issued[i]).epsilon(1e-2));
  }
}

// Both devices quantize operands equally; only the rounding of bf16 results differs, as without
// recipes. The losses are as close to PyTorch's as the CPU's are (tests/cli/run_layouts_test.cc).
TEST_CASE("training in 8 bits on CUDA follows the CPU's losses", "[narrow][long]") {
  std::vector<std::vector<double>> met;
  for (const Precision recipe :
       {Precision::kFp8, Precision::kFp8Current, Precision::kFp8Block, Precision::kMxFp8}) {
    if (const auto device = CudaDevice::create();
        device.ok() && !(*device)->refusal_reason(recipe).empty()) {
      WARN((*device)->refusal_reason(recipe));
      continue;
    }
    for (const char* name : {"bloom-tiny", "llama-tiny"}) {
      INFO(name << " " << name_of(recipe));
      Golden golden = load(name);
      golden.run.plan.dtype = DType::kBFloat16;
      golden.run.plan.precision = recipe;
      const std::vector<double> on_gpu = losses_on_gpu(golden.run, golden.tokens);
      const std::vector<double> on_cpu = losses_on<CpuDevice>(golden.run, golden.tokens);
      REQUIRE(on_gpu.size() == golden.losses.size());
      REQUIRE(on_cpu.size() == golden.losses.size());
      for (std::size_t i = 0; i < on_gpu.size(); ++i) {
        CHECK(on_gpu[i] == Approx(on_cpu[i]).epsilon(1e-2));
        CHECK(on_gpu[i] == Approx(golden.losses[i]).epsilon(3e-2));
      }
      CHECK(std::find(met.begin(), met.end(), on_gpu) == met.end());
      met.push_back(on_gpu);
    }
  }
}

TEST_CASE("Muon on CUDA follows the CPU's losses", "[long]") {
  for (const auto& [dtype, tolerance] :
       {std::pair{DType::kFloat32, 1e-4}, {DType::kBFloat16, 1e-2}}) {
    Golden golden = load("llama-tiny");
    golden.run.plan.dtype = dtype;
    golden.run.options.optimizer_kind = OptimizerKind::kMuon;
    golden.run.steps = 4;
    const std::vector<double> on_gpu = losses_on_gpu(golden.run, golden.tokens);
    const std::vector<double> on_cpu = losses_on<CpuDevice>(golden.run, golden.tokens);
    REQUIRE(on_gpu.size() == on_cpu.size());
    for (std::size_t i = 0; i < on_gpu.size(); ++i) {
      CHECK(on_gpu[i] == Approx(on_cpu[i]).epsilon(tolerance));
    }
  }
}

TEST_CASE("training BLOOM in fp32 on CUDA follows PyTorch's losses", "[long]") {
  check_training("bloom-tiny", DType::kFloat32, 1e-4);
}
TEST_CASE("training BLOOM in bf16 on CUDA follows PyTorch's losses", "[long]") {
  check_training("bloom-tiny", DType::kBFloat16, 1e-2);
}
TEST_CASE("training LLaMA in fp32 on CUDA follows PyTorch's losses", "[long]") {
  check_training("llama-tiny", DType::kFloat32, 1e-4);
}
TEST_CASE("training LLaMA in bf16 on CUDA follows PyTorch's losses", "[long]") {
  check_training("llama-tiny", DType::kBFloat16, 1e-2);
}

}  // namespace tpsim
