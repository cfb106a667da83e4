// Options of launch files: how to build and read them, and the functions of each framework.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/scenario/plan_file.h"
#include "core/software/launch_rules.h"
#include "core/software/stack_spec.h"
#include "frameworks/launch/launch_stack.h"
#include "frameworks/launch/left_settings.h"

namespace tpsim {

inline constexpr std::string_view kDeepSpeedConfigFile = "ds_config.json";
inline constexpr std::string_view kNemoYamlFile = "nemo.yaml";
inline constexpr const char* kNanotronYamlFile = "nanotron.yaml";
inline constexpr const char* kAccelerateYamlFile = "accelerate.yaml";
inline constexpr const char* kSlurmFile = "job.slurm";
inline constexpr const char* kJobSetFile = "jobset.yaml";
inline constexpr const char* kConfigMapFile = "configmap.yaml";
// First line of exported shell files. Disables shellcheck warnings: a sourced file lacks a shebang,
// and its variables are used elsewhere.
inline constexpr std::string_view kShellLine = "# shellcheck shell=bash disable=SC2034\n";
std::string without_shell_line(std::string_view text);
// Environment variable of PyTorch that allows TF32 in fp32 GEMMs.
inline constexpr const char* kTf32Switch = "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE";

// An option such as "--tensor-model-parallel-size 8". The value of a switch is empty.
struct LaunchOption {
  std::string name;  // with dashes: "--bf16"
  std::string value;
};

// Returns the option; null if there is none.
const LaunchOption* find_option(const std::vector<LaunchOption>& options, std::string_view name);
LaunchOption* find_option(std::vector<LaunchOption>& options, std::string_view name);
bool has_option(const std::vector<LaunchOption>& options, std::string_view name);
bool has_any_option(const std::vector<LaunchOption>& options,
                    std::initializer_list<std::string_view> names);
void drop_option(std::vector<LaunchOption>& options, std::string_view name);

// Whether both values are equal as texts or as numbers: "1e-5" equals "0.00001".
bool is_same_value(std::string_view value, std::string_view wanted);

class LaunchOptions {
 public:
  void add(std::string name) { all_.push_back({std::move(name), ""}); }
  void add(std::string name, std::string value) {
    all_.push_back({std::move(name), std::move(value)});
  }
  void add(std::string name, std::int64_t value) { add(std::move(name), std::to_string(value)); }
  const std::vector<LaunchOption>& all() const { return all_; }

 private:
  std::vector<LaunchOption> all_;
};

// Reads options by name and removes each one that is read. Options that remain at the end are
// unknown. Errors name the option.
class LaunchOptionReader {
 public:
  explicit LaunchOptionReader(std::vector<LaunchOption> options) : left_(std::move(options)) {}

  bool has(std::string_view name) const;  // does not remove the option
  bool has_value(std::string_view name, std::string_view value) const;
  void drop(std::string_view name);  // removes the option, whatever its value
  bool flag(std::string_view name);
  // Returns the option's value. Fails if the value refers to a variable that the script does not
  // set, and names the variable.
  std::optional<std::string> text(std::string_view name);
  // Returns the option's value, or `fallback` if the option is absent. Fails unless the value is an
  // integer >= 0.
  std::int64_t integer(std::string_view name, std::int64_t fallback);
  // Fails unless the option is present and equal to `wanted`.
  void expect(std::string_view name, std::int64_t wanted);
  // Fails unless the option equals `wanted`; numbers are compared by value. `otherwise` is the
  // stack's default for an absent option. If it is empty, the option is required.
  void expect(const LaunchOption& wanted, std::string_view otherwise);
  // Fails if one of `switches` is set but not in `wanted`, or in `wanted` but not set.
  void refuse_other(std::span<const char* const> switches, const LaunchOptions& wanted);
  // Removes options that describe the model when the user has named a model. Values that differ
  // from `wanted` become notes. Absent options and unset variables are not compared.
  void note_other(const LaunchOption& wanted, std::vector<std::string>& notes);
  void note_other(std::span<const char* const> switches, const LaunchOptions& wanted,
                  std::vector<std::string>& notes);
  void fail(std::string message, std::string hint = "");
  // Adds the remaining options to `unknown` and returns the first error. An option that is given
  // twice is an error.
  Status finish(LeftSettings& unknown) const;
  std::vector<std::string> left() const;  // names of options that were not read
  Status error() const;                   // the first error; does not check the remaining options

 private:
  std::optional<std::string> taken(std::string_view name);

  std::vector<LaunchOption> left_;
  std::vector<std::string> known_;  // every name that was read
  std::optional<Error> error_;
};

// The number of nodes and of GPUs per node that torchrun or srun starts.
struct LaunchSize {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;
  // As in LaunchHosts. Not read from files.
  std::int64_t domain_gpus = 0, domain_size = 0, nics = 0;
};
LaunchSize launch_size(std::int64_t gpus, std::int64_t gpus_per_node);

// Returns a bash file for a launcher to source. It sets NUM_NODES, GPUS_PER_NODE and the array
// TRAIN_ARGS, with one option per line.
std::string shell_text(const LaunchSize& size, const LaunchOptions& options);
// Returns "export CUDA_DEVICE_MAX_CONNECTIONS=1", or an empty string with FSDP, where Megatron
// forbids the setting. With one connection kernels run in launch order, so that tensor-parallel
// communication starts early.
std::string ordered_kernels_line(const Plan& plan);
// Whether the option takes a list: several shell words, or a YAML list.
bool takes_words(std::string_view option);
// Adds the attention backend, and Megatron's options for the software parts that the plan sets,
// where such options exist.
void add_parts(LaunchStack stack, const PlanFile& file, LaunchOptions& out);
// The training options of a launch file and its number of GPUs.
struct ShellOptions {
  LaunchSize size;
  std::vector<LaunchOption> options;
  bool is_log = false;  // the options come from a log, which includes defaults
  // Receives the differences between the options and the named model, which takes precedence.
  // Null: differences are errors.
  std::vector<std::string>* differences = nullptr;
};

// Adds the file's path to an error without a location.
template <class T>
Result<T> located(const LaunchFile& file, Result<T> result) {
  if (result.ok() || !result.error().where.empty()) return result;
  Error error = result.error();
  error.where = path_of(file);
  return error;
}
// Returns a hash of the model without name, source, sequence, dropout and expert capacity.
std::string shape_hash(ModelSpec model);
// Returns a comment line with the model's name, number of parameters and shape_hash(). Empty if the
// model has no name.
std::string model_line(const ModelSpec& model);
using ModelReader = std::function<Result<ImportedPlan>(const ImportInputs&)>;
// Calls `read` with the model that the files name in a comment, if `inputs` has no model and the
// catalogue has this model with the same shape. If that fails, calls `read` without a model.
Result<ImportedPlan> import_with_named_model(const std::vector<LaunchFile>& files,
                                             const ImportInputs& inputs, const ModelReader& read);
// Returns the file with this name among `files`.
Result<LaunchFile> file_named(const std::vector<LaunchFile>& files, std::string_view name);

Launcher launcher_of(LaunchStack stack);  // kNone for jobs: they use the plan's stack
// Returns the launcher whose arguments the files contain: `stack` itself, or for a job `launcher`
// or the launcher of the plan's stack. Nothing if the plan's stack does not have a launcher.
std::optional<LaunchStack> launcher_in(LaunchStack stack, const PlanFile& file, Launcher launcher);
// Returns an error if the plan or the software breaks a launcher rule of
// core/software/launch_rules.h.
Status check_launch_rules(LaunchStack stack, const PlanFile& file, const StackSpec& software = {});
Error cannot_express(LaunchStack stack, std::string what, std::string why);

// Removes options that are not settings of a plan, and returns the names of the ignored ones. An
// option is ignored if it does not change time or memory of a step, or if it is a property of the
// cluster or the stack. Options that change the plan in a way that tpsim cannot express are added
// to `left`, with the reason.
std::vector<std::string> take_outside(LaunchStack stack, std::vector<LaunchOption>& options,
                                      LeftSettings& left);
// Adds options of a log to `left` if they are switched on and tpsim cannot express them.
void refuse_logged(const std::vector<LaunchOption>& options, LeftSettings& left);
// Whether the setting is ignored: "--lr", or for kNemo "optimizer.lr".
bool is_outside(LaunchStack stack, std::string_view name);
// Whether take_outside() removes the option, because the option is ignored or refused.
bool is_set_aside(LaunchStack stack, const LaunchOption& option);

// The writers and readers of each stack follow.
Result<LaunchOptions> megatron_settings(LaunchStack stack, const PlanFile& file,
                                        const StackSpec& software);
// Adds the arguments that describe the model.
void add_megatron_model(const ModelSpec& model, LaunchOptions& out);
// Returns the overlap parts that the options select. Without its option an overlap is off.
PartValues overlap_parts(const std::vector<LaunchOption>& options, const Plan& plan);
// Megatron's option for the communication of keys and values between context-parallel ranks.
inline constexpr const char* kCpCommType = "--cp-comm-type";
PartValues context_parts(const std::vector<LaunchOption>& options, const Plan& plan);
// Returns Megatron's default FFN size: 4 x hidden. With a gated MLP: 8/3 x hidden, rounded down to
// a multiple of 64, for the same number of weights.
std::int64_t usual_ffn(const ModelSpec& model);
// The model that the arguments describe. model_of_megatron() returns kMissing if they do not
// describe a whole model.
struct StatedModel {
  ModelSpec model;
  bool has_vocab = false;  // false: the tokenizer defines it, and model.vocab is 0
};
Result<StatedModel> model_of_megatron(const std::vector<LaunchOption>& options);
// Sets the sequence, dropout and expert capacity of `model` from the options. If `keeps_seq`, the
// sequence stays unchanged.
void take_run_choices(const std::vector<LaunchOption>& options, bool keeps_seq, ModelSpec& model);
// Adds options of model features that few models have, such as q/k norm, latent attention, squared
// ReLU, routers, shared experts, and dense layers among MoE layers.
void add_rare_shapes(const ModelSpec& model, LaunchOptions& out);
// Whether the option describes a feature of add_rare_shapes() and takes a value.
bool is_rare_shape(std::string_view option);
// Meaning of an absent option. kIsNone: the model lacks the feature. kIsTheModels: the named model
// defines the feature, as for recipes.
enum class Unsaid : std::uint8_t { kIsNone, kIsTheModels };
// Removes the options of rare features of attention and experts. Returns an error unless the
// options match the model.
Status take_rare_shapes(const ModelSpec& model, std::vector<LaunchOption>& options,
                        Unsaid unsaid = Unsaid::kIsNone);
// Removes the same options as take_rare_shapes(). The first difference from the model becomes a
// note.
void note_rare_shapes(const ModelSpec& model, std::vector<LaunchOption>& options,
                      std::vector<std::string>& notes);
// Options for models whose layers differ, and for rare attention variants, activations and mixers;
// see frameworks/megatron/layer_options.cc.
LaunchOptions special_options(const ModelSpec& model);
bool is_special_option(std::string_view name);
Status take_special_options(const ModelSpec& model, std::vector<LaunchOption>& options,
                            Unsaid unsaid);
// Returns the layers with experts as "([0]*3+[1]*58)"; empty if all layers or none have experts.
std::string layers_with_experts(const ModelSpec& model);
// Returns the widest attention window of all layers in tokens; 0 if no layer has a window.
std::int64_t window_in(const ModelSpec& model);
// Option with the layers of a hybrid model, such as "MM*E|M-": one letter per layer. "|" separates
// pipeline chunks, and "/" precedes each multi-token prediction layer.
inline constexpr const char* kHybridPattern = "--hybrid-layer-pattern";
std::string hybrid_pattern(const ModelSpec& model, const std::vector<std::int64_t>& stages);
// Returns the number of layers in each chunk. Error if the pattern and the model have different
// layers.
Result<std::vector<std::int64_t>> stages_of_pattern(const std::string& pattern,
                                                    const ModelSpec& model, std::int64_t pp);
// Sets pipeline stages, virtual stages and schedule of `plan`, whose pp must be set; see
// frameworks/megatron/read_stages.cc.
void read_megatron_stages(LaunchOptionReader& in, const ModelSpec& model, Plan& plan);
// Whether Megatron-Core supports only the unfused kernel of this part for the model.
bool is_forced_part(const ModelSpec& model, StackPart part);
bool runs_flash(const std::vector<LaunchOption>& options);
// Converts options to a plan. Sets `unasked`, if given, to the names of the options that were not
// read. Unless `shell` is from a log, these options also go to `left` as unknown settings.
Result<Plan> plan_of_megatron(LaunchStack stack, const ShellOptions& shell, const ModelSpec& model,
                              LeftSettings& left, std::vector<std::string>* unasked = nullptr);
// Expert options of Megatron and NeMo: the shapes of experts, and the token dispatch that the
// software parts select.
void add_megatron_experts(const ModelSpec& model, LaunchOptions& out);
Status add_megatron_dispatch(const PlanFile& file, const StackSpec& software, LaunchOptions& out);
void read_megatron_dispatch(LaunchOptionReader& in, const ModelSpec& model);
// Fails unless the number of data-parallel ranks is a multiple of the ranks that the expert groups
// (ep x etp) need.
void check_expert_ranks(LaunchOptionReader& in, const ModelSpec& model,
                        const ParallelDegrees& degrees, std::int64_t gpus);
// Parses --moe-layer-freq or --first-k-dense-replace: a number, or a list in Python syntax. Returns
// for each layer whether it has experts. Error for other text, and for a list of the wrong length.
Result<std::vector<bool>> expert_layers(const LaunchOption& option, std::int64_t layers);
// Returns the token-dispatch parts that the options select; empty if the model does not have
// experts.
PartValues dispatch_parts(const std::vector<LaunchOption>& options, const ModelSpec& model);
// Low-precision recipes (FP8, MXFP8, FP4) of Megatron, NeMo and torchtitan.
void add_megatron_recipe(const Plan& plan, LaunchOptions& out);
void read_megatron_recipe(LaunchOptionReader& in, Plan& plan);
inline constexpr const char* kRecomputeModules = "--recompute-modules";
inline constexpr const char* kGraphScope = "--cuda-graph-scope";
// Returns the modules that selective recompute recomputes, as the value of the part
// kRecomputeModules. Nothing if the options do not state them.
std::optional<std::int64_t> recomputed_modules(const std::vector<LaunchOption>& options,
                                               const Plan& plan);
void read_torchtitan_recipe(LaunchOptionReader& in, Plan& plan);
bool nemo_has(std::string_view option);  // whether NeMo has a key for this option of Megatron-LM
struct FlatSetting;
// Returns Megatron-Bridge's YAML with these options. `layers` are further settings of the section
// "model".
std::string nemo_yaml(const LaunchOptions& megatron, const std::vector<FlatSetting>& layers = {});
// Returns the layers and fused kernels of a model without a bridge, as settings of the section
// "model"; empty for other models, whose recipe states them. `options` switch kernels off.
std::vector<FlatSetting> nemo_layers(const ModelSpec& model,
                                     const std::vector<LaunchOption>& options);
// Removes the settings of nemo_layers() from `settings`. Values that differ from the model's are
// added to `differences`; if it is null, they are errors.
Status take_nemo_layers(const ModelSpec& model, std::vector<FlatSetting>& settings,
                        std::vector<std::string>* differences);
// The name of the precision recipe ("null": none) that sets dtype, FP8 recipe and gradient dtype,
// and the options that it does not set. The recipe overwrites other values of its keys.
struct NemoPrecision {
  std::string recipe;
  LaunchOptions others;
};
// Error if no recipe has the plan's dtypes.
Result<NemoPrecision> nemo_precision(const Plan& plan, const LaunchOptions& megatron);
// Converts NeMo settings to Megatron's options. Unknown settings are added to `left`, with `path`
// and line.
std::vector<LaunchOption> nemo_options(const std::vector<FlatSetting>& settings,
                                       const std::string& path, LeftSettings& left);
// Expands "mixed_precision" (the name of a precision recipe) and its section to the settings in the
// sections model and ddp that the recipe sets. Error for an unknown name.
Result<std::vector<FlatSetting>> with_precision(std::vector<FlatSetting> settings);
// Joins the elements of a list ("model.recompute_modules.0", "...1") to one setting with several
// words.
std::vector<FlatSetting> with_lists_joined(const std::vector<FlatSetting>& settings);
Result<ImportedPlan> import_nemo(const std::vector<LaunchFile>& files, const ImportInputs& inputs);
// Whether an option of Megatron corresponds to the setting "section.key".
bool has_nemo_key(std::string_view name);
// Converts a setting such as "model.bf16" to an option in the format of Megatron's log. Returns
// nothing for a switch that is off, and for a setting without an option.
std::optional<LaunchOption> nemo_option(std::string_view name, std::string_view value);
Result<LaunchOptions> deepspeed_settings(const PlanFile& file);
std::string deepspeed_json(const PlanFile& file);
// Removes the switches that disable fused kernels, and returns them as software parts.
PartValues take_deepspeed_parts(std::vector<LaunchOption>& options);
Result<Plan> plan_of_deepspeed(const ShellOptions& shell, const LaunchFile& config,
                               const ModelSpec& model, LeftSettings& left);
// Whether the options are those of Microsoft's Megatron-DeepSpeed, which follows Megatron-Core, and
// not of BigScience's fork.
bool speaks_megatron_core(const std::vector<LaunchOption>& options);
Result<Plan> plan_of_forked_deepspeed(const ShellOptions& shell, const LaunchFile& config,
                                      const ModelSpec& model, LeftSettings& left);
Result<LaunchOptions> torchtitan_settings(const PlanFile& file, const LaunchSize& size);
// Sets the model's sequence to the stated one, and its dropout to 0, unless `keeps_seq`.
// torchtitan's models do not have dropout.
void take_titan_choices(const std::vector<LaunchOption>& options, bool keeps_seq, ModelSpec& model);
// Removes options that select an implementation: torch.compile, async tensor parallelism.
PartValues take_torchtitan_parts(std::vector<LaunchOption>& options);
// Converts options to a plan. Adds the shard group, which follows from the degrees, to `parts`.
Result<Plan> plan_of_torchtitan(const ShellOptions& shell, const ModelSpec& model,
                                PartValues& parts, LeftSettings& left);
Result<std::string> nanotron_yaml(const PlanFile& file);
Result<std::string> accelerate_yaml(const PlanFile& file, const LaunchSize& size);
LaunchOptions accelerate_arguments(const PlanFile& file);  // of the training script
Result<ImportedPlan> import_accelerate(const std::vector<LaunchFile>& files,
                                       const ImportInputs& inputs);

// Whether the stack is a version of `family`: "megatron-deepspeed-bloom" is a version of
// "megatron-deepspeed". Stack files of users are matched by name, too.
bool is_version_of(const std::string& stack, std::string_view family);
// Writers of job files. The first of `files` is the launcher's shell script, which becomes part of
// the job file.
std::vector<LaunchFile> reference_job(const PlanFile& file, const LaunchSize& size);
std::vector<LaunchFile> slurm_job(LaunchStack own, const PlanFile& file, const LaunchSize& size,
                                  std::vector<LaunchFile> files);
std::vector<LaunchFile> kubernetes_job(LaunchStack own, const PlanFile& file,
                                       const LaunchSize& size,
                                       const std::vector<LaunchFile>& files);
// The launch files that a job starts.
struct JobContents {
  LaunchStack stack{};
  std::vector<LaunchFile> files;
};
// Returns the launch files inside the job, under the names that their stack gives them.
Result<JobContents> contents_of_job(LaunchStack job, const std::vector<LaunchFile>& files);
// Returns the files of the Slurm job that the Kubernetes files embed.
Result<std::vector<LaunchFile>> files_of_kubernetes(const std::vector<LaunchFile>& files);

}  // namespace tpsim
