// Configuration files as users write them (tests/frameworks/launch/configs), and their YAML and
// TOML.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "core/base/files.h"
#include "core/scenario/catalogue.h"
#include "frameworks/launch/config_files.h"
#include "tests/sim/small_scenario.h"

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
  // The file is older than June 2026.
  CHECK(to_string(read->parts) ==
        "attention_kernel=flash2, loss_head=eager, cp_comm_type=torch_ring, compile=on");
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

TEST_CASE(
    "other adapters, sharded sequences and low-bit weights or optimizers are refused by name") {
  const auto refused = [](const char* line) {
    const auto read = import_config(with("tune.yml", "tf32: false", line), inputs(8));
    return read.ok() ? std::string() : read.error().message;
  };
  CHECK(refused("adapter: llama-adapter") ==
        "trains adapters or a part of the weights: adapter: llama-adapter");
  CHECK(refused("adapter: qlora").empty());
  CHECK(refused("load_in_4bit: true") == "load_in_4bit: true changes the plan and is not modelled");
  CHECK(refused("load_in_4bit: false").empty());
  CHECK(refused("sequence_parallel_degree: 4") ==
        "sequence_parallel_degree: 4 changes the plan and is not modelled");
  CHECK(refused("something_new: 4") == "unknown setting 'something_new'");
  const auto other =
      import_config(with("tune.yml", "adamw_torch_fused", "ademamix_8bit"), inputs(8));
  CHECK(other.error().message ==
        "the optimizer ademamix_8bit changes the plan and is not modelled");
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

TEST_CASE("a format of FP8 in NeMo 1 has an effect only if the switch is on") {
  for (const char* const format : {"fp8_hybrid", "fp8_e4m3"}) {
    for (const char* const before : {"", "  fp8: false\n", "  fp8: true\n"}) {
      for (const bool is_first : {false, true}) {
        const std::string own = fmt::format("  {}: true\n", format);
        const std::string lines = is_first ? own + before : before + own;
        CAPTURE(lines);
        LaunchFile file = config("hydra.yaml");
        file.text.replace(file.text.find("model:\n"), 7, "model:\n" + lines);
        const auto read = import_config(file, inputs());
        REQUIRE(read.ok());
        const bool is_on = lines.find("fp8: true") != std::string::npos;
        CHECK((read->plan.precision == Precision::kFp8) == is_on);
        CHECK((read->plan.precision == Precision::kNone) == !is_on);
      }
    }
  }
  LaunchFile open = config("hydra.yaml");
  open.text.replace(open.text.find("model:\n"), 7, "model:\n  fp8: true\n");
  CHECK_FALSE(import_config(open, inputs()).ok());  // NeMo 1 refuses it too
}

TEST_CASE("a YAML with a section train is NeMo's only if most of its settings are") {
  const std::string batch = "train:\n  global_batch_size: 64\n  micro_batch_size: 1\n";
  const std::string other =
      "model:\n  weights: some/Model\n  attn_implementation: flash_attention_2\n"
      "data:\n  train_path: corpus\n  max_seq_len: 2048\n" +
      batch + "  accelerator:\n    ulysses_size: 1\n";
  const auto unknown = import_config({"run.yaml", other}, inputs(8, "llama-3-8b"));
  CHECK_THAT(unknown.error().message, Catch::Contains("known training program"));
  for (const char* const own :
       {"", "model:\n  context_parallel_size: 1\n", "optimizer:\n  lr: 1\n"}) {
    CAPTURE(own);
    const auto bridge = import_config({"run.yaml", own + batch}, inputs(8, "llama-3-8b"));
    CHECK_THAT(bridge.error().hint, Catch::Contains("model.tensor_model_parallel_size=N"));
  }
}

TEST_CASE("torchtitan's gathers in 8 bits are read, with a note") {
  const LaunchFile file = with("titan.toml", "enable_fsdp_float8_all_gather = false",
                               "enable_fsdp_float8_all_gather = true");
  const auto plain = import_config(config("titan.toml"), inputs(64));
  const auto read = import_config(file, inputs(64));
  REQUIRE(plain.ok());
  REQUIRE(read.ok());
  CHECK(read->plan == plain->plan);
  const bool is_used = read->plan.precision != Precision::kNone;
  CHECK(read->notes.size() == plain->notes.size() + (is_used ? 1 : 0));
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

TEST_CASE("the Trainer's optimizers are kinds of tpsim, with notes on pages") {
  const auto read = [](const std::string& lines) {
    ImportInputs inputs;
    inputs.gpus = 8;
    inputs.model = test::small_llama();
    return import_config({"sft.yaml",
                          "base_model: of-nobody\nsequence_len: 512\nbf16: true\n"
                          "micro_batch_size: 1\n" +
                              lines},
                         inputs);
  };
  for (const auto& [name, kind] :
       {std::pair{"muon", OptimizerKind::kMuon}, std::pair{"sgd", OptimizerKind::kSgd},
        std::pair{"adamw_bnb_8bit", OptimizerKind::kBitsAdamW8},
        std::pair{"paged_adamw_8bit", OptimizerKind::kBitsAdamW8},
        std::pair{"adamw_torch_8bit", OptimizerKind::kTorchAdamW8},
        std::pair{"adamw_torch_4bit", OptimizerKind::kTorchAdamW4},
        std::pair{"lion_8bit", OptimizerKind::kLion8},
        std::pair{"lion_32bit", OptimizerKind::kLion},
        std::pair{"adafactor", OptimizerKind::kAdafactor}}) {
    INFO(name);
    const auto plan = read(std::string("optimizer: ") + name + "\n");
    if (!plan.ok()) FAIL(to_string(plan.error()));
    CHECK(plan->parts.at(StackPart::kOptimizerKind) == static_cast<std::int64_t>(kind));
    const bool is_paged = std::string(name).starts_with("paged");
    const bool is_noted = std::any_of(plan->notes.begin(), plan->notes.end(), [](const auto& note) {
      return note.find("pages") != std::string::npos;
    });
    CHECK(is_noted == is_paged);
  }
  CHECK(read("optim: sgd\noptim_args: momentum=0.9\n")->parts.at(StackPart::kOptimizerKind) ==
        static_cast<std::int64_t>(OptimizerKind::kSgdMomentum));
  for (const char* none :
       {"momentum=0", "momentum=0.0", "nesterov=False,momentum=0.0,dampening=0"}) {
    const auto plan = read(std::string("optim: sgd\noptim_args: ") + none + "\n");
    CHECK(plan->parts.at(StackPart::kOptimizerKind) ==
          static_cast<std::int64_t>(OptimizerKind::kSgd));
  }
  CHECK_FALSE(read("optimizer: adafactor\noptim_args: beta1=0.9\n").ok());
  CHECK_FALSE(read("optimizer: galore_adamw\n").ok());
  CHECK(read("unfrozen_parameters:\n  - model.language_model.*\n  - lm_head.*\n").ok());
}

}  // namespace tpsim
