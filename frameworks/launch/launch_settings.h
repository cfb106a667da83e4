// Options of a launch file, as one writer builds them and one reader takes them apart.
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
// For shellcheck: files to source have no first line, and who sources them uses their variables.
inline constexpr std::string_view kShellLine = "# shellcheck shell=bash disable=SC2034\n";
std::string without_shell_line(std::string_view text);

// "--tensor-model-parallel-size 8". A switch has an empty value.
struct LaunchOption {
  std::string name;  // with its dashes: "--bf16"
  std::string value;
};

// The option of that name; null where there is none.
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

// Takes options out by name; what is left at the end was unknown. Errors name the option.
class LaunchOptionReader {
 public:
  explicit LaunchOptionReader(std::vector<LaunchOption> options) : left_(std::move(options)) {}

  bool has(std::string_view name) const;  // without taking it out
  bool has_value(std::string_view name, std::string_view value) const;
  void drop(std::string_view name);  // whatever its value
  bool flag(std::string_view name);
  // A value that the script takes from outside fails by the name of what it takes.
  std::optional<std::string> text(std::string_view name);
  // `fallback` when it is absent; an error when it is no whole number from 0 on.
  std::int64_t integer(std::string_view name, std::int64_t fallback);
  // Present and equal to `wanted`.
  void expect(std::string_view name, std::int64_t wanted);
  // As `wanted`; numbers may be written in any form. An absent one stands for the stack's default.
  void expect(const LaunchOption& wanted, std::string_view otherwise);
  // None of these switches is set but those that `wanted` sets.
  void refuse_other(std::span<const char* const> switches, const LaunchOptions& wanted);
  // Takes out what describes a model where another word than the file's counts: differences from
  // `wanted` become notes, and what the file leaves out or takes from outside is as `wanted` has
  // it.
  void note_other(const LaunchOption& wanted, std::vector<std::string>& notes);
  void note_other(std::span<const char* const> switches, const LaunchOptions& wanted,
                  std::vector<std::string>& notes);
  void fail(std::string message, std::string hint = "");
  // Options that nothing asked for become unknown settings. Returns the first error; one is that an
  // option which was asked for is left, because it stands there twice.
  Status finish(LeftSettings& unknown) const;
  std::vector<std::string> left() const;  // names that nothing asked for
  Status error() const;  // the first error alone: what is left was not asked for either

 private:
  std::optional<std::string> taken(std::string_view name);

  std::vector<LaunchOption> left_;
  std::vector<std::string> known_;  // every name that was asked for
  std::optional<Error> error_;
};

// How many GPUs start: what torchrun and srun get.
struct LaunchSize {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;
};
LaunchSize launch_size(std::int64_t gpus, std::int64_t gpus_per_node);

// "NUM_NODES=48\nGPUS_PER_NODE=8\nTRAIN_ARGS=(\n  --bf16\n...)\n": bash that a launcher sources.
std::string shell_text(const LaunchSize& size, const LaunchOptions& options);
// The line that Megatron wants before it, but with FSDP, where it wants it gone: kernels are queued
// in the order they were issued, so that tensor-parallel transfers start early.
std::string ordered_kernels_line(const Plan& plan);
// An option whose value is several words, as the shell's words and YAML's lists.
bool takes_words(std::string_view option);
// Megatron's options for the parts that the plan asks for in place of its software's own, as far as
// there are some; and its attention backend.
void add_parts(LaunchStack stack, const PlanFile& file, LaunchOptions& out);
// The training options of a launch file and on how many GPUs it runs.
struct ShellOptions {
  LaunchSize size;
  std::vector<LaunchOption> options;
  bool is_log = false;  // of a log, which prints what nobody asked for too
  // Where the named model wins over what the options say of it: gets the differences.
  std::vector<std::string>* differences = nullptr;
};

// An error that says no place is one of the file.
template <class T>
Result<T> located(const LaunchFile& file, Result<T> result) {
  if (result.ok() || !result.error().where.empty()) return result;
  Error error = result.error();
  error.where = path_of(file);
  return error;
}
// The file of that name among `files`.
Result<LaunchFile> file_named(const std::vector<LaunchFile>& files, std::string_view name);

Launcher launcher_of(LaunchStack stack);  // none for Slurm: the plan's own stack decides
// The launcher whose arguments the files hold: `stack` itself, and for a job the launcher that the
// plan's stack names, or the one that the stack is a version of. Nothing for a job of other stacks.
std::optional<LaunchStack> launcher_in(LaunchStack stack, const PlanFile& file, Launcher launcher);
// An error where the stack, or what files say of it, breaks a rule of core/software/launch_rules.h.
Status check_launch_rules(LaunchStack stack, const PlanFile& file);
Error cannot_express(LaunchStack stack, std::string what, std::string why);

// Settings that a plan is not made of: reading a file sets aside what changes neither time nor
// memory of a step, or belongs to the cluster or the stack, and refuses what would make another
// plan of it, and says why tpsim cannot express it. Takes both out of `options`; the names of the
// former.
std::vector<std::string> take_outside(LaunchStack stack, std::vector<LaunchOption>& options,
                                      LeftSettings& left);
// Refuses arguments of a log that are switched on and change what the plan means.
void refuse_logged(const std::vector<LaunchOption>& options, LeftSettings& left);
// Whether a setting of that name is set aside: "--lr", or "optimizer.lr" for kNemo.
bool is_outside(LaunchStack stack, std::string_view name);
// Whether take_outside() takes it out of the options, set aside or refused.
bool is_set_aside(LaunchStack stack, const LaunchOption& option);

// Each stack writes its files and reads its settings.
Result<LaunchOptions> megatron_settings(LaunchStack stack, const PlanFile& file,
                                        const StackSpec& software);
// The model's own arguments.
void add_megatron_model(const ModelSpec& model, LaunchOptions& out);
// What runs beside compute, as arguments that are there or left out say.
PartValues overlap_parts(const std::vector<LaunchOption>& options, const Plan& plan);
// How context-parallel ranks exchange keys and values; nothing where there are none.
inline constexpr const char* kCpCommType = "--cp-comm-type";
PartValues context_parts(const std::vector<LaunchOption>& options, const Plan& plan);
// Megatron's inner width where nobody says one: four times the model's, and of a gated part as much
// weight, two thirds of it in steps of 64.
std::int64_t usual_ffn(const ModelSpec& model);
// The model that the arguments describe; kMissing where they describe none.
struct StatedModel {
  ModelSpec model;
  bool has_vocab = false;  // otherwise the tokenizer has it, and model.vocab is 0
};
Result<StatedModel> model_of_megatron(const std::vector<LaunchOption>& options);
// What a run chooses of its model: sequence, dropout, capacity of experts. `keeps_seq` where
// somebody asked for the model's sequence.
void take_run_choices(const std::vector<LaunchOption>& options, bool keeps_seq, ModelSpec& model);
// What few models have: norms of q and k, latents, biases of q, k and v alone, squared ReLU,
// routers, shared experts, dense layers among others.
void add_rare_shapes(const ModelSpec& model, LaunchOptions& out);
// Whether an option with a value is one of these.
bool is_rare_shape(std::string_view option);
// What a file leaves out: none of it, or, where a recipe knows it, as the model has it.
enum class Unsaid : std::uint8_t { kIsNone, kIsTheModels };
// Takes out what describes attention and experts that few models have: it must be the model's.
Status take_rare_shapes(const ModelSpec& model, std::vector<LaunchOption>& options,
                        Unsaid unsaid = Unsaid::kIsNone);
// The same where the model wins over the options: the first difference becomes a note.
void note_rare_shapes(const ModelSpec& model, std::vector<LaunchOption>& options,
                      std::vector<std::string>& notes);
bool runs_flash(const std::vector<LaunchOption>& options);
// Of a log, whose arguments nobody asked for, `unasked` gets the names that nothing here reads;
// otherwise they are unknown settings.
Result<Plan> plan_of_megatron(LaunchStack stack, const ShellOptions& shell, const ModelSpec& model,
                              LeftSettings& left, std::vector<std::string>* unasked = nullptr);
// Experts, in Megatron and in NeMo: what they are, and how tokens reach them as the file's parts
// say.
void add_megatron_experts(const ModelSpec& model, LaunchOptions& out);
Status add_megatron_dispatch(const PlanFile& file, const StackSpec& software, LaunchOptions& out);
void read_megatron_dispatch(LaunchOptionReader& in, const ModelSpec& model);
// Fails where the data-parallel ranks cannot share the experts.
void check_expert_ranks(LaunchOptionReader& in, const ModelSpec& model,
                        const ParallelDegrees& degrees, std::int64_t gpus);
// Which layers have experts, as --moe-layer-freq or --first-k-dense-replace says: a number, or a
// list in Python's words. An error for any other text, and for a list of another length.
Result<std::vector<bool>> expert_layers(const LaunchOption& option, std::int64_t layers);
// Of arguments that were read; nothing without experts.
PartValues dispatch_parts(const std::vector<LaunchOption>& options, const ModelSpec& model);
// Recipes of 8 and 4 bits, in Megatron, in NeMo and in torchtitan.
void add_megatron_recipe(const Plan& plan, LaunchOptions& out);
void read_megatron_recipe(LaunchOptionReader& in, Plan& plan);
inline constexpr const char* kRecomputeModules = "--recompute-modules";
inline constexpr const char* kGraphScope = "--cuda-graph-scope";
// What selective recompute makes again, as a value of that part; nothing where nobody says.
std::optional<std::int64_t> recomputed_modules(const std::vector<LaunchOption>& options,
                                               const Plan& plan);
Status add_torchtitan_recipe(const Plan& plan, LaunchOptions& out);
void read_torchtitan_recipe(LaunchOptionReader& in, Plan& plan);
bool nemo_has(std::string_view option);  // whether this option of Megatron-LM has a key there
std::string nemo_yaml(const LaunchOptions& megatron);
struct FlatSetting;
// `left` gets unknown settings with `path` and their line.
std::vector<LaunchOption> nemo_options(const std::vector<FlatSetting>& settings,
                                       const std::string& path, LeftSettings& left);
// What "mixed_precision", a recipe's name, and its section say, as settings of the sections that it
// fills: model and ddp. An error where nobody knows the name.
Result<std::vector<FlatSetting>> with_precision(std::vector<FlatSetting> settings);
// Elements of lists ("model.recompute_modules.0") as one setting of several words.
std::vector<FlatSetting> with_lists_joined(const std::vector<FlatSetting>& settings);
Result<ImportedPlan> import_nemo(const std::vector<LaunchFile>& files, const ImportInputs& inputs);
// "model.bf16" as a log of Megatron's arguments has it; nothing for a switch that is off.
bool has_nemo_key(std::string_view name);
std::optional<LaunchOption> nemo_option(std::string_view name, std::string_view value);
Result<LaunchOptions> deepspeed_settings(const PlanFile& file);
std::string deepspeed_json(const PlanFile& file);
// Takes out the switches of its layers' fusions.
PartValues take_deepspeed_parts(std::vector<LaunchOption>& options);
Result<Plan> plan_of_deepspeed(const ShellOptions& shell, const LaunchFile& config,
                               const ModelSpec& model, LeftSettings& left);
// Whether arguments are those of a fork that followed Megatron-LM's core: Microsoft's.
bool speaks_megatron_core(const std::vector<LaunchOption>& options);
Result<Plan> plan_of_forked_deepspeed(const ShellOptions& shell, const LaunchFile& config,
                                      const ModelSpec& model, LeftSettings& left);
Result<LaunchOptions> torchtitan_settings(const PlanFile& file, const LaunchSize& size);
// The sequence, unless somebody asked for the model's; its models have no dropout.
void take_titan_choices(const std::vector<LaunchOption>& options, bool keeps_seq, ModelSpec& model);
// Takes out what says how the software computes: torch.compile, async tensor parallelism.
PartValues take_torchtitan_parts(std::vector<LaunchOption>& options);
// `parts` gets what the layout says of them: a shard group.
Result<Plan> plan_of_torchtitan(const ShellOptions& shell, const ModelSpec& model,
                                PartValues& parts, LeftSettings& left);
Result<std::string> nanotron_yaml(const PlanFile& file);
Result<std::string> accelerate_yaml(const PlanFile& file, const LaunchSize& size);
LaunchOptions accelerate_arguments(const PlanFile& file);  // of the training script
Result<ImportedPlan> import_accelerate(const std::vector<LaunchFile>& files,
                                       const ImportInputs& inputs);

// Jobs around the files of the plan's own stack, of which the first is a shell's.
// What a stack of the catalogue (data/stacks) is a version of: "megatron-deepspeed-bloom" is one of
// megatron-deepspeed. A file of someone else's goes by its name too.
bool is_version_of(const std::string& stack, std::string_view family);
std::vector<LaunchFile> reference_job(const PlanFile& file, const LaunchSize& size);
std::vector<LaunchFile> slurm_job(LaunchStack own, const PlanFile& file, const LaunchSize& size,
                                  std::vector<LaunchFile> files);
std::vector<LaunchFile> kubernetes_job(LaunchStack own, const PlanFile& file,
                                       const LaunchSize& size,
                                       const std::vector<LaunchFile>& files);
// The files of a Slurm job in those of Kubernetes.
Result<std::vector<LaunchFile>> files_of_kubernetes(const std::vector<LaunchFile>& files);

}  // namespace tpsim
