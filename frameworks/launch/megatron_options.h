// Writers and readers of Megatron's options, for frameworks/megatron and frameworks/nemo.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/scenario/plan_file.h"
#include "core/software/stack_spec.h"
#include "frameworks/launch/launch_stack.h"
#include "frameworks/launch/shell_files.h"

namespace tpsim {

// Adds the attention backend, and Megatron's options for the software parts that the plan sets,
// where such options exist.
void add_parts(LaunchStack stack, const PlanFile& file, LaunchOptions& out);

Result<LaunchOptions> megatron_settings(LaunchStack stack, const PlanFile& file,
                                        const StackSpec& software);
// Returns export lines for CUDA_DEVICE_MAX_CONNECTIONS, CUDA graphs and HybridEP. Overlapping the
// all-to-all of experts needs 32 connections instead of one. HybridEP reads the NVLink domain from
// variables (scripts/performance/utils/utils.py of Megatron-Bridge 067f987).
std::string expert_lines(const PlanFile& file, const LaunchSize& size, const StackSpec& software);
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
// Returns the model whose sizes the options state, with those of `named` for sizes that they do not
// state. Adds the sizes that differ to `differences`: "--num-layers 16 (32)". Nothing if none does,
// or if options cannot describe the model.
std::optional<ModelSpec> stated_model(const std::vector<LaunchOption>& options,
                                      const ModelSpec& named,
                                      std::vector<std::string>& differences);
// Sets the sequence, dropout and expert capacity of `model` from the options. If `keeps_seq`, the
// sequence stays unchanged.
void take_run_choices(const std::vector<LaunchOption>& options, bool keeps_seq, ModelSpec& model);
// Adds options of model features that few models have, such as q/k norm, latent attention, squared
// ReLU, routers, shared experts, and dense layers among MoE layers.
void add_rare_shapes(const ModelSpec& model, LaunchOptions& out);
// Options for layers of different widths: a path, and the JSON that takes precedence over its file.
inline constexpr const char* kHeterogeneousPath = "--heterogeneous-layers-config-path";
inline constexpr const char* kHeterogeneousJson = "--heterogeneous-layers-config-encoded-json";
// Whether the model's layers are stated by these options. Megatron then requires
// --use-rotary-position-embeddings too.
bool states_layers_in_json(const ModelSpec& model);
// Adds the options if states_layers_in_json().
void add_heterogeneous_layers(const ModelSpec& model, LaunchOptions& out);
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
// Returns the flag of each layer for an option that is a list in Python syntax, or a number N:
// every N-th layer has flag 0 and the others have 1.
Result<std::vector<bool>> layer_flags(const LaunchOption& option, std::int64_t layers);
// Returns the layers with experts as "([0]*3+[1]*58)"; empty if all layers or none have experts.
std::string layers_with_experts(const ModelSpec& model);
// Returns the widest attention window of all layers in tokens; 0 if no layer has a window.
std::int64_t window_in(const ModelSpec& model);
// Returns that window as "before,after": numbers of tokens around the query. Empty without one.
std::string window_of(const ModelSpec& model);
// Returns the value of --window-size without parentheses and spaces: "127,0"; empty without one.
std::string stated_window(const std::vector<LaunchOption>& options);
// Removes --window-size. Returns an error if it does not match the model.
Status take_window(const ModelSpec& model, std::vector<LaunchOption>& options);
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
// Returns the modules that selective recompute recomputes, as the value of the part
// kRecomputeModules. Nothing if the options do not state them.
std::optional<std::int64_t> recomputed_modules(const std::vector<LaunchOption>& options,
                                               const Plan& plan);

}  // namespace tpsim
