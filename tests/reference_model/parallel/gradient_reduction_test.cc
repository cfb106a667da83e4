// Gradients whose reduction overlaps with backward are bit-equal to those reduced after backward.
#include "tests/reference_model/training_outcome.h"

namespace tpsim {
namespace {

using test::outcome_of;
using test::run_of;

void check_same_bits(TrainingRun run) {
  REQUIRE(validate(run.plan, run.model).ok());
  run.options.overlap_gradient_reduction = false;
  const test::Outcome after = outcome_of(run);
  run.options.overlap_gradient_reduction = true;
  CHECK(outcome_of(run) == after);
  CHECK_FALSE(after.gradients.empty());
}

}  // namespace

TEST_CASE("overlapping the gradient reduction with backward does not change a bit") {
  for (const char* model : {"bloom-tiny", "llama-tiny"}) {  // with a tied table and without
    for (const int zero : {0, 1, 2, 3}) {
      INFO(model << ", zero " << zero);
      check_same_bits(run_of(model, {1, 1, 2, 1}, zero));
      check_same_bits(run_of(model, {2, 2, 2, 1}, zero));
    }
  }
}

TEST_CASE("overlapped reductions change no bit in every schedule and accumulation") {
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
    run.options.gradient_accumulation = GradientAccumulation::kSeparate;
    check_same_bits(run);
    run.options.gradient_reduction = GradientReduction::kAllReduce;
    check_same_bits(run);
  }
}

TEST_CASE("overlapped reductions of expert gradients change no bit") {
  for (const int zero : {0, 1, 2, 3}) {
    INFO("zero " << zero);
    check_same_bits(run_of("mixtral-tiny", {1, 1, 4, 1, 2}, zero));
    check_same_bits(run_of("mixtral-tiny", {1, 2, 2, 1}, zero));
  }
}

TEST_CASE("unsharded gradients of ZeRO 2 and 3 until the last micro-batch equal those of ZeRO 1") {
  for (const char* model : {"bloom-tiny", "llama-tiny", "mixtral-tiny"}) {
    for (const bool beside : {false, true}) {
      INFO(model << (beside ? ", beside backward" : ""));
      TrainingRun run = run_of(model, {1, 2, 2, 1}, 1);
      run.options.overlap_gradient_reduction = beside;
      REQUIRE(micro_batches(run.plan) > 1);
      const test::Outcome once = outcome_of(run);
      run.options.gradient_sync = GradientSync::kLastInPipeline;
      for (const int zero : {2, 3}) {
        run.plan.zero = zero;
        CHECK(holds_whole_gradients(run.plan, run.options));
        CHECK(outcome_of(run) == once);
      }
    }
  }
  // FSDP accumulates autograd's gradients in fp32, or in 16 bits for a reduction in 16 bits.
  for (const bool fused : {false, true}) {
    for (const bool beside : {false, true}) {
      TrainingRun run = run_of("llama-tiny", {1, 2, 2, 1}, 1);
      run.plan.dtype = DType::kBFloat16;
      run.options.gradient_accumulation =
          fused ? GradientAccumulation::kFused : GradientAccumulation::kSeparate;
      run.options.overlap_gradient_reduction = beside;
      const test::Outcome wide = outcome_of(run);
      run.plan.gradient_dtype = DType::kBFloat16;
      const test::Outcome narrow = outcome_of(run);
      run.plan.gradient_dtype = DType::kFloat32;
      for (const int zero : {2, 3}) {
        INFO("zero " << zero << (fused ? ", fused" : "") << (beside ? ", beside backward" : ""));
        run.plan.zero = zero;
        run.options.gradient_sync = GradientSync::kLastInPipeline;
        CHECK(outcome_of(run) == wide);
        run.options.gradient_sync = GradientSync::kLastMicroBatch;
        CHECK(outcome_of(run) == narrow);
      }
    }
  }
}

TEST_CASE("ZeRO 2 and 3 with reductions in the accumulation dtype equal ZeRO 1 bit for bit") {
  for (const bool beside : {false, true}) {
    TrainingRun run = run_of("llama-tiny", {1, 1, 4, 1}, 1);
    run.plan.dtype = DType::kBFloat16;
    run.plan.global_batch = run.plan.micro_batch * run.plan.degrees.dp;
    run.options.gradient_accumulation = GradientAccumulation::kSeparate;
    run.options.overlap_gradient_reduction = beside;
    REQUIRE(micro_batches(run.plan) == 1);
    const test::Outcome wide = outcome_of(run);
    for (const int zero : {2, 3}) {
      INFO("zero " << zero << (beside ? ", beside backward" : ""));
      run.plan.zero = zero;
      run.options.reduce_dtype = ReduceDtype::kAsAddedUp;
      CHECK(outcome_of(run) == wide);
      run.options.reduce_dtype = ReduceDtype::kAsComputed;
      CHECK(outcome_of(run) != wide);
    }
  }
}

}  // namespace tpsim
