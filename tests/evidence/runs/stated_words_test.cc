// Spellings of dtypes, optimizers and GPUs in run tables.
#include "evidence/runs/stated_words.h"

#include <catch2/catch.hpp>

#include "evidence/runs/run_environment.h"

namespace tpsim {
namespace {

PublishedRun of_dtype(const std::string& dtype, const std::string& framework = "PyTorch") {
  PublishedRun run;
  run.dtype = dtype;
  run.framework = framework;
  return with_usual_words(run);
}

std::string masters_of(const PublishedRun& run) {
  const auto found = run.parts.find(StackPart::kMasterWeights);
  return found == run.parts.end() ? "" : found->second;
}

}  // namespace

TEST_CASE("words of a dtype state the type and the kind of mixed precision") {
  for (const char* word : {"bf16", "BF16", "bfloat16", "torch.bfloat16"}) {
    if (std::string(word) == "torch.bfloat16") {
      CHECK(of_dtype(word).dtype == word);  // an unknown word stays for the error
      continue;
    }
    CHECK(of_dtype(word).dtype == "bf16");
    CHECK(masters_of(of_dtype(word)).empty());
  }
  for (const char* word : {"bf16-mixed", "amp_bf16", "bf16 autocast"}) {
    CHECK(of_dtype(word).dtype == "bf16");
    CHECK(masters_of(of_dtype(word)) == "autocast");
    CHECK(masters_of(of_dtype(word, "PyTorch FSDP")).empty());
    CHECK(masters_of(of_dtype(word, "DeepSpeed ZeRO-3")).empty());
  }
  CHECK(masters_of(of_dtype("pure_bf16")) == "none");
  CHECK(masters_of(of_dtype("bf16-true", "PyTorch FSDP")) == "none");
  CHECK(of_dtype("float16").dtype == "fp16");
  CHECK(of_dtype("tf32").dtype == "fp32");
  CHECK(of_dtype("tf32").parts.at(StackPart::kFp32Matmul) == "tf32");
  CHECK(of_dtype("fp8").dtype == "fp8");
  CHECK(of_dtype("int4").dtype == "int4");
}

TEST_CASE("what a row states in a column of its own counts more than the words of its dtype") {
  PublishedRun run;
  run.dtype = "bf16-mixed";
  run.parts[StackPart::kMasterWeights] = "none";
  CHECK(masters_of(with_usual_words(run)) == "none");
}

TEST_CASE("a row's optimizer is its part where it is another than AdamW and known") {
  PublishedRun run;
  run.optimizer = "muon";
  CHECK(with_usual_words(run).parts.at(StackPart::kOptimizerKind) == "muon");
  run.optimizer = "adamw";
  CHECK(with_usual_words(run).parts.empty());
  run.optimizer = "lion";
  CHECK(with_usual_words(run).parts.at(StackPart::kOptimizerKind) == "lion");
  run.optimizer = "sophia";
  CHECK(with_usual_words(run).parts.empty());
}

TEST_CASE("a GPU's name may state less memory than the usual card has") {
  const Bytes usual(31.75 * kGiB);
  const auto less = smaller_memory("Tesla V100-SXM2-16GB", usual);
  REQUIRE(less.has_value());
  CHECK(less->value() == Approx(0.99 * 16 * kGiB));
  CHECK_FALSE(smaller_memory("V100-SXM2-32GB", usual).has_value());
  CHECK_FALSE(smaller_memory("NVIDIA GH200 480GB", usual).has_value());
  CHECK_FALSE(smaller_memory("V100", usual).has_value());
}

TEST_CASE("GPU names need no separators between letters and numbers") {
  CHECK(is_gpu("RTX4090", "4090"));
  CHECK(is_gpu("GeForce RTX 3090", "3090"));
  CHECK(is_gpu("RTX6000Ada", "6000-ADA"));
  CHECK(is_gpu("H100NVL", "H100-NVL"));
  CHECK_FALSE(is_gpu("GH200", "H200"));
  CHECK_FALSE(is_gpu("GB200", "B200"));
}

}  // namespace tpsim
