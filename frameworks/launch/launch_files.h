// A plan as the launch files of a training stack, and back.
//
// What a stack cannot express is an error with the reason; nothing is dropped or approximated. Data
// paths, tokenizer, learning rate and checkpoints are the user's: they are no part of a plan.
// Reading back checks the rules that the stack itself checks and gives exactly the same plan. What
// people wrote is read too: scripts with variables and arrays, and the arguments in a log.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_words.h"
#include "core/base/result.h"
#include "core/scenario/plan_file.h"
#include "core/software/launch_rules.h"
#include "core/software/stack_spec.h"
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
inline constexpr int kLaunchStackCount = static_cast<int>(LaunchStack::kKubernetes) + 1;

// The names that files of this stack may have, the one that holds the arguments first.
std::vector<std::string> launch_file_names(LaunchStack stack);

// `software` predicted the plan: what it and the plan's parts overlap, and how they exchange keys
// and values, is asked for where a launcher has a switch; a job starts the files of its launcher.
Result<std::vector<LaunchFile>> export_plan(LaunchStack stack, const PlanFile& file,
                                            std::int64_t gpus_per_node,
                                            const StackSpec& software = {});

struct ImportInputs {
  std::optional<ModelSpec> model;  // nothing: the model is the one that the files describe
  bool keeps_seq = false;          // the model's sequence was asked for; else it is the files'
  std::int64_t gpus = 0;           // 0: as the files say
  std::int64_t micro_batch = 0;    // where the files leave it open; 0: they must not
  std::int64_t global_batch = 0;
  // Variables that a script takes from outside; of a configuration settings too, by their keys.
  // Names with a dash are options of the training: "vocab-size".
  std::map<std::string, std::string> given;
  std::vector<LaunchFile> more;  // configurations beside the first: accelerate's, DeepSpeed's
  // A model by the name that a file has for it; may be empty.
  std::function<Result<ModelSpec>(const std::string&)> load;
  // Reads a file that another names, relative to it; may be empty.
  std::function<Result<std::string>(const std::string&)> open;
};

struct ImportedPlan {
  ModelSpec model;
  Plan plan;
  PartValues parts;   // that the files state, whatever the stack's own are
  std::string stack;  // of the catalogue: what the files are for; empty where they do not say
  std::vector<std::string> outside;     // settings that no plan is made of: "--lr"
  std::vector<std::string> notes = {};  // what is predicted otherwise than the files say
  bool has_vocab = true;  // false: the files leave it to a tokenizer, and model.vocab is 0
};

// The plan of files that export_plan wrote, or that people wrote for the same stack. A named model
// must be what the files describe; sequence, dropout and the capacity of experts are the files'. A
// setting that is unknown, or that makes a plan which tpsim cannot express, is an error.
Result<ImportedPlan> import_plan(LaunchStack stack, const std::vector<LaunchFile>& files,
                                 const ImportInputs& inputs);
// The stack that a script or log is most likely for.
LaunchStack stack_of_text(std::string_view text);
// Of one model, all else as the files say.
Result<ImportedPlan> import_plan(LaunchStack stack, const std::vector<LaunchFile>& files,
                                 const ModelSpec& model);

}  // namespace tpsim
