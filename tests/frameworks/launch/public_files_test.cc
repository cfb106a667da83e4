// Configurations and scripts with the syntax, names and oddities of published ones.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "core/base/files.h"
#include "core/scenario/catalogue.h"
#include "formats/settings_text.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_command.h"

namespace tpsim {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;

std::filesystem::path folder() {
  return std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/frameworks/launch";
}

LaunchFile config(const std::string& name) {
  return {name, read_file(folder() / "configs" / name, kMostBytes).value()};
}

ImportInputs inputs(std::int64_t gpus, std::map<std::string, std::string> given = {}) {
  const Catalogue catalogue = Catalogue::open().value();
  ImportInputs all;
  all.gpus = gpus;
  all.given = std::move(given);
  all.load = [catalogue](const std::string& name) {
    auto model = catalogue.load_model(name);
    return model.ok() ? std::move(model) : catalogue.load_model("llama-2-7b");
  };
  all.open = [](const std::string& name) {
    return read_file((folder() / "scripts" / name).lexically_normal(), kMostBytes);
  };
  return all;
}

ImportInputs of_model(const char* model, std::int64_t gpus,
                      std::map<std::string, std::string> given = {}) {
  ImportInputs all = inputs(gpus, std::move(given));
  all.model = Catalogue::open().value().load_model(model).value();
  return all;
}

ImportedPlan read(const std::string& name, const ImportInputs& how) {
  auto plan = import_config(config(name), how);
  if (!plan.ok()) FAIL(to_string(plan.error()));
  return *std::move(plan);
}

Error refused(const LaunchFile& file, const ImportInputs& how) {
  const auto plan = import_config(file, how);
  REQUIRE_FALSE(plan.ok());
  return plan.error();
}

bool names(const ImportedPlan& plan, const std::string& key) {
  return std::find(plan.outside.begin(), plan.outside.end(), key) != plan.outside.end();
}

Result<ImportedPlan> of_script(const std::string& name, const ImportInputs& how) {
  LaunchFile file{"megatron-lm.sh", read_file(folder() / "scripts" / name, kMostBytes).value(),
                  "their/" + name};
  return import_plan(LaunchStack::kMegatronLm, {file}, how);
}

}  // namespace

TEST_CASE("options of a command line are read like the keys of a YAML file") {
  const ImportedPlan plan = read("cases.yaml", inputs(32));
  CHECK(plan.plan.degrees == ParallelDegrees{.tp = 4, .pp = 2, .dp = 4});
  CHECK(plan.plan.sequence_parallel);
  CHECK(plan.plan.zero == 1);
  CHECK(plan.plan.micro_batch == 2);
  CHECK(plan.plan.global_batch == 64);
  CHECK(plan.model.vocab == 65536);
  CHECK(plan.parts.at(StackPart::kRotaryKernel) == static_cast<std::int64_t>(RotaryKernel::kTorch));
  CHECK(plan.parts.at(StackPart::kExpandableSegments) == 1);
  CHECK(plan.parts.at(StackPart::kOverlapGradientReduction) == 0);
  CHECK(names(plan, "--lr"));
  LaunchFile wrong = config("cases.yaml");
  wrong.text.replace(wrong.text.find("--bf16: true"), 12, "--bf17: true");
  CHECK_THAT(refused(wrong, inputs(32)).message, Catch::Contains("unknown setting '--bf17'"));
}

TEST_CASE("NeMo's YAML takes values from its own keys and from the environment") {
  const ImportedPlan plan = read("hydra_nemo.yaml", inputs(0));
  CHECK(plan.plan.degrees == ParallelDegrees{.tp = 2, .pp = 4, .dp = 2});
  CHECK(plan.plan.virtual_stages == 4);
  CHECK(plan.plan.zero == 1);
  CHECK(plan.plan.recompute == Recompute::kNone);
  CHECK(plan.model.seq == 4096);
  CHECK(plan.stack == "nemo");
  CHECK(plan.parts.at(StackPart::kOverlapGradientReduction) == 1);
  CHECK(plan.parts.at(StackPart::kOverlapParameterGather) == 0);
  CHECK(names(plan, "model.data.seq_length"));
  CHECK(names(plan, "exp_manager.name"));
  CHECK(read("hydra_nemo.yaml", inputs(0, {{"TENSOR", "4"}})).plan.degrees.tp == 4);
  LaunchFile unknown = config("hydra_nemo.yaml");
  unknown.text.replace(unknown.text.find("mcore_gpt: true"), 15, "mirror_gpt: true");
  CHECK_THAT(refused(unknown, inputs(0)).message, Catch::Contains("'model.mirror_gpt'"));
}

TEST_CASE("unset variables of a YAML file are named in the error") {
  const Error error = refused(config("bridge_whole.yaml"), inputs(64));
  CHECK_THAT(error.message, Catch::Contains("$TP"));
  CHECK_THAT(error.hint, Catch::Contains("--set TP=VALUE"));
  const ImportedPlan plan = read("bridge_whole.yaml", inputs(64, {{"TP", "2"}, {"PP", "4"}}));
  CHECK(plan.plan.degrees ==
        ParallelDegrees{.tp = 2, .pp = 4, .dp = 8, .cp = 1, .ep = 8, .etp = 1});
  CHECK(plan.model.experts.count == 8);
  CHECK(plan.model.attention.kv_heads == 8);
  CHECK(plan.plan.dtype == DType::kBFloat16);
  CHECK(plan.stack == "nemo");
  CHECK(text_of(row_of(StackPart::kDispatcher), plan.parts.at(StackPart::kDispatcher)) == "deepep");
  CHECK(plan.parts.at(StackPart::kOverlapGradientReduction) == 1);
  CHECK(names(plan, "logger.wandb_exp_name"));
}

TEST_CASE("for overrides the error names settings that only the recipe has") {
  const Error error = refused(config("bridge_old.yaml"), of_model("llama-3-8b", 16));
  CHECK_THAT(error.message, Catch::Contains("model.context_parallel_size"));
  CHECK_THAT(error.message, !Catch::Contains("model.tensor_model_parallel_size"));
  CHECK(error.hint == "add --set model.context_parallel_size=N");
  const ImportedPlan plan =
      read("bridge_old.yaml", of_model("llama-3-8b", 16, {{"model.context_parallel_size", "1"}}));
  CHECK(plan.plan.degrees == ParallelDegrees{.tp = 2, .dp = 8});
  CHECK(plan.plan.zero == 1);
  CHECK(plan.plan.dtype == DType::kBFloat16);
  REQUIRE(plan.notes.size() == 1);
  CHECK_THAT(plan.notes.front(), Catch::Contains("bf16, a distributed optimizer"));
  CHECK_FALSE(plan.parts.contains(StackPart::kOverlapGradientReduction));
  const ImportedPlan off =
      read("bridge_old.yaml",
           of_model("llama-3-8b", 16,
                    {{"model.context_parallel_size", "1"}, {"ddp.overlap_grad_reduce", "false"}}));
  CHECK(off.parts.at(StackPart::kOverlapGradientReduction) == 0);  // given explicitly
  LaunchFile matrix = config("bridge_old.yaml");
  matrix.text += "\nperf_matrix:\n  h100:\n    tp: 2\n";
  CHECK_THAT(refused(matrix, of_model("llama-3-8b", 16)).message, Catch::Contains("many plans"));
}

TEST_CASE(
    "torchtitan's file of 2024 keeps its degrees elsewhere and names its model by a flavour") {
  const ImportedPlan plan = read("titan2024.toml", inputs(16));
  CHECK(plan.model.name == "llama-2-13b");
  CHECK(plan.plan.degrees == ParallelDegrees{.tp = 4, .dp = 4});
  CHECK(plan.plan.zero == 3);
  CHECK(plan.plan.micro_batch == 4);
  CHECK(plan.plan.recompute == Recompute::kFull);
  const auto part = [&](StackPart which) { return text_of(row_of(which), plan.parts.at(which)); };
  CHECK(part(StackPart::kNormKernel) == "fused");
  CHECK(part(StackPart::kTpOverlap) == "userbuffers");
  CHECK(plan.parts.count(StackPart::kCompile) == 0);  // only the loss is compiled
  LaunchFile other = config("titan2024.toml");
  other.text.replace(other.text.find("\"13B\""), 5, "\"14Q\"");
  ImportInputs how = inputs(16);
  how.load = [](const std::string& name) -> Result<ModelSpec> {
    return Error{ErrorKind::kBadInput, name, "", ""};
  };
  CHECK_THAT(refused(other, how).message, Catch::Contains("flavor '14q' of 'llama2'"));
}

TEST_CASE(
    "a recipe and accelerate's file are one plan, alone the recipe is data parallel in 16 bits") {
  const ImportedPlan alone = read("recipe.yaml", inputs(8));
  CHECK(alone.plan.zero == 0);
  CHECK(alone.plan.gradient_dtype == DType::kBFloat16);
  CHECK(std::any_of(alone.notes.begin(), alone.notes.end(), [](const std::string& note) {
    return note.find("neither FSDP nor DeepSpeed is enabled") != std::string::npos;
  }));
  ImportInputs both = inputs(0);
  both.more = {config("sharded.yaml")};
  const ImportedPlan plan = read("recipe.yaml", both);
  CHECK(plan.plan.degrees == ParallelDegrees{.dp = 8});
  CHECK(plan.plan.zero == 3);
  CHECK(plan.plan.micro_batch == 2);
  CHECK(plan.plan.global_batch == 2L * 4 * 8);
  CHECK(plan.plan.recompute == Recompute::kFull);
  CHECK(plan.model.seq == 2048);
  CHECK(plan.stack == "deepspeed-zero3");
  CHECK(names(plan, "warmup_ratio"));  // from the merged map
  CHECK(read("mesh.yaml",
             [] {
               ImportInputs how = of_model("llama-2-7b", 0);
               how.micro_batch = 1;
               return how;
             }())
            .parts.at(StackPart::kShardGroup) == kShardOverNode);
  LaunchFile tensor = config("mesh.yaml");
  tensor.text.replace(tensor.text.find("tp_size: 1"), 10, "tp_size: 2");
  ImportInputs how = of_model("llama-2-7b", 0);
  how.micro_batch = 1;
  CHECK_THAT(refused(tensor, how).message,
             Catch::Contains("dp_replicate_size 2 x dp_shard_size 8 is not the number of"));
  LaunchFile narrow = config("mesh.yaml");
  narrow.text += "fp8: true\nfp8_enable_fsdp_float8_all_gather: true\n";
  CHECK_THAT(refused(narrow, how).message, Catch::Contains("fp8: true"));
  how.given = {{"fp8", "false"}};
  CHECK(import_config(narrow, how).ok());
  LaunchFile adapter = config("recipe.yaml");
  adapter.text += "use_peft: true\n";
  CHECK(import_config(adapter, inputs(8))->parts.at(StackPart::kFinetune) == 1);  // lora
}

TEST_CASE("scripts that start a Trainer are read with the configurations that they name") {
  const auto named = of_script("trainer.sh", [] {
    ImportInputs how = inputs(0);
    how.open = [](const std::string& name) {
      return read_file(folder() / std::filesystem::path(name), kMostBytes);
    };
    return how;
  }());
  if (!named.ok()) FAIL(to_string(named.error()));
  CHECK(named->plan.degrees == ParallelDegrees{.dp = 4});  // the command line overrides the file
  CHECK(named->plan.global_batch == 2L * 8 * 4);
  CHECK(named->plan.zero == 3);
  const auto plain = of_script("vicuna.sh", inputs(0));
  if (!plain.ok()) FAIL(to_string(plain.error()));
  CHECK(plain->plan.degrees == ParallelDegrees{.dp = 4});
  CHECK(plain->plan.zero == 3);
  CHECK(plain->plan.global_batch == 2L * 16 * 4);
  CHECK(plain->model.seq == 2048);
  ImportInputs nothing = inputs(0);
  nothing.open = [](const std::string& name) -> Result<std::string> {
    return Error{ErrorKind::kBadInput, "cannot open the file", name, ""};
  };
  const auto lost = of_script("trainer.sh", nothing);
  REQUIRE_FALSE(lost.ok());
  CHECK_THAT(lost.error().message, Catch::Contains("configs/sharded.yaml, which does not exist"));
}

TEST_CASE("a script that starts another one says which") {
  const auto outer = of_script("container.sh", inputs(0));
  REQUIRE_FALSE(outer.ok());
  CHECK(outer.error().where == "their/container.sh");
  CHECK_THAT(outer.error().message, Catch::Contains("it needs examples/inner/train.sh"));
}

TEST_CASE("a missing value is given by the option's name") {
  LaunchFile file{"megatron-lm.sh",
                  "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 256 "
                  "--num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 "
                  "--micro-batch-size 1 --global-batch-size 8 --bf16 "
                  "--tokenizer-type GPTSentencePieceTokenizer\n",
                  "small.sh"};
  CHECK_FALSE(import_plan(LaunchStack::kMegatronLm, {file}, inputs(0))->has_vocab);
  const auto said =
      import_plan(LaunchStack::kMegatronLm, {file}, inputs(0, {{"vocab-size", "32000"}}));
  REQUIRE(said.ok());
  CHECK(said->model.vocab == 32000);
  // Megatron's default attention dropout is 0.1.
  CHECK(said->plan.attention == AttentionKind::kFlash);
  CHECK(said->model.attention_dropout == 0);
  CHECK(said->notes == std::vector<std::string>{
                           "dropout inside flash attention is not modelled and predicted as zero"});
}

TEST_CASE("YAML anchors are expanded, and a map's own keys override merged ones") {
  const char* text =
      "base: &base\n  a: 1\n  deep:\n    b: 2\n    c: 3\n"
      "other: &other {a: 9, d: 4}\n"
      "one:\n  <<: *base\n  a: 5\n"
      "two:\n  deep:\n    z: 0\n  <<: [*base, *other]\n"
      "three: *other\nlist:\n- *base\n- plain\n"
      "rate: &rate 0.5\nagain: *rate\n";
  const auto settings = flat_yaml(text, "x.yaml");
  if (!settings.ok()) FAIL(to_string(settings.error()));
  const auto value = [&](const std::string& key) {
    std::string found = "(none)";
    int count = 0;
    for (const FlatSetting& one : *settings) {
      if (one.key != key) continue;
      found = one.value;
      ++count;
    }
    CHECK(count <= 1);
    return found;
  };
  CHECK(value("one.a") == "5");
  CHECK(value("one.deep.b") == "2");
  CHECK(value("two.a") == "1");
  CHECK(value("two.d") == "4");
  CHECK(value("two.deep.z") == "0");
  CHECK(value("two.deep.b") == "(none)");
  CHECK(value("three.d") == "4");
  CHECK(value("list.0.deep.c") == "3");
  CHECK(value("list.1") == "plain");
  CHECK(value("again") == "0.5");
  CHECK_FALSE(flat_yaml("a: *nowhere\n", "x.yaml").ok());
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 30; ++i) {
    bomb += fmt::format("a{0}: &a{0}\n  l: *a{1}\n  r: *a{1}\n", i, i - 1);
  }
  CHECK_FALSE(flat_yaml(bomb, "bomb.yaml").ok());
}

TEST_CASE("the configuration that Megatron-Bridge saves is read") {
  LaunchFile dump = config("bridge_whole.yaml");
  const auto put = [&](const std::string& before, const std::string& text) {
    dump.text.insert(dump.text.find(before), text);
  };
  put("model:",
      "mixed_precision:\n  _target_: megatron.bridge.MixedPrecisionConfig\n  fp8: "
      "hybrid\n  fp8_recipe: blockwise\n  grad_reduce_in_fp32: false\n  params_dtype:\n"
      "    _call_: false\n    _target_: torch.bfloat16\n");
  put("  add_bias_linear",
      "  _target_: megatron.bridge.models.Provider\n  fp8: null\n  fp8_recipe: "
      "delayed\n  cuda_graph_impl: none\n  cuda_graph_scope: full\n  key_of_next_year: 7\n  "
      "recompute_granularity: selective\n"
      "  recompute_modules:\n  - moe_act\n  - layernorm\n");
  auto plan = import_config(dump, inputs(64, {{"TP", "2"}, {"PP", "4"}}));
  if (!plan.ok()) FAIL(to_string(plan.error()));
  CHECK(plan->plan.precision == Precision::kFp8Block);
  CHECK(plan->plan.gradient_dtype == DType::kBFloat16);
  CHECK(plan->plan.recompute == Recompute::kSelective);
  CHECK(text_of(row_of(StackPart::kRecomputeModules),
                plan->parts.at(StackPart::kRecomputeModules)) == "layernorm,moe_act");
  CHECK(plan->parts.at(StackPart::kCudaGraphs) == 0);
  dump.text.replace(dump.text.find("- moe_act"), 9, "- moe_dct");
  CHECK_THAT(refused(dump, inputs(64, {{"TP", "2"}, {"PP", "4"}})).message,
             Catch::Contains("--recompute-modules moe_dct"));
}

TEST_CASE("a script of 2021 has the attention of its year") {
  const std::string command =
      "python -m torch.distributed.launch --nproc_per_node 8 pretrain_gpt.py --num-layers 2 "
      "--hidden-size 256 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 "
      "--micro-batch-size 1 --global-batch-size 8 --fp16 --vocab-size 1024";
  const auto of = [&](const std::string& more) {
    LaunchFile file{"megatron-lm.sh", command + more + "\n", "old.sh"};
    auto plan = import_plan(LaunchStack::kMegatronLm, {file}, inputs(0));
    if (!plan.ok()) FAIL(to_string(plan.error()));
    return *std::move(plan);
  };
  CHECK(of(" --data-impl mmap").plan.attention == AttentionKind::kUnfused);
  CHECK(of(" --data-impl mmap").model.attention_dropout == 0.1);
  CHECK(of(" --data-impl mmap --use-flash-attn").plan.attention == AttentionKind::kFlash);
  CHECK(of("").plan.attention == AttentionKind::kFlash);
}

TEST_CASE("a list may have the indentation of its key") {
  const auto settings =
      flat_yaml("map:\n  list:\n  - a\n  - b: 1\n    c: 2\n  after: 3\nend: 4\n", "x.yaml");
  REQUIRE(settings.ok());
  std::vector<std::string> keys;
  for (const FlatSetting& one : *settings) keys.push_back(one.key);
  CHECK(keys ==
        std::vector<std::string>{"map.list.0", "map.list.1.b", "map.list.1.c", "map.after", "end"});
}

TEST_CASE("values refer to keys of the same map, of the whole file, and to the environment") {
  const auto values = with_values({{"a.b", "${.c}", 1},
                                   {"a.c", "7", 2},
                                   {"d", "x${a.b}y${outer.a.c}", 3},
                                   {"e", "${NAME}", 4},
                                   {"f", "${oc.env:HOST,local}", 5},
                                   {"g", "${g}", 6}},
                                  {{"NAME", "said"}, {"a.c", "8"}, {"h", "9"}});
  const auto of = [&](const std::string& key) {
    for (const FlatSetting& one : values) {
      if (one.key == key) return one.value;
    }
    return std::string("(none)");
  };
  CHECK(of("a.c") == "8");
  CHECK(of("d") == "x8y8");
  CHECK(of("e") == "said");
  CHECK(of("f") == "local");
  CHECK(of("h") == "9");
  CHECK(of("g").find("$g") != std::string::npos);  // refers to itself, so stays open
}

}  // namespace tpsim
