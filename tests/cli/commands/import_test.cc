// Models that launch files leave partly open, as the catalogue knows them.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "cli/commands/program.h"
#include "cli/options/answers.h"

namespace tpsim::cli {
namespace {

// A script of LLaMA's 70 billion weights, whose tokenizer is a folder's.
Result<ImportAnswer> imported(const std::string& more, const char* set = nullptr) {
  const auto path = std::filesystem::temp_directory_path() / "tpsim_import_words.sh";
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
  if (set != nullptr) words.insert(words.end(), {"--set", set});
  const auto parsed = parse_command_line(static_cast<int>(words.size()), words.data());
  REQUIRE(parsed.ok());
  auto answer = import_answer(std::get<Arguments>(*parsed));
  std::filesystem::remove(path);
  return answer;
}

}  // namespace

TEST_CASE("of models of one shape with other words the file has to say which") {
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
  CHECK(based->notes.front() == "its tokenizer is taken to have llama-3-70b's 128256 words");
  const auto said = imported("", "vocab-size=32000");
  REQUIRE(said.ok());
  CHECK(said->file.model.name == "llama-2-70b");
}

}  // namespace tpsim::cli
