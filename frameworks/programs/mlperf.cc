// Imports NVIDIA's submissions to MLPerf Training. A script exports the settings of a run as
// environment variables (config_DGXH100_64x8x2xtp4pp8cp2.sh). Source of rules and defaults:
// conf/custom.yaml and pretrain.py of mlcommons/training_results_v5.0 at 0fdc28f, and of v4.1 at
// b87b9e3.
#include <fmt/format.h>

#include "core/base/text.h"
#include "frameworks/launch/programs.h"

namespace tpsim {
namespace {

constexpr ProgramSetting kMlperfRows[] = {
    {"DGXNNODES", "@nodes"},
    {"DGXNGPU", "@gpus-per-node"},
    {"MINIBS", "@minibatch"},
    {"MICRO_BATCH_SIZE", "@micro-batch"},
    {"TENSOR_MODEL_PARALLEL", "tensor-model-parallel-size"},
    {"PIPELINE_MODEL_PARALLEL", "pipeline-model-parallel-size"},
    {"CONTEXT_PARALLEL", "context-parallel-size"},
    {"EXPERT_PARALLEL", "expert-model-parallel-size"},
    {"INTERLEAVED_PIPELINE", "@chunks"},
    {"SEQ_PARALLEL", "sequence-parallel"},
    {"USE_DIST_OPTIMIZER", "use-distributed-optimizer"},
    {"OVERLAP_GRAD_REDUCE", "overlap-grad-reduce"},
    {"OVERLAP_PARAM_GATHER", "overlap-param-gather"},
    {"OVERLAP_P2P_COMM", "@overlap-p2p"},
    {"TP_COMM_OVERLAP", "tp-comm-overlap"},
    {"TP_PP_DP_MAPPING", "use-tp-pp-dp-mapping"},
    {"ASYM_PP_EMBED", "account-for-embedding-in-pipeline-split"},
    {"ASYM_PP_LOSS", "account-for-loss-in-pipeline-split"},
    {"ACT_CKPT_GRANULARITY", "recompute-granularity"},
    {"ACT_CKPT_METHOD", "recompute-method"},
    {"ACT_CKPT_NUM_LAYERS", "recompute-num-layers"},
    {"FP8", "@fp8"},
    {"FP8_HYBRID", "@fp8-hybrid"},
    {"FP8_RECIPE", "@fp8-recipe"},
    {"FP8_PARAMS FP8_PARAM FP8_PARAM_GATHER", "@fp8-weights"},
    {"FP4", "@fp4"},
    {"FP4_RECIPE", "@fp4-recipe"},
    {"LAYER_CUDA_GRAPH", "@layer-graphs"},
    {"MCORE_CUDA_GRAPH", "@layer-graphs"},
    {"MODEL_SIZE", "@size"},
    {"OVERWRITTEN_NUM_LAYERS", "@layers"},
    {"NUM_LAYERS", "@layers"},
    {"SEQ_LENGTH ENCODER_SEQ_LENGTH", "@length"},
};

constexpr LeftOver kMlperfRefused[] = {
    {"LORA_* LORA", kAllWeights},
};

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

constexpr TrainingProgram kMlperf[] = {
    {.name = "MLPerf",
     .file_keys = "DGXNNODES MINIBS",
     .settings = SettingsOf::kMegatron,
     .stack = "nemo",
     .rows = kMlperfRows,
     .defaults = "@gpus-per-node=8 bf16=true grad-reduce-in-bf16=true sequence-parallel=true "
                 "use-distributed-optimizer=true overlap-grad-reduce=true "
                 "overlap-param-gather=true attention-backend=fused attention-dropout=0 "
                 "hidden-dropout=0 moe-token-dispatcher-type=alltoall",
     .refused = kMlperfRefused,
     .outside = "*",
     .derive = derive_mlperf},
};

}  // namespace

std::span<const TrainingProgram> mlperf_programs() { return kMlperf; }

}  // namespace tpsim
