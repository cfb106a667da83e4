// Imports NVIDIA's submissions to MLPerf Training. A script exports the settings of a run as
// environment variables (config_DGXH100_64x8x2xtp4pp8cp2.sh). Source of rules and defaults:
// conf/custom.yaml and pretrain.py of mlcommons/training_results_v5.0 at 0fdc28f, and of v4.1 at
// b87b9e3.
#include <fmt/format.h>

#include "core/base/text.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
namespace {

// A benchmark, recognized by a part of the folder's name, with its model and sequence length in
// tokens.
struct Benchmark {
  std::string_view folder;
  std::string_view model;
  std::int64_t length;
};
constexpr Benchmark kBenchmarks[] = {
    {"llama31_405b", "llama-3.1-405b", 8192},
    {"llama31_8b", "llama-3.1-8b", 8192},
    {"gpt3", "gpt-3-175b", 2048},
};

void put_benchmark(ProgramSettings& settings, LeftSettings& left) {
  const std::string place = settings.program;
  if (place.find("lora") != std::string::npos) {
    left.refuse("LORA", fmt::format("{} trains adapters", place), kAllWeights);
  }
  for (const Benchmark& one : kBenchmarks) {
    if (place.find(one.folder) == std::string::npos) continue;
    settings.put("@model", std::string(one.model));
    if (!settings.has("@length")) settings.put("@length", one.length);
    return;
  }
  if (const std::string* size = settings.find("@size")) {
    settings.put("@model", fmt::format("llama-3.1-{}", *size));
    if (!settings.has("@length")) settings.put("@length", 8192);
  } else {
    settings.put("@model", std::string("mlperf"));
  }
}

void put_precision(ProgramSettings& settings) {
  const auto is_on = [&](const char* name) { return settings.is(name, "true 1"); };
  if (is_on("@fp8")) {
    settings.put("fp8-format", is_on("@fp8-hybrid") ? "hybrid" : "e4m3");
    const std::string* const recipe = settings.find("@fp8-recipe");
    settings.put("fp8-recipe", recipe == nullptr ? "delayed" : *recipe);
    if (is_on("@fp8-weights")) settings.put("fp8-param-gather", "true");
  }
  if (is_on("@fp4")) {
    settings.put("fp4-format", "e2m1");
    const std::string* const recipe = settings.find("@fp4-recipe");
    settings.put("fp4-recipe", recipe == nullptr ? "nvfp4" : *recipe);
  }
  if (is_on("@layer-graphs")) settings.put("external-cuda-graph", "true");
}

}  // namespace

void derive_mlperf(ProgramSettings& settings, LeftSettings& left) {
  put_benchmark(settings, left);
  put_precision(settings);
  constexpr std::int64_t kUsualChunks = 12;
  const std::int64_t chunks = settings.number("@chunks", kUsualChunks);
  if (settings.number("pipeline-model-parallel-size", 1) > 1 && chunks > 1) {
    settings.put("virtual-pipeline-model-parallel-size", chunks);
  }
  const std::int64_t replicas = settings.replicas();
  if (replicas > 0 && settings.has("@minibatch")) {
    settings.put("@global-batch", replicas * settings.number("@minibatch", 1));
  }
  if (settings.number("tensor-model-parallel-size", 1) == 1) {
    settings.erase("sequence-parallel");
    settings.erase("tp-comm-overlap");
  }
}

}  // namespace tpsim
