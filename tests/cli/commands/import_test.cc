// Models that launch files define only in part, completed from the catalogue.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "cli/commands/program.h"
#include "core/scenario/catalogue.h"
#include "plans/questions/open_inputs.h"
#include "tests/cli/typed_answers.h"
#include "tests/temporary_folder.h"

namespace tpsim::cli {
namespace {

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
  const auto parsed = parse_command_line(static_cast<int>(words.size()), words.data());
  REQUIRE(parsed.ok());
  return import_answer(std::get<Arguments>(*parsed));
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
