// Exported files name their model, and YAML of Megatron-Bridge states the layers of models without
// a bridge.
#include "frameworks/launch/named_model.h"

#include <catch2/catch.hpp>

#include "core/software/launched_models.h"
#include "frameworks/launch/export_check.h"
#include "frameworks/launch/framework.h"
#include "tests/frameworks/launch/export_bases.h"
#include "tests/frameworks/launch/launch_plans.h"

namespace tpsim {
namespace {

using test::catalogue;
using test::ExportBase;
using test::Exported;
using test::exported_of;

using Files = std::vector<LaunchFile>;

ImportInputs with_catalogue() {
  ImportInputs inputs;
  inputs.load = [](const std::string& name) { return catalogue().load_model(name); };
  return inputs;
}

Files exported(const ExportBase& base) {
  const Exported made = exported_of(base, "", {});
  const auto checked = checked_export(base.target, made.file, made.scenario, made.own);
  REQUIRE(checked.ok());
  return checked->files;
}

void replace(Files& files, const std::string& part, const std::string& instead) {
  for (LaunchFile& file : files) {
    const std::size_t at = file.text.find(part);
    if (at != std::string::npos) file.text.replace(at, part.size(), instead);
  }
}

constexpr ExportBase kOpt{"opt-13b", "nemo", LaunchStack::kNemo, "tp=2,dp=4,global_batch=32"};
constexpr ExportBase kTitan{"qwen3-32b", "torchtitan", LaunchStack::kTorchTitan,
                            "dp=16,zero=3,recompute=full,global_batch=32"};
// Models whose kernels, prediction layers, mixers or latents the arguments state in special ways.
constexpr ExportBase kSpecial[] = {
    {"gpt-oss-20b", "nemo", LaunchStack::kNemo, "dp=8,ep=8,global_batch=32"},
    {"glm-5", "nemo", LaunchStack::kNemo, "pp=1,dp=64,ep=64,zero=1,global_batch=64"},
    {"deepseek-v2", "megatron-core", LaunchStack::kMegatronLm, "dp=8,ep=8,global_batch=32"},
    {"qwen3-next-80b-a3b", "megatron-core", LaunchStack::kMegatronLm, "dp=8,ep=8,global_batch=32"},
    kOpt,
    kTitan,
};

}  // namespace

TEST_CASE("files import without the model's name for every launcher") {
  std::vector<ExportBase> bases(test::export_bases().begin(), test::export_bases().end());
  bases.insert(bases.end(), std::begin(kSpecial), std::end(kSpecial));
  for (const ExportBase& base : bases) {
    INFO(base.model << " " << name_of(base.target));
    const Exported made = exported_of(base, "", {});
    const auto back = import_plan(base.target, exported(base), with_catalogue());
    REQUIRE(back.ok());
    CHECK(back->plan == made.file.plan);
    CHECK(back->model.name == base.model);
    CHECK(shape_hash(back->model) == shape_hash(made.file.model));
    CHECK(back->parts.count(StackPart::kResidualKernel) == 0);
  }
}

TEST_CASE("jobs hold the launch files that they start, under the names of their stack") {
  for (const LaunchStack job : {LaunchStack::kSlurm, LaunchStack::kKubernetes}) {
    for (const ExportBase& base : {kOpt, kTitan}) {
      const Exported made = exported_of(base, "", {});
      const Files files = export_plan(job, made.file, 8, made.own).value();
      const JobContents inside = framework_of(job).contents(files).value();
      CHECK(inside.stack == base.target);
      for (const std::string& name : launch_file_names(base.target)) {
        CHECK(file_named(inside.files, name).ok());
      }
      CHECK(import_plan(job, files, with_catalogue())->plan == made.file.plan);
    }
  }
}

TEST_CASE("a model that the catalogue has with another shape is not assumed") {
  Files files = exported(kTitan);
  replace(files, ", shape ", ", shape 0");
  const auto back = import_plan(LaunchStack::kTorchTitan, files, with_catalogue());
  REQUIRE_FALSE(back.ok());
  CHECK_THAT(back.error().message, Catch::Contains("exported for qwen3-32b"));
}

TEST_CASE("the named model must have the sizes in the file") {
  Files files = exported({"llama-3-8b", "nemo", LaunchStack::kNemo, "dp=8,global_batch=32"});
  replace(files, "num_layers: 32", "num_layers: 31");
  const auto back = import_plan(LaunchStack::kNemo, files, with_catalogue());
  REQUIRE_FALSE(back.ok());
  CHECK_THAT(back.error().message, Catch::Contains("31") && Catch::Contains("32"));
}

TEST_CASE("YAML of Megatron-Bridge states the layers of models without a bridge") {
  const Files files = exported(kOpt);
  const std::string yaml = file_named(files, kNemoYamlFile)->text;
  for (const char* line :
       {"activation_func: relu", "gated_linear_unit: false", "normalization: LayerNorm",
        "add_bias_linear: true", "position_embedding_type: learned_absolute",
        "bias_activation_fusion: false", "bias_dropout_fusion: true"}) {
    CHECK(test::holds_line(yaml, line));
  }
  Files other = files;
  replace(other, "activation_func: relu", "activation_func: gelu");
  const auto back = import_plan(LaunchStack::kNemo, other, with_catalogue());
  REQUIRE_FALSE(back.ok());
  CHECK_THAT(back.error().message, Catch::Contains("activation_func is gelu; the model has relu"));
  const Files bridged = exported({"qwen3-8b", "nemo", LaunchStack::kNemo, "dp=8,global_batch=32"});
  CHECK_THAT(file_named(bridged, kNemoYamlFile)->text, !Catch::Contains("activation_func"));
}

TEST_CASE("Megatron-LM's files leave out encoders, and export says so") {
  const ExportBase base{"qwen3-vl-30b-a3b", "megatron-core", LaunchStack::kMegatronLm,
                        "tp=8,dp=8,ep=8,etp=1,sequence_parallel=on,recompute=full,global_batch=64"};
  const Exported made = exported_of(base, "", {});
  const auto checked = checked_export(base.target, made.file, made.scenario, made.own);
  REQUIRE(checked.ok());
  REQUIRE(checked->loss.lost.size() == 1);
  CHECK(checked->loss.lost.front().from == "vision");
  CHECK(checked->loss.memory_back < checked->loss.memory);
  const Status text_only = check_loss(base.target, checked->loss);
  REQUIRE_FALSE(text_only.ok());
  CHECK_THAT(text_only.error().message,
             Catch::Contains("megatron-lm has no option for encoders (vision)"));
  CHECK_THAT(text_only.error().hint, Catch::Contains("--allow-loss"));
  // The message also names a setting that the files lose.
  const std::int64_t torch = static_cast<std::int64_t>(KernelFusion::kTorch);
  const Exported slower = exported_of(base, "", {{StackPart::kNormKernel, torch}});
  const auto lossy = checked_export(base.target, slower.file, slower.scenario, slower.own);
  REQUIRE(lossy.ok());
  const Status refused = check_loss(base.target, lossy->loss);
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message, Catch::Contains("norm_kernel"));
}

TEST_CASE("stages of layers that share an indexer start on a layer with one") {
  const ModelSpec model = catalogue().load_model("glm-5.2").value();
  const auto indexed = indexed_layers(model);
  REQUIRE(indexed);
  CHECK(indexed->offset == 3);
  CHECK(indexed->frequency == 4);
  Exported made = exported_of(
      {"glm-5.2", "megatron-core", LaunchStack::kMegatronLm, "pp=2,dp=32,ep=32,global_batch=64"},
      "", {});
  made.file.plan.stage_layers = {42, 36};
  const auto files = export_plan(LaunchStack::kMegatronLm, made.file, 8, made.own);
  REQUIRE(files.ok());
  CHECK(test::holds_line(files->front().text, "--dsa-indexer-topk-freq 4"));
  CHECK(test::holds_line(files->front().text, "--dsa-indexer-skip-topk-offset 3"));
  made.file.plan.stage_layers = {39, 39};
  const auto refused = export_plan(LaunchStack::kMegatronLm, made.file, 8, made.own);
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message, Catch::Contains("without an indexer"));
}

}  // namespace tpsim
