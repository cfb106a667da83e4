// The reference model compared with PyTorch's autograd in float64 (tests/golden), in every kind of
// layout. Equal weights give equal losses, gradients and 12-step trajectories, however they are
// sharded.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "core/json/json_document.h"
#include "core/json/safetensors.h"
#include "core/model/model_json.h"
#include "kernels/cpu/cpu_device.h"
#include "ranks/threads/thread_world.h"
#include "reference_model/training/training.h"
#include "tests/reference_model/training/golden_layouts.h"
#include "tests/temporary_folder.h"

namespace tpsim {
namespace {

using test::few_golden_layouts;
using test::golden_layouts;
using test::golden_plan;
using test::GoldenLayout;

const std::filesystem::path kGolden = std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/golden";

struct Golden {
  std::filesystem::path folder;
  ModelSpec model;
  TokenSource tokens;
  std::vector<double> losses, norms;
};

std::vector<double> numbers(const JsonValue& value) {
  std::vector<double> result;
  for (const JsonValue& x : *value.as<JsonValue::Array>()) result.push_back(*x.as<double>());
  return result;
}

Golden load(const std::string& name) {
  Golden golden{
      kGolden / name, {}, *TokenSource::open(kGolden / name / "tokens.safetensors"), {}, {}};
  golden.model = *read_model(golden.folder / "config.json");
  golden.model.seq = golden.tokens.seq();
  const JsonValue expected = *read_json_file(golden.folder / "expected.json");
  golden.losses = numbers(*expected.find("loss"));
  golden.norms = numbers(*expected.find("grad_norm_before_clip"));
  return golden;
}

TrainingRun run_of(const Golden& golden, const Plan& plan) {
  TrainingRun run;
  run.model = golden.model;
  run.plan = plan;
  run.plan.dtype = DType::kFloat32;
  run.plan.global_batch = 8;
  run.optimizer = {1e-3, 0.9, 0.95, 1e-8, 0.1, 1.0};
  run.steps = static_cast<std::int64_t>(golden.losses.size());
  run.checkpoint = golden.folder;
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

void check_trajectory(const Golden& golden, const std::vector<StepReport>& reports) {
  REQUIRE(reports.size() <= golden.losses.size());
  for (std::size_t i = 0; i < reports.size(); ++i) {
    INFO("step " << i + 1);
    CHECK(reports[i].loss == Approx(golden.losses[i]).epsilon(1e-5));
    CHECK(reports[i].grad_norm == Approx(golden.norms[i]).epsilon(1e-4));
  }
}

}  // namespace

TEST_CASE("every layout follows PyTorch's losses and gradient norms") {
  for (const std::string name : {"bloom-tiny", "llama-tiny"}) {
    const Golden golden = load(name);
    for (const GoldenLayout& layout : golden_layouts(golden.model)) {
      INFO(name << " " << layout.name);
      TrainingRun run = run_of(golden, layout.plan);
      run.options = layout.options;
      check_trajectory(golden, train_on_threads(run, golden.tokens));
    }
  }
}

namespace {

// Compares every gradient of the first step, and checks that there are no others.
void check_gradients(const Golden& golden, const GoldenLayout& layout) {
  const SafetensorsFile expected =
      *SafetensorsFile::open(golden.folder / "expected_step0.safetensors");
  TrainingRun run = run_of(golden, layout.plan);
  run.options = layout.options;
  run.steps = 1;
  const test::TemporaryFolder folder;
  run.dump_gradients = folder / "gradients.safetensors";
  train_on_threads(run, golden.tokens);
  const SafetensorsFile found = *SafetensorsFile::open(run.dump_gradients);
  std::size_t compared = 0;
  for (const auto& [key, entry] : expected.entries()) {
    if (key.compare(0, 5, "grad.") != 0) continue;
    std::string parameter = key.substr(5);
    if (parameter.compare(0, 12, "transformer.") == 0) parameter.erase(0, 12);
    if (found.entries().count(parameter) == 0) continue;
    std::int64_t count = 1;
    for (const std::int64_t dim : entry.shape) count *= dim;
    const auto want = *expected.read_floats(key, 0, count);
    const auto have = *found.read_floats(parameter, 0, count);
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      difference += std::pow(static_cast<double>(have[i]) - want[i], 2);
      size += std::pow(static_cast<double>(want[i]), 2);
    }
    INFO(golden.folder.filename() << " " << layout.name << " " << parameter);
    CHECK(std::sqrt(difference) <= 1e-4 * std::sqrt(size));
    ++compared;
  }
  INFO(golden.folder.filename() << " " << layout.name);
  CHECK(compared == found.entries().size());
}

}  // namespace

TEST_CASE("gradients of the first step equal PyTorch's, gathered from any layout") {
  for (const std::string name : {"bloom-tiny", "llama-tiny"}) {
    const Golden golden = load(name);
    for (const GoldenLayout& layout : golden_layouts(golden.model)) check_gradients(golden, layout);
  }
}

namespace {

const std::vector<std::string> kToday = {"mistral-tiny", "qwen2-tiny",   "llama3-tiny",
                                         "qwen3-tiny",   "phi3-tiny",    "gemma2-tiny",
                                         "gemma3-tiny",  "mixtral-tiny", "qwen3-moe-tiny",
                                         "gpt-oss-tiny", "llama4-tiny",  "deepseek-v3-tiny"};

// With TPSIM_GOLDEN_CASE, only the named case, for debugging.
std::vector<std::string> cases_of_today() {
  const char* only = std::getenv("TPSIM_GOLDEN_CASE");
  return only != nullptr ? std::vector<std::string>{only} : kToday;
}

}  // namespace

TEST_CASE("recent models follow PyTorch's losses and gradient norms in every kind of layout") {
  for (const std::string& name : cases_of_today()) {
    const Golden golden = load(name);
    for (const GoldenLayout& layout : few_golden_layouts(golden.model)) {
      INFO(name << " layout " << layout.name);
      check_trajectory(golden, train_on_threads(run_of(golden, layout.plan), golden.tokens));
    }
  }
}

TEST_CASE("gradients of recent models equal PyTorch's under the checkpoint's names") {
  for (const std::string& name : cases_of_today()) {
    const Golden golden = load(name);
    for (const GoldenLayout& layout : few_golden_layouts(golden.model)) {
      check_gradients(golden, layout);
    }
  }
}

TEST_CASE("bf16 training stays within 1 % of the float64 losses") {
  for (const std::string name : {"bloom-tiny", "llama-tiny"}) {
    const Golden golden = load(name);
    for (const bool fused : {true, false}) {
      TrainingRun run = run_of(golden, golden_plan(golden.model, {2, 2, 1, 1}, 2));
      run.plan.dtype = DType::kBFloat16;
      run.options.gradient_accumulation =
          fused ? GradientAccumulation::kFused : GradientAccumulation::kSeparate;
      for (const StepReport& report : train_on_threads(run, golden.tokens)) {
        INFO(name << " step " << report.step);
        CHECK(report.loss ==
              Approx(golden.losses[static_cast<std::size_t>(report.step - 1)]).epsilon(1e-2));
      }
    }
  }
}

// Each operand is off by at most 2^-4 (E4M3 has three mantissa bits), and sums of many operands by
// far less. Half of one rounding bounds the effect on a loss.
TEST_CASE("emulated 8-bit GEMMs stay within half a rounding of the fp32 losses") {
  constexpr double kHalfRounding = 1.0 / 32;
  for (const std::string name : {"bloom-tiny", "llama-tiny", "mixtral-tiny"}) {
    const Golden golden = load(name);
    const auto losses_with = [&](Precision precision) {
      TrainingRun run = run_of(golden, golden_plan(golden.model, {2, 1, 1, 1}, 2));
      run.plan.dtype = DType::kBFloat16;
      run.plan.precision = precision;
      run.plan.sequence_parallel = has_experts(golden.model);
      std::vector<double> losses;
      for (const StepReport& report : train_on_threads(run, golden.tokens)) {
        losses.push_back(report.loss);
      }
      return losses;
    };
    const std::vector<double> wide = losses_with(Precision::kNone);
    for (const Precision precision :
         {Precision::kFp8, Precision::kFp8Current, Precision::kFp8Block, Precision::kMxFp8}) {
      const std::vector<double> narrow = losses_with(precision);
      REQUIRE(narrow.size() == golden.losses.size());
      CHECK(narrow != wide);
      for (std::size_t step = 0; step < narrow.size(); ++step) {
        INFO(name << " " << name_of(precision) << " step " << step + 1);
        CHECK(narrow[step] == Approx(golden.losses[step]).epsilon(kHalfRounding));
      }
    }
  }
}

TEST_CASE("training resumes in another layout") {
  const Golden golden = load("bloom-tiny");
  const test::TemporaryFolder folder;
  TrainingRun first = run_of(golden, golden_plan(golden.model, {2, 1, 1, 2}, 2));
  first.plan.zero = 1;
  first.state_folder = folder.path();
  first.save_every = 6;
  first.steps = 6;
  train_on_threads(first, golden.tokens);

  TrainingRun second = run_of(golden, golden_plan(golden.model, {1, 1, 4, 1}, 1));
  second.plan.zero = 3;
  second.state_folder = folder.path();
  const std::vector<StepReport> rest = train_on_threads(second, golden.tokens);
  REQUIRE(rest.size() == 6);
  CHECK(rest.front().step == 7);
  for (const StepReport& report : rest) {
    CHECK(report.loss ==
          Approx(golden.losses[static_cast<std::size_t>(report.step - 1)]).epsilon(1e-5));
  }
}

}  // namespace tpsim
