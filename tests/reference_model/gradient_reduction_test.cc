// Gradients that are reduced beside backward are those that are reduced after it, bit for bit.
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "core/model_json.h"
#include "kernels/cpu/cpu_device.h"
#include "ranks/threads/thread_world.h"
#include "reference_model/training.h"
#include "tests/reference_model/dumped_gradients.h"
#include "tests/temporary_folder.h"

namespace tpsim {
namespace {

struct Outcome {
  std::vector<double> losses, norms;
  std::map<std::string, std::vector<float>> gradients;  // of the first step
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome outcome_of(TrainingRun run, bool beside) {
  const test::TemporaryFolder folder;
  run.options.overlap_gradient_reduction = beside;
  run.dump_gradients = folder / "gradients.safetensors";
  const TokenSource tokens = TokenSource::synthetic(run.model.seq, run.model.vocab, 5);
  Outcome outcome;
  const Status status =
      run_on_threads(static_cast<int>(gpu_count(run.plan)), [&](World& world) -> Status {
        TPSIM_TRY(const auto device, CpuDevice::create());
        return train(world, *device, run, tokens, [&](const StepReport& report) {
          if (world.rank() != 0) return;
          outcome.losses.push_back(report.loss);
          outcome.norms.push_back(report.grad_norm);
        });
      });
  INFO((status.ok() ? std::string() : to_string(status.error())));
  REQUIRE(status.ok());
  outcome.gradients = test::dumped_gradients(run.dump_gradients);
  return outcome;
}

TrainingRun run_of(const std::string& model, ParallelDegrees degrees, int zero) {
  TrainingRun run;
  run.model =
      *read_model(std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/golden" / model / "config.json");
  run.model.seq = 12;
  run.plan.degrees = degrees;
  run.plan.dtype = DType::kFloat32;
  run.plan.micro_batch = 1;
  run.plan.global_batch = 8;
  run.plan.zero = zero;
  run.plan.recompute = Recompute::kNone;
  run.plan.sequence_parallel = degrees.tp > 1;
  run.plan.stage_layers = even_stage_layers(run.model.layers, degrees.pp, false);
  run.steps = 3;
  run.optimizer.rate = 1e-2;
  return run;
}

void check_same_bits(const TrainingRun& run) {
  REQUIRE(validate(run.plan, run.model).ok());
  const Outcome after = outcome_of(run, false);
  CHECK(outcome_of(run, true) == after);
  CHECK_FALSE(after.gradients.empty());
}

}  // namespace

TEST_CASE("gradients reduced beside backward have the bits of those reduced after it") {
  for (const char* model : {"bloom-tiny", "llama-tiny"}) {  // with a tied table and without
    for (const int zero : {0, 1, 2, 3}) {
      INFO(model << ", zero " << zero);
      check_same_bits(run_of(model, {1, 1, 2, 1}, zero));
      check_same_bits(run_of(model, {2, 2, 2, 1}, zero));
    }
  }
}

TEST_CASE("so have they in every schedule, with full recompute, and however they are added up") {
  for (const int zero : {0, 1, 3}) {
    TrainingRun run = run_of("llama-tiny", {1, 2, 2, 1}, zero);
    INFO("zero " << zero);
    run.plan.schedule = ScheduleKind::kGpipe;
    check_same_bits(run);
    run.plan.schedule = ScheduleKind::kInterleaved;
    run.plan.virtual_stages = 2;
    run.plan.stage_layers = even_stage_layers(run.model.layers, 4, false);
    run.plan.recompute = Recompute::kFull;
    check_same_bits(run);
  }
  for (const DType gradients : {DType::kFloat32, DType::kBFloat16}) {
    TrainingRun run = run_of("llama-tiny", {1, 1, 2, 1}, 1);
    run.plan.dtype = DType::kBFloat16;
    run.plan.gradient_dtype = gradients;
    run.options.fused_gradient_accumulation = false;
    check_same_bits(run);
    run.options.gradient_reduction = GradientReduction::kAllReduce;
    check_same_bits(run);
  }
}

TEST_CASE("so have those of experts, which fewer ranks hold") {
  for (const int zero : {0, 1, 2, 3}) {
    INFO("zero " << zero);
    check_same_bits(run_of("mixtral-tiny", {1, 1, 4, 1, 2}, zero));
    check_same_bits(run_of("mixtral-tiny", {1, 2, 2, 1}, zero));
  }
}

}  // namespace tpsim
