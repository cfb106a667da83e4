// Imports commands of ms-swift: "swift" trains with Hugging Face's Trainer, "megatron" with
// Megatron-Core. Source of rules and defaults: swift/arguments, swift/trainers/arguments.py and
// swift/megatron/arguments/megatron_args.py of modelscope/ms-swift at 3602360.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "frameworks/huggingface/adapter_settings.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
namespace {

// Names of losses that compare a chosen and a rejected answer.
constexpr std::string_view kPairs = "dpo cpo orpo simpo rm";

void add_answers(ProgramSettings& settings) {
  const std::string* const kind = settings.find("@rlhf");
  if (kind == nullptr) return;
  if (matches_any(*kind, "grpo ppo")) {
    constexpr std::int64_t kUsualAnswer = 512;  // rlhf_args.py, max_completion_length
    const std::int64_t answer = settings.number("@completion", kUsualAnswer);
    const std::int64_t prompt = settings.number("@length", 0);
    settings.put("@length", prompt + answer);
    if (prompt == 0) {
      settings.note(
          fmt::format("the file does not state the prompt length: sequences are predicted as "
                      "answers of {} tokens without a prompt",
                      answer));
    }
  }
  settings.note(
      fmt::format("{}: only the update of the trained model is predicted; generation, "
                  "rewards and the passes of other models are not",
                  *kind));
}

// swift/arguments/tuner_args.py: without a tuner LoRA of rank 8 in all linear layers is trained.
void put_adapters_of_swift(ProgramSettings& settings, LeftSettings& left) {
  const std::int64_t bits = settings.number("@bits", 0);
  settings.put("@part.finetune", std::string(bits > 0 ? "qlora" : "lora"));
  if (bits == 8) settings.put("@part.base_dtype", std::string("int8"));
  if (!settings.has("@part.lora_rank")) settings.put("@part.lora_rank", 8);
  const std::string* const dropout = settings.find("@dropout");
  const double share = dropout == nullptr ? 0.05 : parse_number<double>(*dropout).value_or(0);
  settings.put("@part.lora_dropout", std::llround(100 * share));
  const std::string* const named = settings.find("@targets");
  if (named == nullptr) return;
  const std::optional<std::int64_t> targets = targets_of_modules(words_in(*named));
  if (!targets) {
    return left.refuse("target_modules", fmt::format("target_modules: {}", *named), kAllWeights);
  }
  settings.put("@part.lora_targets", text_of(row_of(StackPart::kLoraTargets), *targets));
}

}  // namespace

void derive_swift(ProgramSettings& settings, LeftSettings& left) {
  const bool is_default = !settings.has("@tuner");
  if (is_default || settings.is("@tuner", "lora")) put_adapters_of_swift(settings, left);
  add_answers(settings);
  const std::string* const kind = settings.find("@rlhf");
  if (kind != nullptr && matches_any(*kind, kPairs)) {
    settings.put("per_device_train_batch_size",
                 2 * settings.number("per_device_train_batch_size", 1));
    settings.note("a sample is a pair of sequences");
  }
  if (settings.gpus() == 0) settings.put("@gpus", 1);  // one process unless NPROC_PER_NODE is set
  if (settings.has("gradient_accumulation_steps")) return;
  const bool generates = kind != nullptr && *kind == "grpo";
  const std::int64_t ranks = settings.number("per_device_train_batch_size", 1) * settings.gpus();
  constexpr std::int64_t kLeastBatch = 16;  // trainers/arguments.py
  settings.put("gradient_accumulation_steps",
               generates ? 1 : std::max<std::int64_t>(1, (kLeastBatch + ranks - 1) / ranks));
}

void derive_swift_megatron(ProgramSettings& settings, LeftSettings& left) {
  if (settings.is("@tuner", "lora")) put_adapters_of_swift(settings, left);
  for (const auto& [name, otherwise] :
       {std::pair{"@model", "@load"}, std::pair{"@length", "@seq"}}) {
    if (!settings.has(name) && settings.has(otherwise))
      settings.put(name, *settings.find(otherwise));
  }
  add_answers(settings);
  if (!settings.has("recompute-granularity") && !settings.has("@none")) {
    settings.put("recompute-granularity", "selective");
  }
  const std::string* const kind = settings.find("@rlhf");
  if (kind != nullptr && matches_any(*kind, kPairs)) {
    for (const char* name : {"micro-batch-size", "global-batch-size"}) {
      settings.put(name, 2 * settings.number(name, 1));
    }
    settings.note("a sample is a pair of sequences");
  }
  if (!settings.has("@length")) {
    settings.open.ask({"the file does not state the sequence length", "--set max_length=N"});
    return;
  }
  const std::string length = *settings.find("@length");
  settings.note(
      settings.is("@packing", "true")
          ? fmt::format("every sequence is predicted as {} tokens of packed samples, with "
                        "attention across samples: attention within each sample takes less time",
                        length)
          : fmt::format("every sequence is predicted as {} tokens, the maximum length: "
                        "shorter samples take less time and memory, so both are upper bounds",
                        length));
}

}  // namespace tpsim
