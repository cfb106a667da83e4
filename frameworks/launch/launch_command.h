// The training command in what people have: a launch script of any shape, a file of arguments to
// source, or the block of arguments that Megatron prints at the start of its log.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/software/stack_parts.h"
#include "formats/settings_text.h"
#include "frameworks/launch/launch_settings.h"

namespace tpsim {

struct LaunchCommand {
  LaunchSize size{0, 0};     // zeros where the text does not say
  std::string size_unknown;  // why it does not: "NNODES is not set in the script"
  std::vector<LaunchOption> options;
  std::map<std::string, std::string> files;  // that the script writes
  std::vector<std::string> missing;          // that it sources and that are not there
  // Configurations that the command names: accelerate's --config_file, the program's own.
  std::vector<std::string> configs;
  std::string program;                // "pretrain_gpt.py"; empty where there is none
  std::vector<std::string> words;     // of the training: behind the program
  std::vector<std::string> launcher;  // before it
  // Exported variables, where the script starts nothing and these are the settings.
  std::vector<FlatSetting> variables;
  bool is_log = false;    // a log's block, which prints what nobody asked for too
  bool is_whole = false;  // likewise, but of settings that people wrote: those left are named
  bool blocks_launches = false;                  // CUDA_LAUNCH_BLOCKING=1
  std::optional<bool> expandable_segments = {};  // of PYTORCH_CUDA_ALLOC_CONF, where it says so
};

// Of several training commands the one with most options; an option given twice holds its last
// value, as it does to the programs. Takes variables of the environment from `inputs`, and reads
// the files that the script sources through its `open`.
Result<LaunchCommand> read_launch_command(const LaunchFile& file, const ImportInputs& inputs = {});

// "--set '@=SIZE BATCH'": how to give a script its arguments, by the names that it has for them.
std::string arguments_advice(std::string_view text);
// With that advice, where the error may come from arguments that nobody gave.
Error with_arguments(Error error, std::string_view text, const ImportInputs& inputs);

// With the names of files that the script sources and that are not there.
Error with_missing(Error error, const std::vector<std::string>& missing);

// An error for a program that has none of Megatron's arguments.
Status check_program(const LaunchCommand& command, const std::string& path);

// On how many GPUs: as asked, else as the file says.
Result<LaunchSize> size_of(const LaunchCommand& command, const ImportInputs& inputs);

// Adds what its environment says of the allocator and of launches, as parts of the plan's software.
void add_environment(const LaunchCommand& command, ImportedPlan& plan);

// The plan of Megatron-LM's options, whatever text they came from.
Result<ImportedPlan> import_megatron(LaunchCommand command, const ImportInputs& inputs);

// Megatron's options as its versions and forks write them, brought to the names of today:
// "--checkpoint-activations" and "--tensor_model_parallel_size". A log's block becomes the options
// that led to it.
void use_todays_names(LaunchCommand& command);
// Takes out the options that say how the software computes what the plan says: "--no-rope-fusion"
// is rotary_kernel=torch. A named option that is left out says nothing.
PartValues take_parts(std::vector<LaunchOption>& options);
// The same of the dtype of Adam's two moments; an error where they differ.
Status take_moments(std::vector<LaunchOption>& options, PartValues& parts);

// Dropout inside of a fused kernel costs little, and the flash core here has none.
inline constexpr const char* kNoFlashDropout =
    "dropout inside of flash attention is predicted as none";
void leave_out_flash_dropout(std::vector<LaunchOption>& options, ImportedPlan& plan);
// Takes out the overlap of a shared expert with the dispatch, which hides at most that expert.
void leave_out_shared_overlap(std::vector<LaunchOption>& options, ImportedPlan& plan);
// A run without the model's layers that predict later tokens: they are neither timed nor stored.
void leave_out_predictions(bool is_trained, ImportedPlan& plan);
// What options say that are read as the plan and as parts of its software.
PartValues parts_of_megatron(const std::vector<LaunchOption>& options, const ImportedPlan& read);

// --set of options, "vocab-size": no variable of a shell has such a name. "null" leaves one out.
void add_given_options(const ImportInputs& inputs, LaunchCommand& command);

// Whether the options are those of Hugging Face's Trainer; and its plan, with the configurations
// that they name.
bool is_trainer_command(const LaunchCommand& command);
Result<ImportedPlan> import_trainer_command(const LaunchCommand& command, const LaunchFile& file,
                                            const ImportInputs& inputs);

// torchtitan's options, and the TOML that they name.
Result<ImportedPlan> import_torchtitan_command(LaunchCommand command, const LaunchFile& file,
                                               const ImportInputs& inputs);

// Whether the text holds such a block.
bool has_arguments_block(std::string_view text);

}  // namespace tpsim
