// Low-rank adapters compared with peft and PyTorch's autograd in float64 (tests/golden/adapters),
// in every kind of layout.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <optional>

#include "core/json/json_document.h"
#include "core/json/safetensors.h"
#include "core/model/model_json.h"
#include "core/software/stack_parts.h"
#include "kernels/cpu/cpu_device.h"
#include "ranks/threads/thread_world.h"
#include "reference_model/training/training.h"
#include "tests/reference_model/dumped_gradients.h"
#include "tests/reference_model/training/golden_layouts.h"
#include "tests/temporary_folder.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;
using test::GoldenLayout;

const fs::path kGolden = fs::path(TPSIM_SOURCE_DIR) / "tests/golden";

std::vector<double> numbers(const JsonValue& value) {
  std::vector<double> result;
  for (const JsonValue& x : *value.as<JsonValue::Array>()) result.push_back(*x.as<double>());
  return result;
}

std::string text(const JsonValue& values, const char* key) {
  return *values.find(key)->as<std::string>();
}

struct AdapterCase {
  fs::path folder;
  ModelSpec model;
  std::optional<TokenSource> tokens;
  Finetune finetune;
  std::vector<double> losses, norms;
  std::int64_t trained = 0;
  test::TemporaryFolder checkpoint;  // base weights and adapters
};

void load(const std::string& name, AdapterCase& golden) {
  golden.folder = kGolden / "adapters" / name;
  const JsonValue expected = *read_json_file(golden.folder / "expected.json");
  const fs::path base = kGolden / text(expected, "base");
  golden.tokens.emplace(*TokenSource::open(base / "tokens.safetensors"));
  golden.model = *read_model(base / "config.json");
  golden.model.seq = golden.tokens->seq();
  StackSpec stack;
  const auto set = [&](StackPart part, const std::string& value) {
    row_of(part).set(stack, *parse_value(row_of(part), value));
  };
  set(StackPart::kFinetune, "lora");
  set(StackPart::kLoraTargets, text(expected, "targets"));
  set(StackPart::kLoraScaling, text(expected, "scaling"));
  golden.finetune = stack.training.finetune;
  golden.finetune.rank = *expected.find("rank")->as<std::int64_t>();
  golden.finetune.alpha = *expected.find("alpha")->as<std::int64_t>();
  golden.trained = *expected.find("trained")->as<std::int64_t>();
  golden.losses = numbers(*expected.find("loss"));
  golden.norms = numbers(*expected.find("grad_norm_before_clip"));
  fs::copy(base / "model.safetensors", golden.checkpoint / "model.safetensors");
  fs::copy(golden.folder / "adapter_model.safetensors", golden.checkpoint / "adapter.safetensors");
}

TrainingRun run_of(const AdapterCase& golden, const GoldenLayout& layout) {
  TrainingRun run;
  run.model = golden.model;
  run.plan = layout.plan;
  run.plan.dtype = DType::kFloat32;
  run.plan.global_batch = 8;
  run.options = layout.options;
  run.options.finetune = golden.finetune;
  run.optimizer = {1e-3, 0.9, 0.95, 1e-8, 0.1, 1.0};
  run.steps = static_cast<std::int64_t>(golden.losses.size());
  run.checkpoint = golden.checkpoint.path();
  return run;
}

std::vector<StepReport> train_on_threads(const TrainingRun& run, const TokenSource& tokens) {
  std::vector<StepReport> reports;
  const Status status =
      run_on_threads(static_cast<int>(gpu_count(run.plan)), [&](World& world) -> Status {
        TPSIM_TRY(const auto device, CpuDevice::create());
        return train(world, *device, run, tokens, [&](const StepReport& report) {
          if (world.rank() == 0) reports.push_back(report);
        });
      });
  INFO((status.ok() ? std::string() : to_string(status.error())));
  REQUIRE(status.ok());
  return reports;
}

void check_gradients(const AdapterCase& golden, const fs::path& dumped) {
  const auto expected = test::dumped_gradients(golden.folder / "gradients.safetensors");
  const auto found = test::dumped_gradients(dumped);
  CHECK(found.size() == expected.size());
  for (const auto& [name, want] : expected) {
    INFO(name);
    const auto have = found.find(name);
    REQUIRE(have != found.end());
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      difference += std::pow(static_cast<double>(have->second[i]) - want[i], 2);
      size += std::pow(static_cast<double>(want[i]), 2);
    }
    CHECK(std::sqrt(difference) <= 1e-4 * std::sqrt(size));
  }
}

void check_layout(const AdapterCase& golden, const GoldenLayout& layout) {
  TrainingRun run = run_of(golden, layout);
  const test::TemporaryFolder folder;
  run.dump_gradients = folder / "gradients.safetensors";
  const std::vector<StepReport> reports = train_on_threads(run, *golden.tokens);
  REQUIRE(reports.size() == golden.losses.size());
  for (std::size_t i = 0; i < reports.size(); ++i) {
    INFO("step " << i + 1);
    CHECK(reports[i].loss == Approx(golden.losses[i]).epsilon(1e-5));
    CHECK(reports[i].grad_norm == Approx(golden.norms[i]).epsilon(1e-4));
  }
  check_gradients(golden, run.dump_gradients);
}

}  // namespace

TEST_CASE("adapters follow peft's losses and gradients in every layout") {
  for (const std::string name : {"llama-all", "bloom-all"}) {
    AdapterCase golden;
    load(name, golden);
    for (const GoldenLayout& layout : test::golden_layouts(golden.model)) {
      INFO(name << " " << layout.name);
      check_layout(golden, layout);
    }
  }
}

TEST_CASE("rank-stabilized adapters of queries and values follow peft") {
  AdapterCase golden;
  load("llama-qv", golden);
  for (const GoldenLayout& layout : test::few_golden_layouts(golden.model)) {
    INFO(layout.name);
    check_layout(golden, layout);
  }
}

TEST_CASE("gradients of chosen weights are those of full training in every layout") {
  for (const std::string name : {"llama-all", "bloom-all"}) {
    AdapterCase golden;
    load(name, golden);
    fs::remove(golden.checkpoint / "adapter.safetensors");
    const test::TemporaryFolder folder;
    const auto gradients = [&](const GoldenLayout& layout, const Finetune& finetune) {
      TrainingRun run = run_of(golden, layout);
      run.options.finetune = finetune;
      run.steps = 1;
      run.dump_gradients = folder / "gradients.safetensors";
      train_on_threads(run, *golden.tokens);
      return test::dumped_gradients(run.dump_gradients);
    };
    const std::vector<GoldenLayout> layouts = test::few_golden_layouts(golden.model);
    const auto full = gradients(layouts.front(), {});
    for (const GoldenLayout& layout : layouts) {
      for (const Finetune& finetune :
           {Finetune{.selects = true, .layers = 1},
            Finetune{.selects = true,
            .trained = part_bit(WeightPart::kKey) | part_bit(WeightPart::kUp) |
                       part_bit(WeightPart::kOuterNorms),
            .layers = -1},
            Finetune{.selects = true, .trained = part_bit(WeightPart::kHead)}}) {
        const auto found = gradients(layout, finetune);
        INFO(name << " " << layout.name << " " << finetune.trained);
        CHECK(!found.empty());
        CHECK(found.size() < full.size());
        for (const auto& [tensor, values] : found) {
          INFO(tensor);
          double difference = 0, size = 0;
          for (std::size_t i = 0; i < values.size(); ++i) {
            const double want = full.at(tensor)[i];
            difference += std::pow(static_cast<double>(values[i]) - want, 2);
            size += want * want;
          }
          CHECK(std::sqrt(difference) <= 1e-4 * std::sqrt(size));
        }
      }
    }
  }
}

TEST_CASE("trained parameters are counted as peft counts them") {
  for (const std::string name : {"llama-all", "llama-qv", "bloom-all"}) {
    AdapterCase golden;
    load(name, golden);
    const TrainedCounts counts = trained_counts(golden.model, golden.finetune);
    CHECK(counts.adapters == golden.trained);
    CHECK(counts.trained == golden.trained);
    CHECK(counts.frozen == parameter_count(golden.model));
  }
}

TEST_CASE("new adapters change no loss of the first step") {
  AdapterCase golden;
  load("llama-all", golden);
  fs::remove(golden.checkpoint / "adapter.safetensors");
  const std::vector<GoldenLayout> layouts = test::few_golden_layouts(golden.model);
  const JsonValue full = *read_json_file(kGolden / "llama-tiny/expected.json");
  for (const GoldenLayout& layout : layouts) {
    TrainingRun run = run_of(golden, layout);
    run.steps = 1;
    const StepReport first = train_on_threads(run, *golden.tokens).front();
    INFO(layout.name);
    CHECK(first.loss == Approx(numbers(*full.find("loss")).front()).epsilon(1e-5));
    CHECK(first.grad_norm > 0);
  }
}

TEST_CASE("training of adapters resumes in another layout from saved adapters") {
  AdapterCase golden;
  load("llama-all", golden);
  const test::TemporaryFolder folder;
  const auto plan_of = [&](ParallelDegrees degrees, int zero) {
    GoldenLayout layout{"", test::golden_plan(golden.model, degrees, 2), {}};
    layout.plan.zero = zero;
    return layout;
  };
  TrainingRun first = run_of(golden, plan_of({2, 1, 2, 1}, 1));
  first.state_folder = folder.path();
  first.save_every = first.steps = 6;
  train_on_threads(first, *golden.tokens);
  TrainingRun second = run_of(golden, plan_of({1, 1, 2, 1}, 3));
  second.state_folder = folder.path();
  for (const StepReport& report : train_on_threads(second, *golden.tokens)) {
    INFO("step " << report.step);
    const double wanted = golden.losses[static_cast<std::size_t>(report.step - 1)];
    CHECK(report.loss == Approx(wanted).epsilon(1e-5));
  }
}

}  // namespace tpsim
