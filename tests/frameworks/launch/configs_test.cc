// Configuration files as users write them (tests/frameworks/launch/configs), and their YAML and
// TOML.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "core/base/files.h"
#include "core/scenario/catalogue.h"
#include "frameworks/launch/config_files.h"

namespace tpsim {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;

std::filesystem::path configs() {
  return std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/frameworks/launch/configs";
}

LaunchFile config(const std::string& name) {
  return {name, read_file(configs() / name, kMostBytes).value()};
}

// Inputs for everything that a file may leave open.
ImportInputs inputs(std::int64_t gpus = 0, const char* model = nullptr) {
  const Catalogue catalogue = Catalogue::open().value();
  ImportInputs all;
  all.gpus = gpus;
  if (model != nullptr) all.model = catalogue.load_model(model).value();
  all.load = [catalogue](const std::string&) { return catalogue.load_model("llama-2-7b"); };
  all.open = [](const std::string& name) { return read_file(configs() / name, kMostBytes); };
  return all;
}

LaunchFile with(const std::string& name, const std::string& part, const std::string& instead) {
  LaunchFile file = config(name);
  file.text.replace(file.text.find(part), part.size(), instead);
  return file;
}

std::string value_of(const std::vector<FlatSetting>& settings, const std::string& key) {
  for (const FlatSetting& setting : settings) {
    if (setting.key == key) return setting.value;
  }
  return "(none)";
}

}  // namespace

TEST_CASE("torchtitan's TOML and a GPU count give a plan") {
  const auto read = import_config(config("titan.toml"), inputs(16, "llama-3-8b"));
  REQUIRE(read.ok());
  CHECK(read->plan.degrees == ParallelDegrees{.tp = 2, .dp = 8});  // -1: the remaining GPUs
  CHECK(read->plan.zero == 3);
  CHECK(read->plan.recompute == Recompute::kOps);
  CHECK(read->plan.global_batch == 128);
  CHECK(read->plan.micro_batch == 2);
  CHECK(read->model.seq == 4096);  // from the file, where the model has 8192
  CHECK(read->parts == PartValues{{StackPart::kCompile, 1}});
  CHECK(read->stack == "torchtitan");
  const auto narrow = import_config(
      with("titan.toml", "converters = []", "converters = [\"float8\"]"), inputs(16, "llama-3-8b"));
  if (!narrow.ok()) FAIL(to_string(narrow.error()));
  CHECK(narrow->plan.precision == Precision::kFp8Current);
  const auto unknown = import_config(
      with("titan.toml", "converters = []", "converters = [\"int8\"]"), inputs(16, "llama-3-8b"));
  REQUIRE_FALSE(unknown.ok());
  CHECK_THAT(unknown.error().message, Catch::Contains("--model.converters is 'int8'"));
  CHECK_FALSE(import_config(config("titan.toml"), inputs(0, "llama-3-8b")).ok());
  const auto ignored = [](const ImportInputs& how, const char* option) {
    const auto outside = import_config(config("titan.toml"), how).value().outside;
    return std::count(outside.begin(), outside.end(), option) > 0;
  };
  CHECK(ignored(inputs(16, "llama-3-8b"), "--model.flavor"));
  CHECK_FALSE(ignored(inputs(16), "--model.flavor"));  // the model is read from the option
}

TEST_CASE("torchtitan's reduction dtype is read as a part, and only float32 is written") {
  ImportInputs how = inputs(16, "llama-3-8b");
  how.given = {{"training.mixed_precision_reduce", "bfloat16"}};
  const auto read = import_config(config("titan.toml"), how);
  if (!read.ok()) FAIL(to_string(read.error()));
  const auto as_computed = static_cast<std::int64_t>(ReduceDtype::kAsComputed);
  CHECK(read->parts.at(StackPart::kReduceDtype) == as_computed);
  PlanFile file;
  file.model = read->model;
  file.plan = read->plan;
  file.parts = read->parts;
  const auto files = export_plan(LaunchStack::kTorchTitan, file, 8);
  if (!files.ok()) FAIL(to_string(files.error()));
  CHECK_THAT(files->front().text, Catch::Contains("mixed_precision_reduce float32"));
}

TEST_CASE("nanotron's YAML gives a model and a plan") {
  const auto read = import_config(config("nano.yaml"), inputs());
  REQUIRE(read.ok());
  CHECK(read->plan.degrees == ParallelDegrees{.tp = 4, .pp = 2, .dp = 4});
  CHECK(read->plan.sequence_parallel);
  CHECK(read->plan.zero == 1);
  CHECK(read->plan.global_batch == 2L * 16 * 4);
  CHECK(read->model.attention.kv_heads == 8);
  CHECK(read->model.attention.rope_theta == 500000);
  CHECK(read->model.tied_embedding);
  CHECK(read->parts.empty());
  const auto kept = import_config(
      with("nano.yaml", "  recompute_layer: false", "  tp_recompute_allgather: false"), inputs());
  REQUIRE(kept.ok());
  CHECK(kept->parts.at(StackPart::kTpRecomputeAllgather) == 0);
  const auto unknown = import_config(
      with("nano.yaml", "  recompute_layer: false", "  recompute_leyer: true"), inputs());
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().message == "unknown setting 'parallelism.recompute_leyer'");
  CHECK(unknown.error().where == "nano.yaml:46");
  CHECK_THAT(unknown.error().hint, Catch::Contains("parallelism.recompute_layer"));
}

TEST_CASE("Trainer's files give sharded data parallelism, from any of their formats") {
  const auto fsdp = import_config(config("fsdp.yaml"), [] {
    ImportInputs all = inputs(0, "llama-3-8b");
    all.micro_batch = 2;
    return all;
  }());
  REQUIRE(fsdp.ok());
  CHECK(fsdp->plan.degrees == ParallelDegrees{.dp = 16});
  CHECK(fsdp->plan.zero == 2);
  CHECK(fsdp->plan.recompute == Recompute::kFull);
  CHECK(fsdp->stack == "pytorch-fsdp");
  CHECK_FALSE(import_config(config("fsdp.yaml"), inputs(0, "llama-3-8b")).ok());  // no batch

  const auto tune = import_config(config("tune.yml"), inputs(8));
  REQUIRE(tune.ok());
  CHECK(tune->plan.zero == 3);  // from the DeepSpeed JSON that the file names
  CHECK(tune->plan.global_batch == 2L * 4 * 8);
  CHECK(tune->plan.dtype == DType::kBFloat16);
  CHECK(tune->model.seq == 4096);
  CHECK(tune->stack == "deepspeed-zero3");
  CHECK(tune->parts.at(StackPart::kOptimizerKernel) == 0);

  const auto trainer = import_config(config("trainer.json"), inputs(8));
  REQUIRE(trainer.ok());
  CHECK(trainer->plan.zero == 3);
  CHECK(trainer->parts.at(StackPart::kLossHead) == static_cast<std::int64_t>(LossHead::kChunked));
  CHECK_FALSE(trainer->parts.contains(StackPart::kGradientSync));  // not stated
  const auto synced = import_config(
      with("trainer.json", R"("logging_steps": 10)",
           R"("accelerator_config": {"gradient_accumulation_kwargs": {"sync_each_batch": true}})"),
      inputs(8));
  REQUIRE(synced.ok());
  CHECK(synced->parts.at(StackPart::kGradientSync) ==
        static_cast<std::int64_t>(GradientSync::kEveryMicroBatch));
}

TEST_CASE("adapters, sharded sequences and low-bit weights or optimizers are refused by name") {
  const auto refused = [](const char* line) {
    const auto read = import_config(with("tune.yml", "tf32: false", line), inputs(8));
    return read.ok() ? std::string() : read.error().message;
  };
  CHECK(refused("adapter: qlora") == "trains adapters or a part of the weights: adapter: qlora");
  CHECK(refused("load_in_4bit: true") == "load_in_4bit: true changes the plan and is not modelled");
  CHECK(refused("load_in_4bit: false").empty());
  CHECK(refused("sequence_parallel_degree: 4") ==
        "sequence_parallel_degree: 4 changes the plan and is not modelled");
  CHECK(refused("something_new: 4") == "unknown setting 'something_new'");
  const auto paged =
      import_config(with("tune.yml", "adamw_torch_fused", "paged_adamw_8bit"), inputs(8));
  CHECK(paged.error().message ==
        "the optimizer paged_adamw_8bit changes the plan and is not modelled");
}

TEST_CASE("Megatron's and NeMo's arguments are read from YAML") {
  const auto read = import_config(config("arguments.yaml"), inputs(16));
  REQUIRE(read.ok());
  CHECK(read->plan.degrees == ParallelDegrees{.tp = 4, .pp = 2, .dp = 2});
  CHECK(read->model.mlp == MlpKind::kSwiglu);
  CHECK_FALSE(read->model.linear_bias);
  CHECK(read->model.vocab == 32000);
  const auto hydra = import_config(config("hydra.yaml"), inputs());
  REQUIRE(hydra.ok());
  CHECK(hydra->plan.degrees == ParallelDegrees{.tp = 2, .pp = 2, .dp = 8});
  CHECK(hydra->plan.recompute == Recompute::kSelective);
  CHECK(hydra->plan.zero == 1);
  CHECK(hydra->model.norm == NormKind::kRmsNorm);
  CHECK(hydra->model.seq == 4096);
}

TEST_CASE("YAML is read by its indentation, with lists, quotes and comments") {
  const auto all =
      flat_yaml(
          "# first\n---\na: 1 # one\nb:\n  c: 'x # y'\n  d:\n  - e: 2\n    f: \"g: h\"\n  - 3\n"
          "k: {l: [1, 2], m: null}\nt: |\n  any: thing\n  else\nu: http://x:1\n",
          "it.yaml")
          .value();
  CHECK(value_of(all, "a") == "1");
  CHECK(value_of(all, "b.c") == "x # y");
  CHECK(value_of(all, "b.d.0.e") == "2");
  CHECK(value_of(all, "b.d.0.f") == "g: h");
  CHECK(value_of(all, "b.d.1") == "3");
  CHECK(value_of(all, "k.l.1") == "2");
  CHECK(value_of(all, "k.m").empty());
  CHECK(value_of(all, "t.any") == "(none)");
  CHECK(value_of(all, "u") == "http://x:1");
  for (const char* wrong : {"a: 1\nb\n", "a: *x\n", "<<: x\n", "a: [1, 2\n", "a: 1\n---\nb: 2\n",
                            "a: !here 1\n", "a: 'x\nb: 2\n", "\ta: 1\n", "[a]: 1\n", "words\n"}) {
    CAPTURE(wrong);
    const auto read = flat_yaml(wrong, "it.yaml");
    REQUIRE_FALSE(read.ok());
    CHECK_THAT(read.error().where, Catch::StartsWith("it.yaml:"));
  }
  CHECK(flat_yaml("a: 1\nb: 'x\nc: 2\n", "it.yaml").error().where == "it.yaml:2");
}

TEST_CASE("values keep their text and their line") {
  const auto yaml = flat_yaml("a: 0010\nb: 1e-5\nc: yes\nd:\ne: !!int 3\nf: \"null\"\n", "it.yaml");
  CHECK(value_of(*yaml, "a") == "0010");
  CHECK(value_of(*yaml, "b") == "1e-5");
  CHECK(value_of(*yaml, "c") == "yes");
  CHECK(value_of(*yaml, "d") == "(none)");
  CHECK(value_of(*yaml, "e") == "3");
  CHECK(value_of(*yaml, "f") == "null");
  CHECK(yaml->back().line == 6);
  const auto toml = flat_toml("z = 1e-5\n\"\u00e9\" = [2.50, 0x10]\nb.c = 2024-01-02\n", "it.toml");
  if (!toml.ok()) FAIL(to_string(toml.error()));
  CHECK(toml->front().key == "z");  // in file order
  CHECK(toml->front().value == "1e-5");
  CHECK(value_of(*toml, "\u00e9.0") == "2.50");
  CHECK(value_of(*toml, "\u00e9.1") == "0x10");
  CHECK(value_of(*toml, "b.c") == "2024-01-02");
  CHECK(toml->back().line == 3);
}

TEST_CASE("files with excessive depth or length are refused") {
  std::string dots = "a";
  for (int i = 0; i < 200000; ++i) dots += ".a";
  CHECK_FALSE(flat_toml(dots + " = 1\n", "it.toml").ok());
  CHECK_FALSE(flat_toml("[" + dots + "]\nb = 1\n", "it.toml").ok());
  CHECK_FALSE(flat_toml("a = " + std::string(200000, '['), "it.toml").ok());
  CHECK_FALSE(flat_yaml("a: " + std::string(200000, '['), "it.yaml").ok());
  CHECK_FALSE(flat_yaml("a: &a [*a]\n", "it.yaml").ok());
  CHECK_FALSE(flat_yaml("a: &a\n  <<: *a\n", "it.yaml").ok());
  std::string empty = "a0: &a0 []\n", merges = "a0: &a0 {}\n";
  for (int i = 1; i < 40; ++i) {
    empty += fmt::format("a{0}: &a{0} [*a{1}, *a{1}]\n", i, i - 1);
    merges += fmt::format("a{0}: &a{0} {{<<: [*a{1}, *a{1}]}}\n", i, i - 1);
  }
  CHECK_FALSE(flat_yaml(empty, "it.yaml").ok());
  CHECK_FALSE(flat_yaml(merges, "it.yaml").ok());
}

TEST_CASE("TOML is read by its tables") {
  const auto all = flat_toml(
                       "a = 1\n[b]\nc = \"x # y\" # z\nd = [\n  1, # one\n  2,\n]\n[b.e]\nf = {g = "
                       "true}\n[[h]]\ni = 1\n"
                       "[[h]]\ni = 2\n",
                       "it.toml")
                       .value();
  CHECK(value_of(all, "a") == "1");
  CHECK(value_of(all, "b.c") == "x # y");
  CHECK(value_of(all, "b.d.1") == "2");
  CHECK(value_of(all, "b.e.f.g") == "true");
  CHECK(value_of(all, "h.1.i") == "2");
  CHECK(flat_toml("[a]\nb\n", "it.toml").error().where == "it.toml:2");
}

}  // namespace tpsim
