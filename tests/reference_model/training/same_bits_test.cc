// Options that save memory passes or overlap collectives do not change a bit of losses and
// gradients.
#include <array>
#include <random>

#include "core/plan/plan_settings.h"
#include "tests/reference_model/training_outcome.h"

namespace tpsim {
namespace {

using test::outcome_of;
using test::run_of;

template <class Value>
void check_same_bits(TrainingRun run, Value TrainingOptions::*option, Value without_it,
                     Value with_it) {
  REQUIRE(validate(run.plan, run.model).ok());
  run.options.*option = without_it;
  const test::Outcome without = outcome_of(run);
  run.options.*option = with_it;
  CHECK(outcome_of(run) == without);
  CHECK_FALSE(without.gradients.empty());
}
void check_same_bits(const TrainingRun& run, bool TrainingOptions::*option) {
  check_same_bits(run, option, false, true);
}
void check_overwriting(const TrainingRun& run) {
  check_same_bits(run, &TrainingOptions::gradient_accumulation, GradientAccumulation::kFused,
                  GradientAccumulation::kOverwriting);
}

}  // namespace

TEST_CASE("overwriting gradients in the first micro-batch does not change a bit") {
  // A tied table, on one stage and on two, and an untied table.
  for (const char* model : {"bloom-tiny", "llama-tiny"}) {
    for (const int zero : {0, 1, 2, 3}) {
      INFO(model << ", zero " << zero);
      check_overwriting(run_of(model, {1, 1, 2, 1}, zero));
      check_overwriting(run_of(model, {2, 2, 2, 1}, zero));
    }
  }
  TrainingRun learned = run_of("bloom-tiny", {1, 1, 2, 1}, 1);
  learned.model.attention.position = PositionKind::kLearned;
  check_overwriting(learned);
  for (const char* model : {"mixtral-tiny", "gpt-oss-tiny"}) {
    INFO(model);
    check_overwriting(run_of(model, {1, 1, 4, 1, 2}, 1));
    check_overwriting(run_of(model, {2, 1, 2, 1}, 2));
  }
}

TEST_CASE("overwriting changes no bit with chunks, recompute") {
  TrainingRun run = run_of("llama-tiny", {1, 2, 2, 1}, 1);
  run.plan.schedule = ScheduleKind::kGpipe;
  check_overwriting(run);
  run.plan.schedule = ScheduleKind::kInterleaved;
  run.plan.virtual_stages = 2;
  run.plan.stage_layers = even_stage_layers(run.model.layers, 4, false);
  run.plan.recompute = Recompute::kFull;
  check_overwriting(run);
  for (const DType gradients : {DType::kFloat32, DType::kBFloat16}) {
    TrainingRun narrow = run_of("bloom-tiny", {1, 1, 2, 1}, 1);
    narrow.plan.dtype = DType::kBFloat16;
    narrow.plan.gradient_dtype = gradients;
    check_overwriting(narrow);
    narrow.options.overlap_gradient_reduction = true;
    check_overwriting(narrow);
  }
}

TEST_CASE("overlapping the dgrad all-reduce with the wgrad GEMM does not change a bit") {
  constexpr auto kOption = &TrainingOptions::overlap_tensor_reduction;
  for (const char* model : {"bloom-tiny", "llama-tiny", "qwen2-tiny"}) {
    for (const bool sequence_parallel : {false, true}) {
      for (const int zero : {0, 1, 3}) {
        INFO(model << ", zero " << zero << (sequence_parallel ? ", sequence parallel" : ""));
        TrainingRun run = run_of(model, {2, 1, 2, 1}, zero);
        run.plan.sequence_parallel = sequence_parallel;
        run.options.overlap_gradient_reduction = true;
        check_same_bits(run, kOption);
      }
    }
  }
  TrainingRun run = run_of("mixtral-tiny", {2, 2, 2, 1}, 1);
  run.plan.recompute = Recompute::kFull;
  check_same_bits(run, kOption);
  run.plan.dtype = DType::kBFloat16;
  run.plan.recompute = Recompute::kSelective;
  check_same_bits(run, kOption);
}

TEST_CASE("weight gradients that a split backward computes later do not change a bit") {
  std::mt19937 random(1);
  const auto one_of = [&](auto... values) {
    return std::array{values...}[random() % sizeof...(values)];
  };
  for (const char* model : {"bloom-tiny", "llama-tiny", "qwen2-tiny", "mixtral-tiny"}) {
    for (int i = 0; i < 6; ++i) {
      const bool mixture = std::string_view(model) == "mixtral-tiny";
      const std::int64_t tp = one_of(1, 2);
      TrainingRun run = run_of(model, {tp, one_of(2, 4), one_of(1, 2), 1}, one_of(0, 1));
      Plan& plan = run.plan;
      plan.sequence_parallel = tp > 1 && (mixture || one_of(false, true));
      plan.recompute = one_of(Recompute::kNone, Recompute::kFull, Recompute::kSelective);
      plan.attention = one_of(AttentionKind::kUnfused, AttentionKind::kFlash);
      run.options.gradient_accumulation =
          one_of(GradientAccumulation::kFused, GradientAccumulation::kOverwriting);
      run.options.overlap_gradient_reduction = one_of(false, true);
      run.options.overlap_tensor_reduction = one_of(false, true);
      run.options.tp_recompute_allgather = one_of(false, true);
      INFO(model << ", " << short_name(plan));
      plan.schedule = ScheduleKind::kOneFOneB;
      const test::Outcome whole = outcome_of(run);
      plan.schedule = ScheduleKind::kZbH1;
      REQUIRE(validate(plan, run.model).ok());
      CHECK(outcome_of(run) == whole);
      CHECK_FALSE(whole.gradients.empty());
    }
  }
}

// Inputs of head, attention and MLP.
TEST_CASE("keeping gathered inputs for backward does not change a bit") {
  constexpr auto kOption = &TrainingOptions::tp_recompute_allgather;
  for (const char* model : {"bloom-tiny", "llama-tiny", "mixtral-tiny"}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      INFO(model);
      TrainingRun run = run_of(model, {2, 1, 2, 1}, 1);
      run.plan.sequence_parallel = true;
      run.plan.recompute = recompute;
      check_same_bits(run, kOption);
    }
  }
}

// On one rank the exponentials are equal. On several ranks the sums are rescaled once more.
TEST_CASE("a loss with one pass over the logits equals that with two passes") {
  constexpr auto kOption = &TrainingOptions::online_loss;
  check_same_bits(run_of("bloom-tiny", {1, 1, 2, 1}, 0), kOption);
  for (const char* model : {"bloom-tiny", "llama-tiny"}) {
    TrainingRun run = run_of(model, {2, 1, 1, 1}, 0);
    const test::Outcome two = outcome_of(run);
    run.options.online_loss = true;
    const test::Outcome one = outcome_of(run);
    REQUIRE(one.losses.size() == two.losses.size());
    for (std::size_t i = 0; i < one.losses.size(); ++i) {
      CHECK(one.losses[i] == Approx(two.losses[i]).epsilon(1e-6));
      CHECK(one.norms[i] == Approx(two.norms[i]).epsilon(1e-5));
    }
  }
}

}  // namespace tpsim
