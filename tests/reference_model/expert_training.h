// Small MoE models and their training on threads, for tests of layouts.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/plan_settings.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/slow/slow_device.h"
#include "ranks/threads/thread_world.h"
#include "reference_model/training/training.h"
#include "tests/reference_model/dumped_gradients.h"
#include "tests/temporary_folder.h"

namespace tpsim::test {

inline ModelSpec mixture(std::int64_t hidden, std::int64_t ffn) {
  ModelSpec model;
  model.name = "small-mixture";
  model.layers = 2;
  model.hidden = hidden;
  model.ffn_hidden = ffn;
  model.vocab = 61;
  model.seq = 12;
  model.attention = {4, 2, 6, PositionKind::kRotary, 10000.0};
  model.norm = NormKind::kRmsNorm;
  model.mlp = MlpKind::kSwiglu;
  model.experts = {4, 2, 2.0};
  model.linear_bias = model.fused_qkv = model.tied_embedding = false;
  model.initializer_range = 0.2;
  return model;
}

// One expert per token, GELU, a tied table.
inline ModelSpec switch_model() {
  ModelSpec model = mixture(32, 16);
  model.mlp = MlpKind::kGelu;
  model.norm = NormKind::kLayerNorm;
  model.fused_qkv = model.tied_embedding = true;
  model.attention.kv_heads = 4;
  model.attention.position = PositionKind::kAlibi;
  model.experts = {4, 1, 4.0};
  return model;
}

inline Plan layout_of(const ModelSpec& model, ParallelDegrees degrees, std::int64_t micro_batch) {
  Plan plan;
  plan.degrees = degrees;
  plan.micro_batch = micro_batch;
  plan.global_batch = 8;
  plan.zero = 0;
  plan.dtype = DType::kFloat32;
  plan.recompute = Recompute::kNone;
  plan.sequence_parallel = degrees.tp > 1;
  plan.stage_layers = even_stage_layers(model.layers, degrees.pp, false);
  return plan;
}

struct Trained {
  std::vector<StepReport> reports;
  std::map<std::string, std::vector<float>> gradients;  // of the first step
};

inline TrainingRun run_of(const ModelSpec& model, const Plan& plan) {
  TrainingRun run;
  run.model = model;
  run.plan = plan;
  run.optimizer = {1e-3, 0.9, 0.95, 1e-8, 0.1, 1.0};
  run.steps = 4;
  run.seed = 7;
  return run;
}

template <class MakeDevice>
inline Trained trained(TrainingRun run, const MakeDevice& make_device) {
  const TemporaryFolder folder;
  run.dump_gradients = folder / "gradients.safetensors";
  const TokenSource tokens = TokenSource::synthetic(run.model.seq, run.model.vocab, 9);
  Trained result;
  const Status status =
      run_on_threads(static_cast<int>(gpu_count(run.plan)), [&](World& world) -> Status {
        const std::unique_ptr<Device> device = make_device();
        return train(world, *device, run, tokens, [&](const StepReport& report) {
          if (world.rank() == 0) result.reports.push_back(report);
        });
      });
  INFO((status.ok() ? std::string() : to_string(status.error())));
  REQUIRE(status.ok());
  if (!std::filesystem::exists(run.dump_gradients)) return result;
  result.gradients = dumped_gradients(run.dump_gradients);
  return result;
}

inline Trained trained_on_cpu(const TrainingRun& run) {
  return trained(run, [] { return std::move(CpuDevice::create()).value(); });
}

inline Trained trained_slowly(const TrainingRun& run) {
  return trained(run, [] { return std::make_unique<SlowDevice>(); });
}

inline void check_same(const Trained& found, const Trained& wanted) {
  REQUIRE(found.reports.size() == wanted.reports.size());
  for (std::size_t i = 0; i < found.reports.size(); ++i) {
    INFO("step " << i + 1);
    CHECK(found.reports[i].loss == Approx(wanted.reports[i].loss).epsilon(1e-5));
    CHECK(found.reports[i].grad_norm == Approx(wanted.reports[i].grad_norm).epsilon(1e-4));
  }
  CHECK(found.gradients.size() == wanted.gradients.size());
  for (const auto& [name, want] : wanted.gradients) {
    INFO(name);
    REQUIRE(found.gradients.count(name) == 1);
    const std::vector<float>& have = found.gradients.at(name);
    REQUIRE(have.size() == want.size());
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      difference += std::pow(static_cast<double>(have[i]) - static_cast<double>(want[i]), 2);
      size += std::pow(static_cast<double>(want[i]), 2);
    }
    CHECK(std::sqrt(difference) <= 1e-4 * std::sqrt(size) + 1e-12);
  }
}

// Resumes a run that stopped after two steps in layout `first` in each of the other layouts, sample
// by sample. Losses and norms must equal `wanted`.
inline void check_resumes(const ModelSpec& model, const Plan& first,
                          const std::vector<ParallelDegrees>& others, const Trained& wanted) {
  const TemporaryFolder folder;
  TrainingRun before = run_of(model, first);
  before.plan.zero = 1;
  before.state_folder = folder.path();
  before.save_every = before.steps = 2;
  trained_on_cpu(before);
  for (const ParallelDegrees& degrees : others) {
    TrainingRun after = run_of(model, layout_of(model, degrees, 1));
    after.plan.zero = 2;
    after.state_folder = folder.path();
    INFO(short_name(after.plan));
    const std::vector<StepReport> rest = trained_on_cpu(after).reports;
    REQUIRE(rest.size() == 2);
    for (const StepReport& report : rest) {
      const StepReport& want = wanted.reports[static_cast<std::size_t>(report.step - 1)];
      CHECK(report.loss == Approx(want.loss).epsilon(1e-5));
      CHECK(report.grad_norm == Approx(want.grad_norm).epsilon(1e-4));
    }
  }
}

}  // namespace tpsim::test
