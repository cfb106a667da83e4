// The launchers whose files are written and read, and what an import takes and gives.
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
  kSlurm,              // a job script around the files of the plan's own stack
  kKubernetes,         // a JobSet around them
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
  std::optional<ModelSpec> model;  // nothing: the model is the one that the files describe
  // Where the files say something else of it, `model` stands and the difference becomes a note;
  // otherwise that is an error.
  bool model_wins = false;
  bool keeps_seq = false;        // the model's sequence was asked for; else it is the files'
  std::int64_t gpus = 0;         // 0: as the files say
  std::int64_t micro_batch = 0;  // where the files leave it open; 0: they must not
  std::int64_t global_batch = 0;
  // Variables that a script takes from outside; of a configuration settings too, by their keys.
  // Names with a dash are options of the training: "vocab-size".
  std::map<std::string, std::string> given;
  std::vector<LaunchFile> more;  // configurations beside the first: accelerate's, DeepSpeed's
  // A model by the name that a file has for it; may be empty.
  std::function<Result<ModelSpec>(const std::string&)> load;
  // Reads a file that another names, relative to it; may be empty.
  std::function<Result<std::string>(const std::string&)> open;
  // Recipes and scripts in Python are code: run where this is set, else refused with what to type.
  bool runs_code = false;
  std::vector<std::string> checkouts = {};  // folders with the frameworks that they import
  std::string gpu = "h100";                 // the GPU that recipes find
  bool assumes_harmless = false;            // unknown settings are taken to change no plan
  // Collects what keeps a file from being planned; null: the import that is asked first collects
  // it.
  LeftSettings* left = nullptr;
};

struct ImportedPlan {
  ModelSpec model;
  Plan plan;
  PartValues parts;   // that the files state, whatever the stack's own are
  std::string stack;  // of the catalogue: what the files are for; empty where they do not say
  std::vector<std::string> outside;                // settings that no plan is made of: "--lr"
  std::vector<std::string> notes = {};             // what is predicted otherwise than the files say
  std::vector<std::string> assumed_harmless = {};  // unknown settings that were left out
  bool has_vocab = true;  // false: the files leave it to a tokenizer, and model.vocab is 0
};

}  // namespace tpsim
