// Finds the training command in a launch script, a file of arguments to source, or Megatron's
// argument block in a log.
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
  LaunchSize size{0, 0};     // zeros if unknown
  std::string size_unknown;  // the reason: "NNODES is not set in the script"
  std::vector<LaunchOption> options;
  std::map<std::string, std::string> files;  // written by the script
  std::vector<std::string> missing;          // sourced, but not found
  // Configurations named by the command: accelerate's --config_file, and the program's own.
  std::vector<std::string> configs;
  std::string program;                // "pretrain_gpt.py"; empty if there is none
  std::vector<std::string> words;     // arguments of the training, after the program
  std::vector<std::string> launcher;  // arguments before the program
  // Exported variables of a script without a training command, if they are its settings.
  std::vector<FlatSetting> variables;
  bool is_log = false;           // argument block of a log, which includes defaults
  bool is_whole = false;         // likewise, but settings stated by people: unread ones are named
  bool blocks_launches = false;  // CUDA_LAUNCH_BLOCKING=1
  std::optional<bool> expandable_segments = {};  // of PYTORCH_CUDA_ALLOC_CONF, if stated
};

// Selects the training command with most options. If an option is repeated, its last value counts,
// as in the programs. Environment variables come from `inputs`; `inputs.open` reads sourced files.
Result<LaunchCommand> read_launch_command(const LaunchFile& file, const ImportInputs& inputs = {});

// Returns advice on how to pass the script's arguments: "--set '@=SIZE BATCH'", with the script's
// names for them.
std::string arguments_advice(std::string_view text);
// Adds this advice if missing arguments may have caused the error.
Error with_arguments(Error error, std::string_view text, const ImportInputs& inputs);

// Adds the names of sourced files that were not found.
Error with_missing(Error error, const std::vector<std::string>& missing);

// Returns an error for a program without Megatron's arguments.
Status check_program(const LaunchCommand& command, const std::string& path);

// Returns the number of GPUs: the requested one, else the one in the file.
Result<LaunchSize> size_of(const LaunchCommand& command, const ImportInputs& inputs);

// Adds the environment's settings of allocator and launches as parts of the plan's software.
void add_environment(const LaunchCommand& command, ImportedPlan& plan);

// Imports Megatron-LM's options from any source.
Result<ImportedPlan> import_megatron(LaunchCommand command, const ImportInputs& inputs);

// Renames options of older versions and forks, such as "--checkpoint-activations" and
// "--tensor_model_parallel_size". Converts a log's block to the options that caused it.
void use_todays_names(LaunchCommand& command);
// Removes options that select an implementation: "--no-rope-fusion" is rotary_kernel=torch. The
// result lacks parts whose option is absent.
PartValues take_parts(std::vector<LaunchOption>& options);
// Likewise for the dtype of Adam's two moments. Error if they differ.
Status take_moments(std::vector<LaunchOption>& options, PartValues& parts);
// Takes options of Muon, of experts' buffers and of offloaded activations as parts.
Status take_mechanisms(std::vector<LaunchOption>& options, PartValues& parts);

// Dropout inside a fused kernel costs little. tpsim's flash attention does not have dropout.
inline constexpr const char* kNoFlashDropout =
    "dropout inside flash attention is not modelled and predicted as zero";
void leave_out_flash_dropout(std::vector<LaunchOption>& options, ImportedPlan& plan);
// Removes the option that overlaps a shared expert with the dispatch. The predicted step is then an
// upper bound: the overlap hides at most that expert.
void leave_out_shared_overlap(std::vector<LaunchOption>& options, ImportedPlan& plan);
// Removes the model's multi-token prediction layers if the run does not train them.
void leave_out_predictions(bool is_trained, ImportedPlan& plan);
// Returns the parts of the software that options state together with the plan.
PartValues parts_of_megatron(const std::vector<LaunchOption>& options, const ImportedPlan& read);

// Adds options given by --set, such as "vocab-size". Names of shell variables cannot contain '-'.
// "null" removes an option.
void add_given_options(const ImportInputs& inputs, LaunchCommand& command);

// Whether the options are those of Hugging Face's Trainer. import_trainer_command() also reads the
// configurations that they name.
bool is_trainer_command(const LaunchCommand& command);
Result<ImportedPlan> import_trainer_command(const LaunchCommand& command, const LaunchFile& file,
                                            const ImportInputs& inputs);

// Imports torchtitan's options, and the TOML that they name.
Result<ImportedPlan> import_torchtitan_command(LaunchCommand command, const LaunchFile& file,
                                               const ImportInputs& inputs);

// Whether the text contains Megatron's argument block.
bool has_arguments_block(std::string_view text);

}  // namespace tpsim
