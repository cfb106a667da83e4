// Finds the training command in a launch script, a file of arguments to source, or Megatron's
// argument block in a log.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/scenario/plan_file.h"
#include "core/software/stack_parts.h"
#include "core/software/stack_spec.h"
#include "formats/settings_text.h"
#include "formats/shell_script.h"
#include "frameworks/launch/launch_stack.h"
#include "frameworks/launch/shell_files.h"

namespace tpsim {

struct LaunchCommand {
  LaunchSize size{0, 0};     // nodes and GPUs per node; zeros if unknown
  std::string size_unknown;  // why the size is unknown: "--nnodes is $N, which ..."
  std::vector<LaunchOption> options;
  // Configuration files named by the command: accelerate's --config_file, then the program's own.
  std::vector<std::string> configs;
  std::string folder;                 // in which the command starts; empty if unknown
  std::string program;                // "pretrain_gpt.py"; empty if there is none
  std::vector<std::string> words;     // arguments after the program
  std::vector<std::string> launcher;  // arguments before the program
  std::vector<std::string> loose;     // names of unknown values that may be further arguments
  // Variables of a script without a training command, if a known program reads its settings from
  // them.
  std::vector<FlatSetting> variables;
  bool is_log = false;     // from the argument block of a log, which includes defaults
  bool is_whole = false;   // with is_log: from a YAML file; list unread options as ignored
  PartValues environment;  // parts that environment variables state
  std::map<std::string, std::string> exported;  // environment variables of the command
};

// Whether the command starts its program on several ranks, by torchrun or the like.
bool is_launched(const LaunchCommand& command);

// Returns the commands among `commands` that start a training, without repetitions. Commands that
// are launched on several ranks precede others, which are then left out.
Result<std::vector<LaunchCommand>> trainings_of(const std::vector<ShellCommand>& commands,
                                                const ShellScript& script, const LaunchFile& file);
// Runs the script, or returns its result from inputs.scripts.
Result<ShellScript> script_of(const LaunchFile& file, const ImportInputs& inputs);
// Returns the script's variables as settings; empty if no known program has such settings.
std::vector<FlatSetting> exported_settings(const ShellScript& script);
// Returns the options or variables of a script without a training command.
Result<LaunchCommand> options_of_script(const ShellScript& script, const LaunchFile& file);
inline constexpr std::size_t kMostOptions = 4096;
// Error for a file with more options.
Error too_many(const LaunchFile& file);
// Returns the arguments that a log prints. Arguments whose value is None or [] are left out.
Result<LaunchCommand> command_of_log(const LaunchFile& file);
// Returns the first training command of a script, the options in the file, or the arguments of a
// log.
Result<LaunchCommand> read_launch_command(const LaunchFile& file, const ImportInputs& inputs = {});

// Returns a hint for passing positional arguments to the script: "--set '@=SIZE BATCH'". SIZE and
// BATCH are the variables to which the script assigns its arguments.
std::string arguments_advice(std::string_view text);
// Adds that hint to `error` if missing arguments may have caused the error.
Error with_arguments(Error error, std::string_view text, const ImportInputs& inputs);

// Adds the names of sourced files that were not found to the error.
Error with_missing(Error error, const std::vector<std::string>& missing);

// Returns an error if the command's program does not take Megatron's arguments.
Status check_program(const LaunchCommand& command, const std::string& path);
// The same for a script; the error also reports a program that is not found although it may run.
Status check_started_program(const LaunchCommand& command, const LaunchFile& script,
                             const ImportInputs& inputs);
// Adds a hint for a program that may run a recipe, since the file does not state what a plan needs.
Error with_recipe_advice(Error error, const std::string& program, const ImportInputs& inputs);
// Runs the Python program that the script starts with its arguments, and imports its
// configuration. Nothing without --run, or if the program does not import a framework whose recipes
// tpsim runs. See frameworks/launch/follow_recipe.cc.
std::optional<Result<ImportedPlan>> import_started_recipe(const LaunchCommand& command,
                                                          const LaunchFile& script,
                                                          const ImportInputs& inputs);

// Returns the number of GPUs: inputs.gpus if it is set, otherwise the size in the command. Error if
// both are unknown.
Result<LaunchSize> size_of(const LaunchCommand& command, const ImportInputs& inputs);

// Adds software parts that environment variables select: expandable segments of PyTorch's
// allocator, blocking CUDA launches, and TF32.
void add_environment(const LaunchCommand& command, ImportedPlan& plan);

// Imports a plan from Megatron-LM's options, which may come from a script, a log or a configuration
// file.
Result<ImportedPlan> import_megatron(LaunchCommand command, const ImportInputs& inputs);

// Sets the model of the plan: the named model with the sequence, dropout and capacity of the
// options, or the model that Megatron's options describe.
Status settle_model(LaunchCommand& command, const ImportInputs& inputs, ImportedPlan& result);
// Returns the list for differences between a named model and the options. Null if differences are
// errors, as for a log, which shows the settings of the run.
std::vector<std::string>* differences_of(const LaunchCommand& command, const ImportInputs& inputs,
                                         ImportedPlan& result);
// Returns the model with a vocab size of 1 if the files do not state one, because plans need a
// vocab size.
ModelSpec with_vocab(const ImportedPlan& result);
// Moves options of experts to `outside` if the model does not have experts.
void take_unused_experts(const ModelSpec& model, LaunchCommand& command,
                         std::vector<std::string>& outside);

// Renames options of older Megatron versions and forks, such as "--checkpoint-activations" and
// "--tensor_model_parallel_size". Converts the arguments printed in a log to options.
void use_todays_names(LaunchCommand& command);
// Removes options that select a kernel or an implementation, and returns them as software parts:
// "--no-rope-fusion" is rotary_kernel=torch. Parts without such an option, and parts with only one
// kernel for the model, are absent.
PartValues take_parts(std::vector<LaunchOption>& options, const ModelSpec& model);
// Removes the options for the dtypes of Adam's two moments and sets the part. Error if the two
// dtypes differ.
Status take_moments(std::vector<LaunchOption>& options, PartValues& parts);
// Adds Megatron's options of Muon, the loss and offloaded activations.
void add_mechanisms(LaunchStack stack, const PlanFile& file, const StackSpec& software,
                    LaunchOptions& out);
// Adds the number of replicas of the sharded state, if there are several. `node_gpus`: GPUs of an
// NVLink domain that the job uses.
void add_shard_instances(const Plan& plan, std::int64_t node_gpus, std::int64_t shard_group,
                         LaunchOptions& out);
// Returns the loss head. Without its option Megatron's fusion is off. Empty for kernels of
// Transformer Engine.
PartValues loss_parts(const std::vector<LaunchOption>& options);
// Returns the shard group that the number of replicas implies; empty for one replica.
PartValues shard_parts(const std::vector<LaunchOption>& options, const Plan& plan,
                       const LaunchSize& size);
// Removes the options of Muon, expert buffers and activation offloading, and sets the corresponding
// parts.
Status take_mechanisms(std::vector<LaunchOption>& options, PartValues& parts);

// Note for dropout inside flash attention. tpsim's flash attention does not have dropout, which
// costs little inside a fused kernel.
inline constexpr const char* kNoFlashDropout =
    "dropout inside flash attention is not modelled and predicted as zero";
void leave_out_flash_dropout(std::vector<LaunchOption>& options, ImportedPlan& plan);
// Removes --moe-shared-expert-overlap. The prediction does not overlap the shared expert with the
// dispatch, so the predicted step is an upper bound.
void leave_out_shared_overlap(std::vector<LaunchOption>& options, ImportedPlan& plan);
// Returns the note for settings that save time and are not modelled. `names` is not empty.
std::string unmodelled_savings_note(const std::vector<std::string>& names);
// Removes options that save time and are not modelled: registered buffers of Megatron-FSDP,
// transfers in the warm-up and flush of a pipeline that overlap.
void leave_out_savings(std::vector<LaunchOption>& options, ImportedPlan& plan);
// Removes the model's multi-token prediction layers if the run does not train them.
void leave_out_predictions(bool is_trained, ImportedPlan& plan);
// Whether the program is Megatron-LM's training of text models. Exported files name no program.
bool is_text_training(std::string_view program);
// Removes the model's encoders of images and sounds, and adds a note.
void leave_out_encoders(ImportedPlan& plan);
// Returns the software parts that depend on several options, the plan or the model: overlap,
// context parallelism, token dispatch and the attention kernel.
PartValues parts_of_megatron(const std::vector<LaunchOption>& options, const ImportedPlan& read);

// Adds options given by --set, such as "vocab-size". Only names with a dash are options: shell
// variables cannot contain one. The value "null" removes an option.
void add_given_options(const ImportInputs& inputs, LaunchCommand& command);

// Whether the options are those of Hugging Face's Trainer. import_trainer_command() also reads the
// configuration files that the options name.
bool is_trainer_command(const LaunchCommand& command);
Result<ImportedPlan> import_trainer_command(const LaunchCommand& command, const LaunchFile& file,
                                            const ImportInputs& inputs);

// Imports torchtitan's options and the TOML file that they name.
Result<ImportedPlan> import_torchtitan_command(LaunchCommand command, const LaunchFile& file,
                                               const ImportInputs& inputs);

// Whether the text contains Megatron's argument block.
bool has_arguments_block(std::string_view text);

}  // namespace tpsim
