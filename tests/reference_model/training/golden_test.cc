// The reference model against PyTorch's autograd in float64 (tests/golden), in every kind of
// layout: the same weights give the same losses, gradients and 12-step trajectory wherever they are
// cut.
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
#include "tests/temporary_folder.h"

namespace tpsim {
namespace {

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

struct Layout {
  std::string name;
  Plan plan;
  TrainingOptions options;
};

Plan plan_of(const ModelSpec& model, ParallelDegrees degrees, std::int64_t micro_batch) {
  Plan plan;
  plan.degrees = degrees;
  plan.micro_batch = micro_batch;
  plan.zero = 0;
  plan.recompute = Recompute::kNone;
  plan.stage_layers = even_stage_layers(model.layers, degrees.pp, false);
  return plan;
}

std::vector<Layout> layouts(const ModelSpec& model) {
  std::vector<Layout> list;
  const auto add = [&](const std::string& name, ParallelDegrees degrees, std::int64_t micro_batch,
                       auto change) {
    Layout layout{name, plan_of(model, degrees, micro_batch), {}};
    change(layout);
    layout.plan.global_batch = 8;
    if (validate(layout.plan, model).ok()) list.push_back(layout);
  };
  const auto nothing = [](Layout&) {};
  add("one rank", {1, 1, 1, 1}, 8, nothing);
  add("one rank, micro-batches", {1, 1, 1, 1}, 2, nothing);
  add("full recompute", {1, 1, 1, 1}, 4, [](Layout& l) { l.plan.recompute = Recompute::kFull; });
  add("some blocks recomputed", {1, 1, 1, 1}, 4, [](Layout& l) {
    l.plan.recompute = Recompute::kBlocks;
    l.plan.recompute_blocks = 2;
  });
  add("one block of every stage recomputed, zero 3", {1, 2, 2, 1}, 2, [](Layout& l) {
    l.plan.recompute = Recompute::kBlocks;
    l.plan.recompute_blocks = 1;
    l.plan.zero = 3;
  });
  add("selective", {1, 1, 1, 1}, 4, [](Layout& l) { l.plan.recompute = Recompute::kSelective; });
  add("flash", {1, 1, 1, 1}, 4, [](Layout& l) { l.plan.attention = AttentionKind::kFlash; });
  for (const std::int64_t tp : {2, 3}) {
    const std::string name = "tp" + std::to_string(tp);
    add(name, {tp, 1, 1, 1}, 4, nothing);
    add(name + " flash", {tp, 1, 1, 1}, 4,
        [](Layout& l) { l.plan.attention = AttentionKind::kFlash; });
    add(name + " sequence parallel", {tp, 1, 1, 1}, 4,
        [](Layout& l) { l.plan.sequence_parallel = true; });
    add(name + " sequence parallel, full recompute, pp2", {tp, 2, 1, 1}, 2, [](Layout& l) {
      l.plan.sequence_parallel = true;
      l.plan.recompute = Recompute::kFull;
    });
  }
  for (const std::int64_t pp : {2, 4}) {
    const std::string name = "pp" + std::to_string(pp);
    add(name, {1, pp, 1, 1}, 2, nothing);
    add(name + " gpipe", {1, pp, 1, 1}, 2,
        [](Layout& l) { l.plan.schedule = ScheduleKind::kGpipe; });
    add(name + " one micro-batch", {1, pp, 1, 1}, 8, nothing);
  }
  add("interleaved", {1, 2, 1, 1}, 1, [&](Layout& l) {
    l.plan.schedule = ScheduleKind::kInterleaved;
    l.plan.virtual_stages = 2;
    l.plan.stage_layers = even_stage_layers(model.layers, 4, false);
  });
  add("uneven stages", {1, 2, 1, 1}, 2, [](Layout& l) { l.plan.stage_layers = {1, 3}; });
  for (const int zero : {0, 1, 2, 3}) {
    const auto set = [zero](Layout& l) { l.plan.zero = zero; };
    const std::string name = " zero" + std::to_string(zero);
    add("dp2" + name, {1, 1, 2, 1}, 2, set);
    add("dp4" + name, {1, 1, 4, 1}, 1, set);
    add("tp2 dp2" + name, {2, 1, 2, 1}, 2, set);
    add("pp2 dp2" + name, {1, 2, 2, 1}, 2, set);
    add("tp2 pp2 dp2 sp" + name, {2, 2, 2, 1}, 1, [zero](Layout& l) {
      l.plan.zero = zero;
      l.plan.sequence_parallel = true;
      l.plan.recompute = Recompute::kFull;
    });
  }
  for (const int zero : {0, 1, 2, 3}) {
    add("dp2 offloaded optimizer, zero" + std::to_string(zero), {1, 1, 2, 1}, 2, [zero](Layout& l) {
      l.plan.zero = zero;
      l.plan.offload = Offload::kOptimizer;
    });
  }
  for (const std::int64_t cp : {2, 3, 4}) {
    const std::string name = "cp" + std::to_string(cp);
    add(name, {1, 1, 1, cp}, 4, nothing);
    add(name + " flash", {1, 1, 1, cp}, 2,
        [](Layout& l) { l.plan.attention = AttentionKind::kFlash; });
    add(name + " tp2 sequence parallel", {2, 1, 1, cp}, 4, [](Layout& l) {
      l.plan.sequence_parallel = true;
      l.plan.recompute = Recompute::kSelective;
    });
  }
  add("cp2 tp3 sequence parallel", {3, 1, 1, 2}, 4,
      [](Layout& l) { l.plan.sequence_parallel = true; });
  for (const int zero : {0, 1, 2, 3}) {
    add("cp2 dp2 zero" + std::to_string(zero), {1, 1, 2, 2}, 2, [zero](Layout& l) {
      l.plan.zero = zero;
      l.plan.recompute = Recompute::kFull;
    });
  }
  add("cp2 tp2 pp2 zero1 sequence parallel, flash", {2, 2, 1, 2}, 2, [](Layout& l) {
    l.plan.zero = 1;
    l.plan.sequence_parallel = true;
    l.plan.attention = AttentionKind::kFlash;
    l.plan.recompute = Recompute::kFull;
  });
  add("cp2 interleaved", {1, 2, 1, 2}, 1, [&](Layout& l) {
    l.plan.schedule = ScheduleKind::kInterleaved;
    l.plan.virtual_stages = 2;
    l.plan.stage_layers = even_stage_layers(model.layers, 4, false);
  });
  add("cp2 dp2 pp2 gpipe, tp-pp-dp rank order", {1, 2, 2, 2}, 1, [](Layout& l) {
    l.plan.schedule = ScheduleKind::kGpipe;
    l.plan.rank_order = RankOrder::kTpPpDp;
    l.plan.zero = 1;
  });
  add("zero1 all-reduced gradients", {1, 1, 2, 1}, 2, [](Layout& l) {
    l.plan.zero = 1;
    l.options.gradient_reduction = GradientReduction::kAllReduce;
  });
  add("whole activations between stages", {2, 2, 1, 1}, 2,
      [](Layout& l) { l.options.scatter_gather_transfers = false; });
  add("tp-pp-dp rank order", {1, 2, 2, 1}, 2, [](Layout& l) {
    l.plan.rank_order = RankOrder::kTpPpDp;
    l.plan.zero = 1;
  });
  return list;
}

}  // namespace

TEST_CASE("every layout follows PyTorch's losses and gradient norms") {
  for (const std::string name : {"bloom-tiny", "llama-tiny"}) {
    const Golden golden = load(name);
    for (const Layout& layout : layouts(golden.model)) {
      INFO(name << " " << layout.name);
      TrainingRun run = run_of(golden, layout.plan);
      run.options = layout.options;
      check_trajectory(golden, train_on_threads(run, golden.tokens));
    }
  }
}

namespace {

// Every gradient of the first step that the case holds, and no other.
void check_gradients(const Golden& golden, const Layout& layout) {
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

TEST_CASE("gradients of the first step equal PyTorch's, put together from any layout") {
  for (const std::string name : {"bloom-tiny", "llama-tiny"}) {
    const Golden golden = load(name);
    for (const Layout& layout : layouts(golden.model)) check_gradients(golden, layout);
  }
}

namespace {

// Layouts of the issue for models of today: fewer than above, every setting met once.
std::vector<Layout> few_layouts(const ModelSpec& model) {
  std::vector<Layout> list;
  const bool routed = has_experts(model);
  const auto add = [&](ParallelDegrees degrees, std::int64_t micro_batch, auto change) {
    Layout layout{"", plan_of(model, degrees, micro_batch), {}};
    layout.plan.sequence_parallel = routed && degrees.tp > 1;
    change(layout.plan);
    layout.plan.global_batch = 8;
    layout.name = std::to_string(list.size());
    if (validate(layout.plan, model).ok()) list.push_back(layout);
  };
  const auto flash = [](Plan& p) { p.attention = AttentionKind::kFlash; };
  add({1, 1, 1, 1}, 4, [](Plan&) {});
  add({1, 1, 1, 1}, 8, flash);
  add({1, 1, 1, 1}, 4, [](Plan& p) { p.recompute = Recompute::kFull; });
  add({1, 1, 1, 1}, 4, [](Plan& p) { p.recompute = Recompute::kSelective; });
  add({2, 1, 1, 1}, 4, [](Plan&) {});
  add({2, 2, 1, 1}, 2, [&](Plan& p) {
    flash(p);
    p.sequence_parallel = true;
    p.recompute = Recompute::kFull;
  });
  add({1, 2, 2, 1}, 2, [](Plan& p) { p.zero = 2; });
  add({1, 1, 4, 1}, 1, [](Plan& p) { p.zero = 3; });
  add({2, 1, 2, 1}, 2, [](Plan& p) { p.zero = 1; });
  add({1, 1, 1, 2}, 4, flash);
  if (routed) {
    add({1, 1, 2, 1, 2}, 2, [](Plan& p) { p.zero = 1; });
    add({1, 1, 4, 1, 4}, 2, [](Plan&) {});
    add({2, 1, 2, 1, 2}, 2, [](Plan& p) { p.zero = 3; });
  }
  return list;
}

const std::vector<std::string> kToday = {"mistral-tiny", "qwen2-tiny",   "llama3-tiny",
                                         "qwen3-tiny",   "phi3-tiny",    "gemma2-tiny",
                                         "gemma3-tiny",  "mixtral-tiny", "qwen3-moe-tiny",
                                         "gpt-oss-tiny", "llama4-tiny",  "deepseek-v3-tiny"};

// The case of the environment alone, for work on one.
std::vector<std::string> cases_of_today() {
  const char* only = std::getenv("TPSIM_GOLDEN_CASE");
  return only != nullptr ? std::vector<std::string>{only} : kToday;
}

}  // namespace

TEST_CASE("models of today follow PyTorch's losses and gradient norms in every kind of layout") {
  for (const std::string& name : cases_of_today()) {
    const Golden golden = load(name);
    for (const Layout& layout : few_layouts(golden.model)) {
      INFO(name << " layout " << layout.name);
      check_trajectory(golden, train_on_threads(run_of(golden, layout.plan), golden.tokens));
    }
  }
}

TEST_CASE("gradients of models of today equal PyTorch's under the checkpoint's names") {
  for (const std::string& name : cases_of_today()) {
    const Golden golden = load(name);
    for (const Layout& layout : few_layouts(golden.model)) check_gradients(golden, layout);
  }
}

TEST_CASE("bf16 training stays within a hundredth of the float64 losses") {
  for (const std::string name : {"bloom-tiny", "llama-tiny"}) {
    const Golden golden = load(name);
    for (const bool fused : {true, false}) {
      TrainingRun run = run_of(golden, plan_of(golden.model, {2, 2, 1, 1}, 2));
      run.plan.dtype = DType::kBFloat16;
      run.options.fused_gradient_accumulation = fused;
      for (const StepReport& report : train_on_threads(run, golden.tokens)) {
        INFO(name << " step " << report.step);
        CHECK(report.loss ==
              Approx(golden.losses[static_cast<std::size_t>(report.step - 1)]).epsilon(1e-2));
      }
    }
  }
}

// Each operand is off by 2^-4 of itself at most (E4M3 keeps three bits), a sum over many of them by
// far less: half of one rounding bounds what it does to a loss.
TEST_CASE("emulated products of 8 bits stay within half a rounding of the fp32 losses") {
  constexpr double kHalfRounding = 1.0 / 32;
  for (const std::string name : {"bloom-tiny", "llama-tiny", "mixtral-tiny"}) {
    const Golden golden = load(name);
    const auto losses_with = [&](Precision precision) {
      TrainingRun run = run_of(golden, plan_of(golden.model, {2, 1, 1, 1}, 2));
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

TEST_CASE("training resumes in another layout where it stopped") {
  const Golden golden = load("bloom-tiny");
  const test::TemporaryFolder folder;
  TrainingRun first = run_of(golden, plan_of(golden.model, {2, 1, 1, 2}, 2));
  first.plan.zero = 1;
  first.state_folder = folder.path();
  first.save_every = 6;
  first.steps = 6;
  train_on_threads(first, golden.tokens);

  TrainingRun second = run_of(golden, plan_of(golden.model, {1, 1, 4, 1}, 1));
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
