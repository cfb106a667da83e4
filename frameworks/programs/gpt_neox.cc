// Imports GPT-NeoX's YAML, whose names may contain '-' or '_'. Source of rules and defaults:
// megatron/neox_arguments/neox_args.py and megatron/model/transformer.py of EleutherAI/gpt-neox at
// ea7aefd.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
namespace {

void put_stages_and_zero(ProgramSettings& settings, LeftSettings& left) {
  const std::int64_t stages = settings.number("@stages", 1);
  settings.put("pipeline-model-parallel-size", stages);
  const std::int64_t zero = settings.number("@zero", 0);
  if (zero == 1) settings.put("use-distributed-optimizer", "true");
  if (zero == 2 || zero == 3) {
    settings.put("use-megatron-fsdp", "true");
    settings.put("data-parallel-sharding-strategy",
                 zero == 2 ? "optim_grads" : "optim_grads_params");
  }
  if (settings.is("@offload", "true")) {
    settings.put("optimizer-cpu-offload", "true");
    settings.put("use-precision-aware-optimizer", "true");
  }
  if (!settings.is("@recompute", "true")) return;
  const std::int64_t layers = settings.number("@recompute-layers", 1);
  if (layers > 1) {
    left.refuse("checkpoint_num_layers", fmt::format("checkpoint_num_layers: {}", layers),
                "tpsim models recompute of one layer at a time: add --set checkpoint_num_layers=1");
    return;
  }
  settings.put("recompute-granularity", "full");
  settings.put("recompute-method", "uniform");
  settings.put("recompute-num-layers", 1);
}

// Sets the FFN size of a gated MLP to that of LLaMAParallelMLP (megatron/model/transformer.py): 2/3
// of 4 x hidden, rounded up to a multiple.
void put_shape(ProgramSettings& settings) {
  const bool is_gated = settings.is("swiglu", "true");
  if (is_gated && !settings.has("ffn-hidden-size")) {
    const std::int64_t multiple = settings.number("@multiple", 1);
    const std::int64_t width = 8 * settings.number("hidden-size", 0) / 3;
    settings.put("ffn-hidden-size", (width + multiple - 1) / multiple * multiple);
  }
  if (settings.number("num-query-groups", 0) > 0) settings.put("group-query-attention", "true");
  const bool no_bias = settings.is("@attention-bias", "false");
  if (no_bias && (is_gated || settings.is("@mlp-bias", "false"))) {
    settings.put("disable-bias-linear", "true");
  }
  const bool is_flash = settings.is("@core", "flash");
  settings.put("attention-backend", is_flash ? "flash" : "unfused");
  if (!is_flash) {
    settings.put("@part.attention_kernel",
                 settings.is("@fused-softmax", "true") ? "megatron" : "torch");
  }
}

void put_words(ProgramSettings& settings) {
  const std::string tokenizer = *settings.find("@tokenizer");
  constexpr std::int64_t kNeoxWords = 50277;  // 20B_tokenizer.json
  constexpr std::int64_t kLlamaWords = 32000;
  const std::string* const file = settings.find("@vocab-file");
  const bool is_neox = tokenizer == "HFTokenizer" &&
                       (file == nullptr || file->find("20B_tokenizer") != std::string::npos);
  if (is_neox) {
    settings.put("vocab-size", kNeoxWords);
    if (file == nullptr) {
      settings.note("vocab size 50277 is assumed, that of the tokenizer of GPT-NeoX-20B");
    }
  } else if (tokenizer == "SPMTokenizer") {
    settings.put("vocab-size", kLlamaWords);
    settings.note("vocab size 32000 is assumed, that of the tokenizer of LLaMA");
  } else {
    settings.put("tokenizer-type", tokenizer);
  }
}

}  // namespace

void derive_neox(ProgramSettings& settings, LeftSettings& left) {
  put_stages_and_zero(settings, left);
  put_shape(settings);
  put_words(settings);
  if (settings.is("@wide", "true")) settings.put("accumulate-allreduce-grads-in-fp32", "true");
  if (settings.is("bf16", "true")) settings.erase("fp16");
  const std::int64_t replicas = settings.replicas();
  const std::int64_t micro = settings.number("micro-batch-size", 0);
  const bool is_open = !settings.has("@global-batch") && micro > 0 && replicas > 0;
  if (is_open) {
    settings.put("@global-batch", micro * replicas * settings.number("@accumulation", 1));
  }
  if (micro == 0 && !settings.has("@global-batch")) {
    settings.open.ask({"the file does not state the batch size per GPU",
                       "--set train_micro_batch_size_per_gpu=N"});
  }
  if (micro == 0 && settings.has("@global-batch") && replicas > 0) {
    settings.put("micro-batch-size",
                 std::max<std::int64_t>(1, settings.number("@global-batch", 1) /
                                               (replicas * settings.number("@accumulation", 1))));
  }
}

// Sets the norms of parallel attention and MLP blocks, which Megatron's arguments cannot express.
void finish_neox(const ProgramSettings& settings, ImportedPlan& plan) {
  if (!settings.is("@parallel-residual", "true")) return;
  plan.model.norm_place =
      settings.is("@one-norm", "true") ? NormPlace::kOneParallel : NormPlace::kTwoParallel;
}

}  // namespace tpsim
