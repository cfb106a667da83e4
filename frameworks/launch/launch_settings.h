// Options of launch files: building, reading, and the functions of each framework.
#pragma once

#include <cstdint>
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
// For shellcheck: a sourced file lacks a shebang line, and its variables are used elsewhere.
inline constexpr std::string_view kShellLine = "# shellcheck shell=bash disable=SC2034\n";
std::string without_shell_line(std::string_view text);

// "--tensor-model-parallel-size 8". A switch has an empty value.
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

// Removes options by name as they are read. Options that remain are unknown. Errors name the
// option.
class LaunchOptionReader {
 public:
  explicit LaunchOptionReader(std::vector<LaunchOption> options) : left_(std::move(options)) {}

  bool has(std::string_view name) const;  // does not remove it
  bool has_value(std::string_view name, std::string_view value) const;
  void drop(std::string_view name);  // accepts any value
  bool flag(std::string_view name);
  // Fails if the value is unknown to the script, and names the missing variable.
  std::optional<std::string> text(std::string_view name);
  // Returns `fallback` if it is absent. Fails unless the value is an integer >= 0.
  std::int64_t integer(std::string_view name, std::int64_t fallback);
  // Fails unless the option is present and equal to `wanted`.
  void expect(std::string_view name, std::int64_t wanted);
  // Fails unless the value equals `wanted`; numbers are compared by value. `otherwise` is the
  // stack's default for an absent option; empty: there is none.
  void expect(const LaunchOption& wanted, std::string_view otherwise);
  // Fails unless exactly the switches in `wanted` are set.
  void refuse_other(std::span<const char* const> switches, const LaunchOptions& wanted);
  // Removes options that describe a model which is named elsewhere. Differences from `wanted`
  // become notes. Absent and unknown values count as `wanted`.
  void note_other(const LaunchOption& wanted, std::vector<std::string>& notes);
  void note_other(std::span<const char* const> switches, const LaunchOptions& wanted,
                  std::vector<std::string>& notes);
  void fail(std::string message, std::string hint = "");
  // Adds all remaining options to `unknown`. Returns the first error. An option that is given twice
  // is an error.
  Status finish(LeftSettings& unknown) const;
  std::vector<std::string> left() const;  // names of options that were not read
  Status error() const;                   // the first error, without checking the remaining options

 private:
  std::optional<std::string> taken(std::string_view name);

  std::vector<LaunchOption> left_;
  std::vector<std::string> known_;  // every name that was read
  std::optional<Error> error_;
};

// Number of nodes and GPUs that torchrun or srun starts.
struct LaunchSize {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;
};
LaunchSize launch_size(std::int64_t gpus, std::int64_t gpus_per_node);

// Returns bash that a launcher sources: NUM_NODES, GPUS_PER_NODE, and the array TRAIN_ARGS with one
// option per line.
std::string shell_text(const LaunchSize& size, const LaunchOptions& options);
// Returns Megatron's CUDA_DEVICE_MAX_CONNECTIONS line, which must be absent with FSDP. Kernels then
// execute in the order of their launch, so that tensor-parallel transfers start early.
std::string ordered_kernels_line(const Plan& plan);
// Whether the option has several words as its value: shell words, or a YAML list.
bool takes_words(std::string_view option);
// Adds Megatron's options for parts that the plan sets, if there are options for them, and the
// attention backend.
void add_parts(LaunchStack stack, const PlanFile& file, LaunchOptions& out);
// Training options of a launch file and its number of GPUs.
struct ShellOptions {
  LaunchSize size;
  std::vector<LaunchOption> options;
  bool is_log = false;  // from a log, which includes defaults
  // If a named model overrides the options: gets the differences. Null: differences are errors.
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
// Returns the file with this name among `files`.
Result<LaunchFile> file_named(const std::vector<LaunchFile>& files, std::string_view name);

Launcher launcher_of(LaunchStack stack);  // kNone for jobs: the plan's stack decides
// Returns the launcher whose arguments the files contain: `stack` itself, or for a job the launcher
// of the plan's stack. That is the named launcher, or the stack of which the plan's stack is a
// version. Nothing if there is none.
std::optional<LaunchStack> launcher_in(LaunchStack stack, const PlanFile& file, Launcher launcher);
// Returns an error if the stack, or the settings in the files, break a rule of
// core/software/launch_rules.h.
Status check_launch_rules(LaunchStack stack, const PlanFile& file);
Error cannot_express(LaunchStack stack, std::string what, std::string why);

// Removes options that are not settings of a plan. Returns names of ignored ones: they do not
// change time or memory of a step, or belong to the cluster or the stack. Options that change the
// plan in a way that tpsim cannot express are added to `left`, with the reason.
std::vector<std::string> take_outside(LaunchStack stack, std::vector<LaunchOption>& options,
                                      LeftSettings& left);
// Refuses arguments of a log that are switched on and change the meaning of the plan.
void refuse_logged(const std::vector<LaunchOption>& options, LeftSettings& left);
// Whether the name is ignored: "--lr", or "optimizer.lr" for kNemo.
bool is_outside(LaunchStack stack, std::string_view name);
// Whether take_outside() removes the option, as ignored or as refused.
bool is_set_aside(LaunchStack stack, const LaunchOption& option);

// Writers and readers of each stack.
Result<LaunchOptions> megatron_settings(LaunchStack stack, const PlanFile& file,
                                        const StackSpec& software);
// Adds the arguments that describe the model.
void add_megatron_model(const ModelSpec& model, LaunchOptions& out);
// Returns overlap settings of the software, as given by present and absent options.
PartValues overlap_parts(const std::vector<LaunchOption>& options, const Plan& plan);
// Option for the exchange of keys and values between context-parallel ranks.
inline constexpr const char* kCpCommType = "--cp-comm-type";
PartValues context_parts(const std::vector<LaunchOption>& options, const Plan& plan);
// Returns Megatron's default FFN size: 4 x hidden. With a gated MLP 8/3 x hidden, rounded down to a
// multiple of 64, which has as many weights.
std::int64_t usual_ffn(const ModelSpec& model);
// The model that the arguments describe. kMissing if they do not describe one.
struct StatedModel {
  ModelSpec model;
  bool has_vocab = false;  // false: the tokenizer defines it, and model.vocab is 0
};
Result<StatedModel> model_of_megatron(const std::vector<LaunchOption>& options);
// Applies the run's choices to the model: sequence, dropout, expert capacity. `keeps_seq`: the
// sequence is kept, since it was requested.
void take_run_choices(const std::vector<LaunchOption>& options, bool keeps_seq, ModelSpec& model);
// Adds options of features that few models have: q/k norm, latent attention, QKV biases only,
// squared ReLU, routers, shared experts, dense layers among MoE layers.
void add_rare_shapes(const ModelSpec& model, LaunchOptions& out);
// Whether an option with a value describes such a feature.
bool is_rare_shape(std::string_view option);
// Meaning of an absent option: feature absent, or, for recipes, as in the named model.
enum class Unsaid : std::uint8_t { kIsNone, kIsTheModels };
// Removes options of such features in attention and experts. Error unless they match the model.
Status take_rare_shapes(const ModelSpec& model, std::vector<LaunchOption>& options,
                        Unsaid unsaid = Unsaid::kIsNone);
// Likewise, but the first difference becomes a note.
void note_rare_shapes(const ModelSpec& model, std::vector<LaunchOption>& options,
                      std::vector<std::string>& notes);
bool runs_flash(const std::vector<LaunchOption>& options);
// Reads the plan. For a log, names of unread options are added to `unasked`; null: they are unknown
// settings.
Result<Plan> plan_of_megatron(LaunchStack stack, const ShellOptions& shell, const ModelSpec& model,
                              LeftSettings& left, std::vector<std::string>* unasked = nullptr);
// Expert options of Megatron and NeMo: shapes, and the dispatch of tokens by the file's parts.
void add_megatron_experts(const ModelSpec& model, LaunchOptions& out);
Status add_megatron_dispatch(const PlanFile& file, const StackSpec& software, LaunchOptions& out);
void read_megatron_dispatch(LaunchOptionReader& in, const ModelSpec& model);
// Fails if the data-parallel ranks cannot share the experts.
void check_expert_ranks(LaunchOptionReader& in, const ModelSpec& model,
                        const ParallelDegrees& degrees, std::int64_t gpus);
// Parses --moe-layer-freq or --first-k-dense-replace: a number, or a list in Python syntax. Error
// for other text, and for a list of the wrong length.
Result<std::vector<bool>> expert_layers(const LaunchOption& option, std::int64_t layers);
// Returns the dispatch settings of arguments; empty without experts.
PartValues dispatch_parts(const std::vector<LaunchOption>& options, const ModelSpec& model);
// Recipes of 8 and 4 bits of Megatron, NeMo and torchtitan.
void add_megatron_recipe(const Plan& plan, LaunchOptions& out);
void read_megatron_recipe(LaunchOptionReader& in, Plan& plan);
inline constexpr const char* kRecomputeModules = "--recompute-modules";
inline constexpr const char* kGraphScope = "--cuda-graph-scope";
// Returns the modules that selective recompute repeats, as value of that part. Nothing if not
// stated.
std::optional<std::int64_t> recomputed_modules(const std::vector<LaunchOption>& options,
                                               const Plan& plan);
Status add_torchtitan_recipe(const Plan& plan, LaunchOptions& out);
void read_torchtitan_recipe(LaunchOptionReader& in, Plan& plan);
bool nemo_has(std::string_view option);  // whether NeMo has a key for this option of Megatron-LM
std::string nemo_yaml(const LaunchOptions& megatron);
struct FlatSetting;
// Unknown settings are added to `left`, with `path` and line.
std::vector<LaunchOption> nemo_options(const std::vector<FlatSetting>& settings,
                                       const std::string& path, LeftSettings& left);
// Expands "mixed_precision" (a recipe's name) and its section to the settings that it fills, in the
// sections model and ddp. Error for an unknown name.
Result<std::vector<FlatSetting>> with_precision(std::vector<FlatSetting> settings);
// Joins list elements ("model.recompute_modules.0") to one setting with several words.
std::vector<FlatSetting> with_lists_joined(const std::vector<FlatSetting>& settings);
Result<ImportedPlan> import_nemo(const std::vector<LaunchFile>& files, const ImportInputs& inputs);
// Returns "model.bf16" as an option in the format of Megatron's log. Nothing for a switch that is
// off.
bool has_nemo_key(std::string_view name);
std::optional<LaunchOption> nemo_option(std::string_view name, std::string_view value);
Result<LaunchOptions> deepspeed_settings(const PlanFile& file);
std::string deepspeed_json(const PlanFile& file);
// Removes the switches for fusions of its layers.
PartValues take_deepspeed_parts(std::vector<LaunchOption>& options);
Result<Plan> plan_of_deepspeed(const ShellOptions& shell, const LaunchFile& config,
                               const ModelSpec& model, LeftSettings& left);
// Whether the arguments are those of Microsoft's fork, which follows Megatron-LM's core.
bool speaks_megatron_core(const std::vector<LaunchOption>& options);
Result<Plan> plan_of_forked_deepspeed(const ShellOptions& shell, const LaunchFile& config,
                                      const ModelSpec& model, LeftSettings& left);
Result<LaunchOptions> torchtitan_settings(const PlanFile& file, const LaunchSize& size);
// Applies the sequence, unless the model's was requested. torchtitan's models do not have dropout.
void take_titan_choices(const std::vector<LaunchOption>& options, bool keeps_seq, ModelSpec& model);
// Removes options that select an implementation: torch.compile, async tensor parallelism.
PartValues take_torchtitan_parts(std::vector<LaunchOption>& options);
// Adds parts that the layout implies to `parts`: a shard group.
Result<Plan> plan_of_torchtitan(const ShellOptions& shell, const ModelSpec& model,
                                PartValues& parts, LeftSettings& left);
Result<std::string> nanotron_yaml(const PlanFile& file);
Result<std::string> accelerate_yaml(const PlanFile& file, const LaunchSize& size);
LaunchOptions accelerate_arguments(const PlanFile& file);  // of the training script
Result<ImportedPlan> import_accelerate(const std::vector<LaunchFile>& files,
                                       const ImportInputs& inputs);

// Jobs around the files of the plan's own stack, whose first file is a shell script.
// Whether the catalogue stack (data/stacks) is a version of `family`: "megatron-deepspeed-bloom" is
// one of megatron-deepspeed. Stack files of users are matched by name, too.
bool is_version_of(const std::string& stack, std::string_view family);
std::vector<LaunchFile> reference_job(const PlanFile& file, const LaunchSize& size);
std::vector<LaunchFile> slurm_job(LaunchStack own, const PlanFile& file, const LaunchSize& size,
                                  std::vector<LaunchFile> files);
std::vector<LaunchFile> kubernetes_job(LaunchStack own, const PlanFile& file,
                                       const LaunchSize& size,
                                       const std::vector<LaunchFile>& files);
// Returns the files of the Slurm job inside the files for Kubernetes.
Result<std::vector<LaunchFile>> files_of_kubernetes(const std::vector<LaunchFile>& files);

}  // namespace tpsim
