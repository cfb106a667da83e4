// All settings that prevent an import are reported at once, in every format, and each hint works.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/scenario/catalogue.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {
namespace {

ImportInputs inputs_with(std::int64_t gpus, const std::string& model = "") {
  const Catalogue catalogue = Catalogue::open().value();
  ImportInputs inputs;
  inputs.gpus = gpus;
  if (!model.empty()) inputs.model = catalogue.load_model(model).value();
  inputs.load = [catalogue](const std::string& name) { return catalogue.load_model(name); };
  return inputs;
}

// A file of each format with two unknown settings and one unsupported setting. Without these three
// the import succeeds.
struct Case {
  const char* name;
  LaunchFile file;
  ImportInputs inputs;
  std::string refused;
  std::vector<std::string> unknown;  // names for --set
};

std::vector<Case> cases() {
  return {
      {"Megatron",
       {"megatron-lm.sh",
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 "
        "--num-attention-heads 8 --seq-length 256 --max-position-embeddings 256 "
        "--attention-dropout 0 --hidden-dropout 0 --micro-batch-size 2 --global-batch-size 64 "
        "--bf16 --vocab-size 1024 --fp32-residual-connection --of-next-year 4 --mirror\n",
        "run.sh"},
       inputs_with(0),
       "--fp32-residual-connection",
       {"of-next-year", "mirror"}},
      {"torchtitan",
       {"run.toml",
        "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 2048\n"
        "local_batch_size = 2\nof_next_year = 4\nenable_cpu_offload = true\n[parallelism]\n"
        "data_parallel_shard_degree = 8\nmirror = true\n"},
       inputs_with(8),
       "--training.enable_cpu_offload",
       {"training.of_next_year", "parallelism.mirror"}},
      {"Trainer",
       {"sft.yaml",
        "model_name_or_path: llama-2-7b\nper_device_train_batch_size: 2\nbf16: true\n"
        "of_next_year: 4\nmirror: true\ntensor_parallel_size: 2\n"},
       inputs_with(8),
       "tensor_parallel_size: 2",
       {"of_next_year", "mirror"}},
      {"DeepSpeed",
       {"ds.json",
        R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "mirror": true,
            "optimizer": {"type": "OneBitAdam"}, "bf16": {"enabled": true},
            "zero_optimization": {"stage": 2, "of_next_year": 4}})"},
       inputs_with(8, "llama-2-7b"),
       "optimizer.type: OneBitAdam",
       {"zero_optimization.of_next_year", "mirror"}},
      {"NeMo",
       {"run.yaml",
        "model:\n  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 1\n"
        "  context_parallel_size: 1\n  sequence_parallel: true\n  seq_length: 2048\n"
        "  of_next_year: 4\n  fp8_dot_product_attention: true\ntrain:\n  micro_batch_size: 1\n"
        "  global_batch_size: 32\n  mirror: twice\n"},
       inputs_with(8, "llama-3-8b"),
       "model.fp8_dot_product_attention true",
       {"model.of_next_year", "train.mirror"}},
  };
}

Result<ImportedPlan> imported(const Case& one, const ImportInputs& inputs) {
  if (one.file.name == "megatron-lm.sh") {
    return import_plan(LaunchStack::kMegatronLm, {one.file}, inputs);
  }
  return import_config(one.file, inputs);
}

// Parses the hint "--set a=null,b=null ...".
std::map<std::string, std::string> advised(const std::string& hint) {
  std::map<std::string, std::string> given;
  const std::size_t at = hint.find("--set ");
  if (at == std::string::npos) return given;
  std::string list = hint.substr(at + 6);
  list.resize(std::min(list.size(), list.find(' ')));
  std::string_view rest = list;
  while (!rest.empty()) {
    const std::string_view part = cut_off(rest, ",");
    const std::size_t equals = part.find('=');
    given[std::string(part.substr(0, equals))] = std::string(part.substr(equals + 1));
  }
  return given;
}

std::string refused_name(const Case& one) {
  std::string name = one.refused.substr(0, one.refused.find_first_of(": "));
  return name.substr(name.find_first_not_of('-'));
}

}  // namespace

TEST_CASE("settings that prevent an import are named at once, in two groups") {
  for (const Case& one : cases()) {
    INFO(one.name);
    const auto read = imported(one, one.inputs);
    REQUIRE_FALSE(read.ok());
    const std::string& message = read.error().message;
    INFO(message);
    CHECK_THAT(message,
               Catch::Contains("1 setting changes the plan and is not modelled: " + one.refused));
    CHECK_THAT(message, Catch::Contains("2 settings are unknown: "));
    for (const std::string& name : one.unknown) {
      CHECK_THAT(message, Catch::Contains(name + "'"));
      CHECK_THAT(read.error().hint, Catch::Contains(name + "=null"));
    }
  }
}

TEST_CASE("the hint for unknown settings works") {
  for (const Case& one : cases()) {
    INFO(one.name);
    ImportInputs told = one.inputs;
    told.given[refused_name(one)] = "null";
    const auto asked = imported(one, told);
    REQUIRE_FALSE(asked.ok());
    CHECK_THAT(asked.error().message, !Catch::Contains("not modelled"));
    ImportInputs following = told;
    for (const auto& [name, value] : advised(asked.error().hint)) following.given[name] = value;
    CHECK(following.given.size() == 3);
    const auto plan = imported(one, following);
    if (!plan.ok()) FAIL(to_string(plan.error()));
    CHECK(plan->assumed_harmless.empty());

    ImportInputs assuming = told;
    assuming.assumes_harmless = true;
    const auto assumed = imported(one, assuming);
    if (!assumed.ok()) FAIL(to_string(assumed.error()));
    CHECK(assumed->plan == plan->plan);
    CHECK(assumed->assumed_harmless.size() == one.unknown.size());
  }
}

TEST_CASE("settings that change the plan are not assumed to be harmless") {
  for (const Case& one : cases()) {
    INFO(one.name);
    ImportInputs assuming = one.inputs;
    assuming.assumes_harmless = true;
    const auto read = imported(one, assuming);
    REQUIRE_FALSE(read.ok());
    CHECK_THAT(read.error().message, Catch::Contains(one.refused));
  }
}

TEST_CASE("missing inputs and unknown settings are reported together") {
  const LaunchFile file{"sft.yaml", "model_name_or_path: nobody/knows\nof_next_year: 4\n"};
  const auto read = import_config(file, inputs_with(0));
  REQUIRE_FALSE(read.ok());
  for (const char* part : {"'of_next_year'", "how many GPUs", "no model 'nobody/knows'"}) {
    CHECK_THAT(read.error().message, Catch::Contains(part));
  }
  for (const char* part : {"--gpus N", "--model NAME", "of_next_year=null"}) {
    CHECK_THAT(read.error().hint, Catch::Contains(part));
  }
}

TEST_CASE("imports are independent of each other") {
  const Case one = cases().front();
  CHECK_FALSE(imported(one, one.inputs).ok());
  Case clean = one;
  for (const char* part : {" --fp32-residual-connection", " --of-next-year 4", " --mirror"}) {
    clean.file.text.erase(clean.file.text.find(part), std::string(part).size());
  }
  CHECK(imported(clean, one.inputs).ok());
}

}  // namespace tpsim
