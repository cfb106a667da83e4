// Supported launchers, and inputs and result of an import.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_words.h"
#include "core/base/result.h"
#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/software/stack_parts.h"
#include "formats/launch_file.h"

namespace tpsim {

enum class LaunchStack : std::uint8_t {
  kMegatronLm,  // NVIDIA Megatron-LM (megatron core, 2025-2026): arguments of pretrain_gpt.py
  kMegatronDeepSpeed,  // BigScience's Megatron-DeepSpeed: arguments and DeepSpeed's JSON
  kNemo,               // NeMo Megatron-Bridge: YAML overrides of a recipe
  kTorchTitan,         // torchtitan (2026): command-line options
  kNanotron,           // Hugging Face's nanotron: its YAML
  kAccelerate,         // Hugging Face's accelerate: FSDP and data parallelism for a Trainer
  kSlurm,              // job script around the files of the plan's own stack
  kKubernetes,         // JobSet around them
};
template <>
inline constexpr auto kEnumNames<LaunchStack> =
    words<8>("megatron-lm megatron-deepspeed nemo torchtitan nanotron accelerate slurm kubernetes");
constexpr bool is_job(LaunchStack stack) {
  return stack == LaunchStack::kSlurm || stack == LaunchStack::kKubernetes;
}
inline constexpr int kLaunchStackCount = static_cast<int>(LaunchStack::kKubernetes) + 1;

class LeftSettings;

struct ImportInputs {
  std::optional<ModelSpec> model;  // nothing: the model that the files describe
  // Whether `model` overrides the files. Differences then become notes; otherwise they are errors.
  bool model_wins = false;
  bool keeps_seq = false;        // keep the model's sequence, as requested; else use the files'
  std::int64_t gpus = 0;         // 0: as in the files
  std::int64_t micro_batch = 0;  // if the files lack it; 0: they must state it
  std::int64_t global_batch = 0;
  // Environment variables of a script. For a configuration also settings by key. Names with a dash
  // are training options: "vocab-size".
  std::map<std::string, std::string> given;
  std::vector<LaunchFile> more;  // configurations of accelerate or DeepSpeed besides the first file
  // Loads a model by its name in a file. May be empty.
  std::function<Result<ModelSpec>(const std::string&)> load;
  // Reads a file that another file names, relative to it. May be empty.
  std::function<Result<std::string>(const std::string&)> open;
  // Whether Python recipes and scripts may be run. Otherwise they are refused, with the option to
  // add.
  bool runs_code = false;
  std::vector<std::string> checkouts = {};  // folders of the frameworks that recipes import
  std::string gpu = "h100";                 // GPU that recipes detect
  bool assumes_harmless = false;            // unknown settings are assumed not to change the plan
  // Collects settings that prevent the import. Null: the outermost import function creates the
  // list.
  LeftSettings* left = nullptr;
};

struct ImportedPlan {
  ModelSpec model;
  Plan plan;
  PartValues parts;                     // stated by the files, even if equal to the stack's own
  std::string stack;                    // in the catalogue; empty if the files do not state it
  std::vector<std::string> outside;     // ignored settings: "--lr"
  std::vector<std::string> notes = {};  // differences from the files
  std::vector<std::string> assumed_harmless = {};  // unknown settings that were ignored
  bool has_vocab = true;  // false: defined by a tokenizer, and model.vocab is 0
  // Then: that of the tokenizer, if it is known; used if no model of the catalogue has the shape.
  std::int64_t tokenizer_vocab = 0;
  std::string tokenizer = {};
};

}  // namespace tpsim
