// Recipes of NeMo 2 and Megatron-Bridge in Python (tests/frameworks/nemo/recipes): followed, not
// run.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "core/scenario/catalogue.h"
#include "frameworks/launch/config_files.h"
#include "tests/temporary_folder.h"

namespace tpsim {
namespace {

using Given = std::map<std::string, std::string>;

// By the names that the recipes here have for them.
Result<ModelSpec> load(const std::string& name) {
  const std::map<std::string, std::string> known = {
      {"Llama3170B", "llama-3.1-70b"}, {"meta-llama/Llama-3.1-8B", "llama-3.1-8b"},
      {"llama3_70b", "llama-3-70b"},   {"Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b"},
      {"Llama27B", "llama-2-7b"},      {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"},
      {"gpt3_175b", "gpt-3-175b"},
  };
  const auto found = known.find(name);
  if (found == known.end()) return bad_input("unknown model " + name);
  return Catalogue::open().value().load_model(found->second);
}

Result<ImportedPlan> import_of(const std::filesystem::path& path, const Given& given = {},
                               std::int64_t gpus = 0) {
  ImportInputs inputs;
  inputs.gpus = gpus;
  inputs.given = given;
  inputs.load = load;
  return import_config({path.filename().string(), "", path.string()}, inputs);
}

Result<ImportedPlan> recipe(const std::string& name, const Given& given = {},
                            std::int64_t gpus = 0) {
  return import_of(std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/frameworks/nemo/recipes" / name,
                   given, gpus);
}

// A file of its own.
class Written {
 public:
  explicit Written(const std::string& text, const std::string& name = "recipe.py")
      : path_(folder_.path() / name) {
    std::filesystem::create_directories(path_.parent_path());
    std::ofstream(path_) << text;
  }
  const std::filesystem::path& folder() const { return folder_.path(); }
  Result<ImportedPlan> read(const Given& given = {}, std::int64_t gpus = 8) const {
    return import_of(path_, given, gpus);
  }

 private:
  test::TemporaryFolder folder_;
  std::filesystem::path path_;
};

void check_error(const Result<ImportedPlan>& read, const std::string& message) {
  REQUIRE_FALSE(read.ok());
  CHECK_THAT(to_string(read.error()), Catch::Contains(message));
}

// What every recipe below has beside what it is about.
constexpr const char* kBegin =
    "from megatron.bridge import AutoBridge\n"
    "from megatron.bridge.recipes.common import _pretrain_common\n\n\n"
    "def our_pretrain_config(tp=2, **rest):\n"
    "    cfg = _pretrain_common()\n"
    "    cfg.model = "
    "AutoBridge.from_hf_pretrained('meta-llama/Llama-3.1-8B').to_megatron_provider()\n"
    "    cfg.model.tensor_model_parallel_size = tp\n";

Written with(const std::string& lines) { return Written(kBegin + lines + "    return cfg\n"); }

}  // namespace

TEST_CASE("a recipe of NeMo 2 is the plan that its functions hand on") {
  const auto read = recipe("nemo_70b.py");
  if (!read.ok()) FAIL(to_string(read.error()));
  CHECK(read->model.name == "llama-3.1-70b");
  CHECK(read->model.seq == 8192);
  CHECK(read->stack == "nemo");
  CHECK(read->plan.degrees == ParallelDegrees{.tp = 4, .pp = 4, .dp = 4, .cp = 2});  // 16 nodes
  CHECK(read->plan.virtual_stages == 5);
  CHECK(read->plan.sequence_parallel);
  CHECK(read->plan.zero == 1);  // of the optimizer that it calls for
  CHECK(read->plan.global_batch == 512);
  CHECK(read->plan.gradient_dtype == DType::kFloat32);
  CHECK(read->parts.at(StackPart::kOverlapGradientReduction) == 1);
  CHECK_FALSE(read->parts.contains(StackPart::kTpOverlap));

  // Its arguments choose a branch, which adds to a list and sets what another call made.
  const auto fast = recipe("nemo_70b.py", {{"performance_mode", "True"}, {"num_nodes", "32"}});
  if (!fast.ok()) FAIL(to_string(fast.error()));
  CHECK(fast->plan.degrees.dp == 8);
  CHECK(fast->plan.gradient_dtype == DType::kBFloat16);
  const PartRow& overlap = row_of(StackPart::kTpOverlap);
  CHECK(fast->parts.at(overlap.part) == parse_value(overlap, "userbuffers").value());

  const auto tuned = recipe(
      "nemo_70b.py", {{"recipe", "finetune_recipe"}, {"peft_scheme", "None"}, {"num_nodes", "8"}});
  if (!tuned.ok()) FAIL(to_string(tuned.error()));
  CHECK(tuned->plan.degrees.tp == 8);
  check_error(recipe("nemo_70b.py", {{"recipe", "finetune_recipe"}}),
              "nemo_70b.py:123: trains adapters (peft: LoRA)");
  check_error(recipe("nemo_70b.py", {{"recipe", "finetune_recipe"}, {"peft_scheme", "ia3"}}),
              "nemo_70b.py:125: refuses its arguments");
  check_error(recipe("nemo_70b.py", {{"nodes", "8"}}), "takes no argument 'nodes'");
}

TEST_CASE("instances say the same by place and in lists") {
  const auto read = recipe("nemo_strategy.py");
  if (!read.ok()) FAIL(to_string(read.error()));
  CHECK(read->plan.degrees == ParallelDegrees{.tp = 4, .pp = 2, .dp = 4});
  CHECK(read->plan.rank_order == RankOrder::kTpPpDp);
  CHECK(read->plan.zero == 1);
  CHECK(read->plan.precision == Precision::kFp8Current);
  CHECK(read->plan.gradient_dtype == DType::kBFloat16);
  CHECK(read->parts.at(StackPart::kOverlapP2p) == 0);
  CHECK(read->parts.at(StackPart::kOverlapGradientReduction) == 1);  // of the callback
  const PartRow& graphs = row_of(StackPart::kCudaGraphs);
  CHECK(read->parts.at(graphs.part) == parse_value(graphs, "full").value());
}

TEST_CASE("recipes of Megatron-Bridge begin with what all of them have") {
  const auto which = recipe("bridge_defaults.py");
  check_error(which, "which of its recipes? our_8b_pretrain_config, our_8b_fp8_pretrain_config");
  CHECK(which.error().hint == "--set recipe=NAME");
  check_error(recipe("bridge_defaults.py", {{"recipe", "our_8b_pretrain"}}),
              "unknown recipe 'our_8b_pretrain'");
  check_error(recipe("bridge_defaults.py", {{"recipe", "our_8b_pretrain_config"}}), "--gpus N");

  const auto read = recipe("bridge_defaults.py", {{"recipe", "our_8b_pretrain_config"}}, 64);
  if (!read.ok()) FAIL(to_string(read.error()));
  CHECK(read->plan.degrees == ParallelDegrees{.tp = 2, .dp = 16, .cp = 2});
  CHECK(read->plan.dtype == DType::kBFloat16);
  CHECK(read->plan.zero == 1);
  CHECK(read->model.seq == 16384);
  CHECK(read->parts.at(StackPart::kOverlapParameterGather) == 1);

  const auto eight = recipe("bridge_defaults.py", {{"recipe", "our_8b_fp8_pretrain_config"}}, 64);
  if (!eight.ok()) FAIL(to_string(eight.error()));
  CHECK(eight->plan.precision == Precision::kFp8Current);
  CHECK(eight->plan.fp8_param_gather);
  CHECK(eight->plan.gradient_dtype == DType::kBFloat16);
  CHECK(eight->notes.size() == 1);  // the first and the last block

  const auto experts =
      recipe("bridge_defaults.py", {{"recipe", "qwen3_30b_a3b_pretrain_16gpu_h100_bf16_config"}});
  if (!experts.ok()) FAIL(to_string(experts.error()));
  CHECK(experts->plan.degrees == ParallelDegrees{.dp = 16, .ep = 8, .etp = 0});
  CHECK(experts->plan.micro_batch == 2);  // what all of them begin with
  CHECK(experts->plan.global_batch == 32);
  CHECK(experts->plan.recompute == Recompute::kFull);
  const PartRow& dispatcher = row_of(StackPart::kDispatcher);
  CHECK(experts->parts.at(dispatcher.part) == parse_value(dispatcher, "deepep").value());
  CHECK(experts->notes.empty());
  const auto changed = with("    from ours.tuning import tune\n    tune(cfg, 4)\n").read();
  if (!changed.ok()) FAIL(to_string(changed.error()));
  CHECK(changed->notes ==
        std::vector<std::string>{"what tune() does to the recipe is not followed"});
}

TEST_CASE("keywords over recommended ones reach the function that uses them") {
  const auto read = recipe("bridge_keywords.py", {}, 64);
  if (!read.ok()) FAIL(to_string(read.error()));
  CHECK(read->model.name == "mixtral-8x7b");
  CHECK(read->plan.degrees == ParallelDegrees{.pp = 4, .dp = 16, .ep = 8});
  CHECK(read->plan.virtual_stages == 8);
  CHECK(read->plan.gradient_dtype == DType::kBFloat16);  // of an instance of the class it asks for
  CHECK_FALSE(read->parts.contains(StackPart::kRecomputeModules));
  const auto other = recipe("bridge_keywords.py",
                            {{"tensor_parallelism", "2"},
                             {"sequence_parallelism", "true"},
                             {"enable_recompute", "True"},
                             {"global_batch_size", "256"}},
                            64);
  if (!other.ok()) FAIL(to_string(other.error()));
  CHECK(other->plan.degrees.tp == 2);
  CHECK(other->plan.sequence_parallel);
  CHECK(other->plan.global_batch == 256);
  CHECK(other->plan.recompute == Recompute::kSelective);
  CHECK(other->parts.at(StackPart::kRecomputeModules) ==
        (bit(RecomputeModule::kLayerNorm) | bit(RecomputeModule::kExpertActivation)));
}

TEST_CASE("a script's recipe is what it runs, and what another file knows is asked for") {
  const auto script = recipe("nemo_script.py");
  if (!script.ok()) FAIL(to_string(script.error()));
  CHECK(script->model.name == "llama-3-70b");
  CHECK(script->plan.degrees == ParallelDegrees{.tp = 4, .pp = 4, .dp = 2});
  CHECK(script->plan.precision == Precision::kFp8);
  CHECK(script->plan.global_batch == 128);
  REQUIRE(script->notes.size() == 1);
  CHECK_THAT(script->notes.front(), Catch::Contains("a distributed optimizer"));

  const auto parts = recipe("nemo_parts.py");
  if (!parts.ok()) FAIL(to_string(parts.error()));
  CHECK(parts->plan.degrees == ParallelDegrees{.tp = 2, .dp = 8});
  CHECK(parts->plan.micro_batch == 2);
  CHECK(parts->parts.at(StackPart::kOverlapGradientReduction) == 0);

  // Its own options are arguments; what it raises of where it runs is nobody's question.
  const auto experiment = recipe("nemo_experiment.py", {{"nodes", "8"}, {"fp8", "True"}});
  if (!experiment.ok()) FAIL(to_string(experiment.error()));
  CHECK(experiment->plan.degrees == ParallelDegrees{.tp = 4, .pp = 4, .dp = 4});
  CHECK(experiment->plan.global_batch == 64);
  CHECK(experiment->plan.precision == Precision::kFp8);
  CHECK(recipe("nemo_experiment.py")->plan.degrees.dp == 2);
  check_error(recipe("nemo_experiment.py", {{"nods", "8"}}), "no argument 'nods', but fp8, nodes");

  const Written open(
      "from nemo.collections import llm\n"
      "import nemo_run as run\n\n"
      "def configure_recipe(nodes: int = 2):\n"
      "    recipe = llm.llama3_70b.pretrain_recipe(num_nodes=nodes, num_gpus_per_node=8)\n"
      "    recipe.trainer.strategy.tensor_model_parallel_size = 8\n"
      "    return recipe\n");
  check_error(open.read(), "alone knows its model.pipeline_model_parallel_size");
}

TEST_CASE("recipes are written as Megatron-Bridge's YAML and read back as the same plans") {
  struct Read {
    const char* name;
    Given given;
    std::int64_t gpus;
  };
  const std::vector<Read> recipes = {
      {"nemo_70b.py", {{"performance_mode", "True"}}, 0},
      {"bridge_keywords.py", {{"enable_recompute", "True"}}, 64},
      {"bridge_defaults.py", {{"recipe", "our_8b_fp8_pretrain_config"}}, 64},
      {"bridge_defaults.py", {{"recipe", "qwen3_30b_a3b_pretrain_16gpu_h100_bf16_config"}}, 0},
      {"nemo_script.py", {}, 0},
      {"nemo_parts.py", {}, 0},
  };
  const StackSpec nemo = Catalogue::open().value().load_stack("nemo").value();
  for (const Read& one : recipes) {
    const auto read = recipe(one.name, one.given, one.gpus);
    if (!read.ok()) FAIL(to_string(read.error()));
    PlanFile file;
    file.model = read->model;
    file.plan = read->plan;
    file.parts = read->parts;
    file.stack = read->stack;
    const auto files = export_plan(LaunchStack::kNemo, file, 8, with_parts(nemo, read->parts));
    if (!files.ok()) FAIL(one.name << to_string(files.error()));
    const auto again = import_plan(LaunchStack::kNemo, *files, read->model);
    if (!again.ok()) FAIL(one.name << to_string(again.error()));
    CHECK(again->plan == read->plan);
    for (const auto& [part, value] : read->parts) {
      CAPTURE(one.name, row_of(part).key);
      CHECK(row_of(part).get(with_parts(nemo, again->parts)) == value);
    }
  }
}

TEST_CASE("what only running a recipe tells is asked for where a plan is made of it") {
  const auto harmless =
      with("    import os\n    cfg.optimizer.lr = float(os.environ['LR'])\n").read();
  CHECK(harmless.ok());
  const Written wanted = with("    cfg.train.micro_batch_size = int(input())\n");
  check_error(wanted.read(), "recipe.py:9: what train.micro_batch_size is only running the file");
  const auto said = wanted.read({{"train.micro_batch_size", "1"}});
  if (!said.ok()) FAIL(to_string(said.error()));
  CHECK(said->plan.micro_batch == 1);
  // A branch that may run, and a loop, leave what they set unknown.
  for (const char* may_run : {"    if torch.cuda.is_available():\n", "    while waiting():\n"}) {
    check_error(with(std::string(may_run) + "        cfg.train.global_batch_size = 64\n").read(),
                "recipe.py:10: what train.global_batch_size is");
  }
  check_error(with("    if torch.cuda.is_available():\n        return None\n").read(),
              "recipe.py:10: returns from a branch");
}

TEST_CASE("what a function of another file made leaves its rest open, and adapters are refused") {
  const std::string common =
      "def our_config():\n"
      "    cfg = NAME()\n"
      "    cfg.model = AutoBridge.from_hf_pretrained('meta-llama/Llama-3.1-8B').to_provider()\n"
      "    cfg.model.tensor_model_parallel_size = 2\n"
      "    return cfg\n";
  const auto made_by = [&](const std::string& name) {
    std::string text = common;
    text.replace(text.find("NAME"), 4, name);
    return Written(text).read();
  };
  CHECK(made_by("_pretrain_common").ok());
  CHECK(made_by("ConfigContainer").ok());
  check_error(made_by("_our_own_common"), "alone knows its model.pipeline_model_parallel_size");
  check_error(made_by("_peft_common"), "trains adapters");
  CHECK(with("    cfg.peft = None\n").read().ok());
  check_error(with("    cfg.peft = LoRA()\n").read(), "trains adapters (peft: LoRA)");
}

TEST_CASE("statements and expressions of a recipe are followed as Python has them") {
  const auto micro_batch = [](const std::string& lines, const Given& given = {}) {
    const auto read = with(lines).read(given);
    if (!read.ok()) FAIL(lines << to_string(read.error()));
    return read->plan.micro_batch;
  };
  const std::string set = "    cfg.train.micro_batch_size = ";
  CHECK(micro_batch(set + "(1 + 3) // 2 * 2\n") == 4);
  CHECK(micro_batch(set + "4 if tp == 2 and not None else 8\n") == 4);
  CHECK(micro_batch(set + "4 if tp in (2, 4) else 8\n", {{"tp", "8"}}) == 8);
  CHECK(micro_batch(set + "rest.get('size', 4)\n") == 4);
  CHECK(micro_batch(set + "rest['size']\n", {{"size", "8"}}) == 8);
  CHECK(micro_batch(set + "{'small': 2, **{'small': 4}}['small']\n") == 4);
  CHECK(micro_batch(set + "len([*'ab', *['c'], 'd'])\n") == 4);
  CHECK(micro_batch(set + "int(f'{tp}')\n") == 2);
  CHECK(micro_batch(
            set + "1\n    for more in [1, 2]:\n        cfg.train.micro_batch_size += more\n") == 4);
  CHECK(micro_batch(set + "sum([x for x in range(4) if x > 0]) - 2\n") == 4);
  CHECK(micro_batch(set + "{(1, 2): 2, (2, 1): 4}[(tp, 1)]\n") == 4);
  CHECK(micro_batch("    from functools import partial\n    def size(a, b): return a * b\n" + set +
                    "partial(size, 2)(b=2)\n") == 4);
  CHECK(micro_batch(set + "getattr(cfg.model, 'tensor_model_parallel_size', 1) * 2\n") == 4);
  CHECK(micro_batch("    try:\n        size, _ = 4, None\n    finally:\n        pass\n" + set +
                    "size\n") == 4);
  CHECK(micro_batch("    def size(a, *, b=1):\n        return a * b\n" + set + "size(2, b=2)\n") ==
        4);
}

TEST_CASE("stages that a recipe lists are Megatron's layout") {
  const auto read = with(
                        "    cfg.model.pipeline_model_parallel_size = 4\n"
                        "    cfg.model.pipeline_model_parallel_layout = (\n"
                        "        [['embedding'] + ['decoder'] * 7] + [['decoder'] * 9] * 2 + "
                        "[['decoder'] * 7 + ['loss']])\n")
                        .read();
  if (!read.ok()) FAIL(to_string(read.error()));
  CHECK(read->plan.stage_layers == std::vector<std::int64_t>{7, 9, 9, 7});
}

TEST_CASE("modules of a checkout are followed where they lie above a recipe") {
  const Written recipe(
      "from ours.recipes.common import base, SIZE\n"
      "from . import sizes\n\n"
      "def our_pretrain_config():\n"
      "    cfg = base(2)\n"
      "    cfg.train.micro_batch_size = SIZE\n"
      "    cfg.train.global_batch_size = sizes.BATCH\n"
      "    return cfg\n",
      "ours/recipes/recipe.py");
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(recipe.folder() / "ours/recipes" / name) << text;
  };
  write("sizes.py", "BATCH = 8 * 16\n");
  write("common.py",
        "SIZE = 4\n"
        "def base(tp):\n"
        "    cfg = ConfigContainer(model=Llama2Provider7B(), train=TrainingConfig(), ddp=DDP())\n"
        "    cfg.model.tensor_model_parallel_size = tp\n"
        "    cfg.mixed_precision = 'bf16_mixed'\n"
        "    return cfg\n");
  const auto read = recipe.read();
  if (!read.ok()) FAIL(to_string(read.error()));
  CHECK(read->model.name == "llama-2-7b");
  CHECK(read->plan.degrees == ParallelDegrees{.tp = 2, .dp = 4});
  CHECK(read->plan.micro_batch == 4);
  CHECK(read->plan.global_batch == 128);
}

TEST_CASE("what is no recipe is refused with its line, and nothing of a file is run") {
  check_error(Written("def f(:\n").read(), "recipe.py:1: is no Python");
  check_error(Written("print('hello')\n").read(), "makes no recipe by a function of its own");
  check_error(Written("def a_recipe():\n    return 4\n").read(), "returns no configuration");
  check_error(Written("def a_recipe():\n    return a_recipe()\n").read(), "calls itself");
  const std::string deep(5000, '(');
  CHECK_FALSE(Written("def a_recipe():\n    return " + deep + "\n").read().ok());
  const std::string twice = "def a_recipe():\n    x = [0]\n" + [] {
    std::string lines;
    for (int i = 0; i < 60; ++i) lines += "    x = x + x\n";
    return lines;
  }() + "    return x\n";
  CHECK_FALSE(Written(twice).read().ok());  // more than any memory
  const Written runs(
      "import os\nos.system('touch ran')\nopen('ran', 'w').close()\n"
      "def a_recipe():\n    os.system('touch ran')\n    return run.Config(A)\n");
  CHECK_FALSE(runs.read().ok());
  CHECK_FALSE(std::filesystem::exists(runs.folder() / "ran"));
  CHECK_FALSE(std::filesystem::exists("ran"));
}

}  // namespace tpsim
