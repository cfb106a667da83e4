// Load balancing of experts: the gradient of the auxiliary loss compared with differences of the
// loss, and loads that become more even.
#include "reference_model/layers/expert_balance.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "ranks/meta/lone_world.h"
#include "reference_model/parallel/process_groups.h"
#include "tests/reference_model/expert_training.h"

namespace tpsim {
namespace {

using test::layout_of, test::run_of;

constexpr std::int64_t kTokens = 6, kExperts = 4, kChosen = 2;

// A router with a correction bias.
ModelSpec biased_mixture(RouterScore score) {
  ModelSpec model = test::mixture(24, 16);
  model.experts.dropless = true;
  model.experts.capacity_factor = 1;
  model.experts.router.score = score;
  model.experts.router.renormalises = true;
  model.experts.router.correction_bias = true;
  return model;
}

// coefficient * E * sum of f * P, by the definition.
double loss_of(const std::vector<float>& logits, const std::vector<std::int32_t>& chosen,
               RouterScore score, double coefficient) {
  std::vector<double> f(kExperts, 0.0), p(kExperts, 0.0);
  for (const std::int32_t e : chosen) f[static_cast<std::size_t>(e)] += 1.0 / (kTokens * kChosen);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    std::vector<double> scores;
    double sum = 0;
    for (std::int64_t e = 0; e < kExperts; ++e) {
      const double x = logits[static_cast<std::size_t>(t * kExperts + e)];
      scores.push_back(score == RouterScore::kSigmoid ? 1 / (1 + std::exp(-x)) : std::exp(x));
      sum += scores.back();
    }
    for (std::size_t e = 0; e < scores.size(); ++e) p[e] += scores[e] / sum / kTokens;
  }
  double loss = 0;
  for (std::size_t e = 0; e < f.size(); ++e) loss += f[e] * p[e];
  return coefficient * kExperts * loss;
}

std::vector<StepReport> trained(const ModelSpec& model, const ParallelDegrees& degrees,
                                const BalanceSettings& balance, std::int64_t steps) {
  TrainingRun run = run_of(model, layout_of(model, degrees, 2));
  run.balance = balance;
  run.count_experts = true;
  run.steps = steps;
  return test::trained_on_cpu(run).reports;
}

}  // namespace

TEST_CASE("the auxiliary loss's gradient equals finite differences") {
  for (const RouterScore score : {RouterScore::kChosen, RouterScore::kSigmoid}) {
    const ModelSpec model = biased_mixture(score);
    const std::unique_ptr<CpuDevice> device = std::move(CpuDevice::create()).value();
    LoneWorld world;
    const Plan plan = layout_of(model, {}, 1);
    const OwnedGroups owned = form_groups(world, *device, plan);
    const RankContext context{*device, owned.groups(), {}, model, plan, {}};
    std::vector<float> logits;
    for (std::int64_t i = 0; i < kTokens * kExperts; ++i) {
      logits.push_back(static_cast<float>(std::sin(1.7 * static_cast<double>(i * i))));
    }
    const std::vector<std::int32_t> chosen = {0, 1, 0, 2, 0, 3, 1, 0, 2, 0, 0, 1};
    const auto tensor = [&](Shape shape, DType dtype, const auto& values) {
      const Tensor x = device->allocate(shape, dtype, MemoryCategory::kWorkspace, "test");
      device->upload(std::as_bytes(std::span(values)), x);
      return x;
    };
    const std::vector<float> before(logits.size(), 0.25F);
    const Tensor dlogits = tensor({kTokens, kExperts}, DType::kFloat32, before);
    add_auxiliary_gradient(context, tensor({kTokens, kExperts}, DType::kFloat32, logits),
                           tensor({kTokens, kChosen}, DType::kInt32, chosen), 0.5, dlogits);
    std::vector<float> found(logits.size());
    device->download(dlogits, std::as_writable_bytes(std::span(found)));
    for (std::size_t i = 0; i < logits.size(); ++i) {
      constexpr float kStep = 1e-2F;
      std::vector<float> up = logits, down = logits;
      up[i] += kStep;
      down[i] -= kStep;
      const double slope = (loss_of(up, chosen, score, 0.5) - loss_of(down, chosen, score, 0.5)) /
                           (static_cast<double>(up[i]) - static_cast<double>(down[i]));
      CHECK(static_cast<double>(found[i]) - 0.25 == Approx(slope).epsilon(1e-3).margin(1e-6));
    }
  }
}

TEST_CASE("an auxiliary loss or correction biases balance the load of experts") {
  const ModelSpec model = biased_mixture(RouterScore::kSigmoid);
  // Mean over the last steps, since the load of a few hundred tokens is noisy.
  const auto excess = [&](const BalanceSettings& balance) {
    constexpr std::int64_t kSteps = 60, kLast = 20;
    const std::vector<StepReport> all = trained(model, {}, balance, kSteps);
    double sum = 0;
    for (auto report = all.end() - kLast; report != all.end(); ++report) {
      sum += report->expert_load - 1;
    }
    return sum / kLast;
  };
  const double left_alone = excess({});
  CHECK(left_alone > 0.2);
  CHECK(excess({.auxiliary_loss = 1.0}) < 0.8 * left_alone);
  CHECK(excess({.bias_rate = 0.005}) < 0.8 * left_alone);
}

TEST_CASE("balanced experts train alike in every layout of one micro-batch") {
  const ModelSpec model = biased_mixture(RouterScore::kSigmoid);
  const BalanceSettings balance{.auxiliary_loss = 0.3, .bias_rate = 0.01};
  const std::vector<StepReport> wanted = trained(model, {}, balance, 4);
  for (const ParallelDegrees& degrees :
       {ParallelDegrees{.tp = 2, .dp = 2, .ep = 4, .etp = 1},
        ParallelDegrees{.tp = 1, .pp = 2, .dp = 2, .ep = 2},
        ParallelDegrees{.tp = 2, .dp = 1, .cp = 2, .ep = 2, .etp = 1}}) {
    const std::vector<StepReport> found = trained(model, degrees, balance, 4);
    INFO(degrees.tp << " " << degrees.pp << " " << degrees.dp << " " << degrees.cp);
    REQUIRE(found.size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      CHECK(found[i].loss == Approx(wanted[i].loss).epsilon(1e-5));
      CHECK(found[i].grad_norm == Approx(wanted[i].grad_norm).epsilon(1e-4));
      CHECK(found[i].expert_load == Approx(wanted[i].expert_load).epsilon(1e-3));
    }
  }
}

TEST_CASE("correction biases continue from a saved state") {
  const ModelSpec model = biased_mixture(RouterScore::kSigmoid);
  const BalanceSettings balance{.bias_rate = 0.05};
  const std::vector<StepReport> wanted = trained(model, {}, balance, 6);
  const test::TemporaryFolder folder;
  TrainingRun run = run_of(model, layout_of(model, {.tp = 2, .dp = 2, .ep = 4, .etp = 1}, 2));
  run.balance = balance;
  run.state_folder = folder.path();
  run.save_every = run.steps = 3;
  test::trained_on_cpu(run);
  run.plan = layout_of(model, {}, 2);
  run.steps = 6;
  const std::vector<StepReport> rest = test::trained_on_cpu(run).reports;
  REQUIRE(rest.size() == 3);
  for (std::size_t i = 0; i < rest.size(); ++i) {
    CHECK(rest[i].loss == Approx(wanted[i + 3].loss).epsilon(1e-5));
    CHECK(rest[i].expert_load == Approx(wanted[i + 3].expert_load).epsilon(1e-3));
  }
}

TEST_CASE("correction biases and balancing are refused without biases or experts") {
  const TokenSource tokens = TokenSource::synthetic(12, 61, 9);
  const auto refusal = [&](const ModelSpec& model, const BalanceSettings& balance) {
    TrainingRun run = run_of(model, layout_of(model, {}, 2));
    run.balance = balance;
    const std::unique_ptr<CpuDevice> device = std::move(CpuDevice::create()).value();
    LoneWorld world;
    const Status status = train(world, *device, run, tokens, [](const StepReport&) {});
    REQUIRE_FALSE(status.ok());
    return status.error().message;
  };
  CHECK_THAT(refusal(test::mixture(24, 16), {.bias_rate = 0.1}),
             Catch::Contains("no expert biases"));
  ModelSpec dense = test::mixture(24, 16);
  dense.experts = {};
  CHECK_THAT(refusal(dense, {.auxiliary_loss = 0.1}),
             Catch::Contains("needs experts, but the model has none"));
}

}  // namespace tpsim
