// Models that launch files define only in part, completed from the catalogue.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "cli/commands/commands.h"
#include "cli/commands/program.h"
#include "core/scenario/catalogue.h"
#include "frameworks/launch/launch_files.h"
#include "frameworks/launch/launcher.h"
#include "plans/questions/open_inputs.h"
#include "tests/cli/typed_answers.h"
#include "tests/temporary_folder.h"

namespace tpsim::cli {
namespace {

Arguments parsed(const std::vector<const char*>& words) {
  const auto line = parse_command_line(static_cast<int>(words.size()), words.data());
  REQUIRE(line.ok());
  return std::get<Arguments>(*line);
}

// A launch script with the shape of LLaMA 70B and a tokenizer that is not known.
Result<ImportAnswer> imported(const std::string& more,
                              const std::vector<const char*>& options = {}) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "words.sh";
  std::ofstream(path) << "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 80 "
                         "--hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 "
                         "--group-query-attention --num-query-groups 8 --seq-length 2048 "
                         "--max-position-embeddings 4096 --position-embedding-type rope --swiglu "
                         "--disable-bias-linear --untie-embeddings-and-output-weights "
                         "--normalization RMSNorm --attention-dropout 0 --hidden-dropout 0 "
                         "--tensor-model-parallel-size 8 --micro-batch-size 1 "
                         "--global-batch-size 8 --bf16 --tokenizer-type HuggingFaceTokenizer "
                      << more << "\n";
  std::vector<const char*> words = {"tpsim", "import", path.c_str()};
  words.insert(words.end(), options.begin(), options.end());
  return import_answer(parsed(words));
}

// The plan of exported files.
PlanFile llama_plan() {
  PlanFile file;
  file.model = Catalogue::open()->load_model("llama-3-8b").value();
  file.cluster = "dgx-h100";
  file.profile = "h100-sxm";
  file.plan.degrees = {.tp = 2, .pp = 1, .dp = 8};
  file.plan.zero = 1;
  file.plan.global_batch = 64;
  file.plan.attention = AttentionKind::kFlash;
  file.plan.stage_layers = {32};
  return file;
}

}  // namespace

TEST_CASE("models of one shape and different vocabularies: the file must name one") {
  const auto open = imported("");
  REQUIRE_FALSE(open.ok());
  CHECK_THAT(open.error().message,
             Catch::Contains("llama-2-70b has 32000") && Catch::Contains("llama-3-70b has 128256"));
  CHECK_THAT(open.error().hint, Catch::Contains("--model NAME"));
  const auto based = imported("--rotary-base 500000");
  REQUIRE(based.ok());
  CHECK(based->file.model.name == "llama-3-70b");
  CHECK(based->file.model.vocab == 128256);
  REQUIRE(based->notes.size() == 1);
  CHECK(based->notes.front() ==
        "the file does not state the vocab size: 128256 is assumed, as in llama-3-70b");
  const auto said = imported("", {"--set", "vocab-size=32000"});
  REQUIRE(said.ok());
  CHECK(said->file.model.name == "llama-2-70b");
}

TEST_CASE("settings that are assumed to be harmless stay in the plan and widen its interval") {
  const std::vector<const char*> named = {"--model", "llama-2-70b", "--cluster", "dgx-h100"};
  const auto with = [&](std::vector<const char*> more) {
    more.insert(more.end(), named.begin(), named.end());
    return more;
  };
  CHECK_FALSE(imported("--of-next-year 3", named).ok());
  const auto stated = imported("--of-next-year 3", with({"--set", "of-next-year=null"}));
  REQUIRE(stated.ok());
  CHECK(stated->file.settings_assumed.empty());
  const auto assumed = imported("--of-next-year 3", with({"--assume-harmless"}));
  REQUIRE(assumed.ok());
  CHECK(assumed->file.settings_assumed == std::vector<std::string>{"--of-next-year"});
  CHECK(assumed->file.plan == stated->file.plan);
  const auto predicted = [](const PlanFile& file) {
    return app::simulate_answer({.scenario = {.file = file, .predicts = false}})->run.predicted;
  };
  const Prediction narrow = predicted(stated->file);
  const Prediction wide = predicted(assumed->file);
  CHECK(wide.step == narrow.step);
  CHECK(wide.step_high > 1.01 * narrow.step_high);
}

TEST_CASE("each file of an export stands for its folder") {
  for (const char* const stack : {"nemo", "pytorch-fsdp", "deepspeed-zero3"}) {
    PlanFile file = llama_plan();
    file.stack = stack;
    if (file.stack != "nemo") file.plan.degrees = {.tp = 1, .pp = 1, .dp = 16};
    if (file.stack != "nemo") file.plan.zero = 3;
    const StackSpec software = Catalogue::open()->load_stack(stack).value();
    for (const LaunchStack to : {*launcher_in(LaunchStack::kSlurm, file, software.launcher),
                                 LaunchStack::kSlurm, LaunchStack::kKubernetes}) {
      const auto files = export_plan(to, file, LaunchHosts(8), software);
      if (!files.ok()) FAIL(to_string(files.error()));
      REQUIRE(files->size() == 2);
      const test::TemporaryFolder folder;
      for (const LaunchFile& one : *files) std::ofstream(folder.path() / one.name) << one.text;
      for (const LaunchFile& one : *files) {
        CAPTURE(stack, one.name);
        const std::string path = (folder.path() / one.name).string();
        const auto read =
            import_answer(parsed({"tpsim", "import", path.c_str(), "--cluster", "dgx-h100"}));
        if (!read.ok()) FAIL(to_string(read.error()));
        CHECK(read->file.plan == file.plan);
        CHECK(read->file.model.name == "llama-3-8b");
      }
    }
  }
}

TEST_CASE("an import whose plan cannot be predicted saves the plan and fails") {
  const test::TemporaryFolder folder;
  PlanFile file = llama_plan();
  file.stack = "megatron-core";
  file.plan.zero = 3;
  const StackSpec software = Catalogue::open()->load_stack("megatron-core").value();
  LaunchFile script =
      export_plan(LaunchStack::kMegatronLm, file, LaunchHosts(8), software)->front();
  const auto path = folder.path() / "muon.sh", saved = folder.path() / "plan.json";
  const auto answer_with = [&](const std::string& more) {
    std::string text = script.text;
    text.insert(text.find("  --bf16"), more);
    std::ofstream(path) << text;
    return run_import(parsed({"tpsim", "import", path.c_str(), "--save", saved.c_str(), "--cluster",
                              "dgx-h100", "--json", "--quiet"}),
                      Terminal{});
  };
  const auto plain = answer_with("");
  REQUIRE(plain.ok());
  CHECK(plain->verdict.ok());
  const auto muon = answer_with("  --optimizer muon\n");
  REQUIRE(muon.ok());
  REQUIRE_FALSE(muon->verdict.ok());
  CHECK_THAT(muon->verdict.error().message, Catch::Contains("the plan cannot be predicted"));
  CHECK_FALSE(muon->document.is_null());
  CHECK(std::filesystem::exists(saved));
}

TEST_CASE("the last one of repeated options counts") {
  const auto last =
      imported("", {"--model", "llama-3-70b", "--set", "tensor-model-parallel-size=2", "--model",
                    "llama-2-70b", "--set", "tensor-model-parallel-size=4"});
  REQUIRE(last.ok());
  CHECK(last->file.model.name == "llama-2-70b");
  CHECK(last->file.plan.degrees.tp == 4);
  CHECK(last->file.plan.degrees.dp == 2);
}

}  // namespace tpsim::cli
