// Imports configurations that recipes of Megatron-Bridge create. Configurations of NeMo 2's recipes
// are imported the same way, after a renaming to Megatron-Bridge's keys.
//
// Sources: training/config.py, training/comm_overlap.py and models/*/*_bridge.py of Megatron-Bridge
// 067f987.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/environment_parts.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/nemo_settings.h"
#include "frameworks/launch/programs.h"
#include "frameworks/nemo/nemo_run.h"

namespace tpsim {
namespace {

// Removes settings that make a step cheaper and are not modelled. Returns notes that list them.
std::vector<std::string> take_savings(std::vector<FlatSetting>& settings, LeftSettings& left) {
  std::vector<std::string> savings, notes;
  std::erase_if(settings, [&](const FlatSetting& one) {
    if (!matches_any(one.key, fact_names("bridge", "savings"))) return false;
    if (!matches_any(one.value, "false none 0")) savings.push_back(one.key);
    return true;
  });
  if (!savings.empty()) notes.push_back(unmodelled_savings_note(savings));
  for (std::string& note : apply_rules("bridge", settings, left)) notes.push_back(std::move(note));
  return notes;
}

// Renames model.cuda_graph_modules of newer versions to model.cuda_graph_scope.
void rename_newer(std::vector<FlatSetting>& settings) {
  constexpr std::string_view kNewer = "model.cuda_graph_modules", kRead = "model.cuda_graph_scope";
  const auto is_newer = [&](const FlatSetting& one) { return one.key.starts_with(kNewer); };
  if (std::none_of(settings.begin(), settings.end(), is_newer)) return;
  std::erase_if(settings, [&](const FlatSetting& one) { return one.key.starts_with(kRead); });
  for (FlatSetting& one : settings) {
    if (is_newer(one)) one.key.replace(0, kNewer.size(), kRead);
  }
}

// Removes lists that the recipe empties. Selective recompute of no modules recomputes nothing.
void take_empty_lists(std::vector<FlatSetting>& settings) {
  constexpr std::string_view kEmpty = "[]";  // of tpsim_recipes
  const FlatSetting* const modules = find_setting(settings, "model.recompute_modules");
  const bool recomputes_nothing = modules != nullptr && modules->value == kEmpty;
  std::erase_if(settings, [&](const FlatSetting& one) {
    const bool is_selective = one.key == "model.recompute_granularity" && one.value == "selective";
    return one.value == kEmpty || (is_selective && recomputes_nothing);
  });
}

bool is_of_shape(std::string_view key) { return matches_any(key, fact_names("bridge", "shape")); }

enum class ModelSource : std::uint8_t { kSettings, kHub, kPattern };

// Returns the settings that the recipe states. Skips empty settings, and unknown settings that have
// the default of their class.
std::vector<FlatSetting> stated_settings(const ResolvedRecipe& recipe, ModelSource source,
                                         LeftSettings& left) {
  const bool is_hub = source == ModelSource::kHub, is_whole = source == ModelSource::kSettings;
  std::vector<FlatSetting> settings;
  for (const FlatSetting& one : recipe.settings) {
    const bool is_made_by = one.key.ends_with(kMadeBy);
    if (one.value.empty() || (is_made_by && one.key.find('.') == std::string::npos)) continue;
    if (recipe.is_default(one.key)) {
      const bool is_bridges =
          is_hub && (one.key.starts_with("model.moe_") || is_of_shape(one.key) ||
                     matches_any(one.key, "model.hidden_dropout model.attention_dropout"));
      const bool is_newer = one.key.starts_with("model.cuda_graph_modules");
      const bool is_read = has_nemo_key(one.key) || (is_whole && one.key.starts_with("model."));
      if (is_bridges || is_newer || !is_read) continue;
    }
    const ProgramSetting* const dtype = fact_row("torch-dtypes", one.value);
    settings.push_back(
        {one.key, dtype == nullptr ? one.value : std::string(dtype->becomes), one.line});
  }
  if (source == ModelSource::kPattern) {  // hybrid_model() has read these
    drop_settings(settings, fact_names("bridge", "shape"));
  }
  take_empty_lists(settings);
  apply_rules("bridge-dependent", settings, left);
  rename_newer(settings);
  std::erase_if(settings, [](const FlatSetting& one) {
    return one.key.ends_with(kMadeBy) && !one.key.starts_with("peft.");
  });
  return settings;
}

// Returns the number of GPUs in a recipe's name: 16 for
// "qwen3_30b_a3b_pretrain_16gpu_h100_bf16_config". 0 if there is none.
std::int64_t gpus_of_name(const std::string& name) {
  const std::size_t end = name.find("gpu_");
  if (end == std::string::npos) return 0;
  const std::size_t begin = name.rfind('_', end) + 1;
  return parse_number<std::int64_t>(name.substr(begin, end - begin)).value_or(0);
}

LaunchSize size_of_recipe(const ResolvedRecipe& recipe) {
  constexpr std::int64_t kMost = 1 << 16;
  const std::int64_t nodes = setting_number(recipe.settings, "trainer.num_nodes");
  const std::int64_t devices = setting_number(recipe.settings, "trainer.devices");
  if (nodes > 0 && devices > 0 && nodes <= kMost && devices <= kMost) return {nodes, devices};
  return {1, recipe.gpus > 0 ? recipe.gpus : gpus_of_name(recipe.function)};
}

void take_env_vars(const std::vector<FlatSetting>& settings, LaunchCommand& command) {
  for (const FlatSetting& one : settings) {
    constexpr std::string_view kVariables = "env_vars.";
    if (!one.key.starts_with(kVariables)) continue;
    read_variable(one.key.substr(kVariables.size()), one.value, command.environment);
  }
}

// Returns the model given by --model, or the Hugging Face model that the recipe loads. Adds an open
// question if the model is unknown.
Result<std::optional<ModelSpec>> hub_model(const std::string& name, const ImportInputs& inputs,
                                           OpenQuestions& open) {
  if (inputs.model) return inputs.model;
  if (name.empty()) return std::optional<ModelSpec>();
  if (inputs.load) {
    auto named = inputs.load(name);
    if (named.ok()) return std::optional<ModelSpec>(*std::move(named));
  }
  open.ask({fmt::format("the recipe loads {} from the Hugging Face hub, but the catalogue lacks it",
                        name),
            kModelAnswer});
  return std::optional<ModelSpec>();
}

// Returns the model's name from the name of its NeMo class: "Llama38B" for
// "nemo....Llama3Config8B". The catalogue compares names by letters and digits only.
std::string model_of_class(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('.') + 1);
  const std::size_t at = name.find("Config");
  if (at == std::string_view::npos || at == 0) return "";
  return std::string(name.substr(0, at)) + std::string(name.substr(at + 6));
}

// Returns the catalogue's model for the recipe's NeMo class, which has the name of the model.
std::optional<ModelSpec> class_model(const ResolvedRecipe& recipe, const ImportInputs& inputs) {
  const FlatSetting* const made = find_setting(recipe.settings, fmt::format("model.{}", kMadeBy));
  if (recipe.framework != "nemo" || made == nullptr || !inputs.load) return std::nullopt;
  const std::string name = model_of_class(made->value);
  if (name.empty()) return std::nullopt;
  auto named = inputs.load(name);
  return named.ok() ? std::optional(*std::move(named)) : std::nullopt;
}

// Sets the model's vocab size and number of multi-token prediction layers to the recipe's values.
void take_chosen_ends(std::vector<FlatSetting>& settings, ModelSpec& model,
                      std::vector<std::string>& notes) {
  const std::int64_t vocab = setting_number(settings, "model.vocab_size");
  if (vocab > 0 && vocab != model.vocab) {
    notes.push_back(fmt::format("the recipe trains {} with a vocab size of {}, not {}", model.name,
                                vocab, model.vocab));
    model.vocab = vocab;
  }
  const std::int64_t predictions = setting_number(settings, "model.mtp_num_layers");
  if (predictions < 1) return;
  if (predictions != model.ends.prediction_layers) {
    notes.push_back(
        fmt::format("the recipe trains {} for multi-token prediction; {} has {}",
                    predictions == 1 ? "1 layer" : fmt::format("{} layers", predictions),
                    model.name, model.ends.prediction_layers));
  }
  model.ends.prediction_layers = predictions;
  model.ends.prediction_shared = predictions > 1 && is_on(settings, "model.mtp_use_repeated_layer");
}

Result<std::optional<ModelSpec>> model_of_pattern(const std::vector<FlatSetting>& settings,
                                                  std::int64_t vocab, const std::string& tokenizer,
                                                  std::vector<std::string>& notes) {
  if (vocab < 1) {
    return bad_input("leaves the vocab size to a tokenizer that is not in the catalogue", "",
                     "add --set vocab-size=N");
  }
  if (!tokenizer.empty()) {
    notes.push_back(
        fmt::format("vocab size {} is assumed, that of the tokenizer of {}", vocab, tokenizer));
  }
  TPSIM_TRY(ModelSpec model, hybrid_model(settings, vocab));
  return std::optional(std::move(model));
}

// Returns the number of GPUs in the recipe's name or of its trainer. If the parallel degrees do not
// divide this number, returns the next larger multiple, and adds a note.
std::int64_t gpus_that_fit(const NemoRun& run, std::vector<std::string>& notes) {
  const auto degree = [&](std::string_view key, std::int64_t unset) {
    return std::clamp<std::int64_t>(
        setting_number(run.settings, fmt::format("model.{}", key), unset), 1, 1 << 12);
  };
  const std::int64_t stated = run.command.size.nodes * run.command.size.gpus_per_node;
  const std::int64_t tensor = degree("tensor_model_parallel_size", 1);
  const std::int64_t stages = degree("pipeline_model_parallel_size", 1);
  const std::int64_t experts = degree("expert_model_parallel_size", 1);
  const std::int64_t dense = tensor * stages * degree("context_parallel_size", 1);
  const std::int64_t sparse =
      experts > 1 ? experts * stages * degree("expert_tensor_parallel_size", tensor) : 1;
  const std::int64_t least = std::lcm(dense, sparse);
  constexpr std::int64_t kMost = 1 << 20;
  if (stated < 1 || least > kMost || stated % least == 0) return stated;
  const std::int64_t fitting = (stated + least - 1) / least * least;
  notes.push_back(
      fmt::format("the recipe's parallel degrees need a multiple of {} GPUs, but the recipe states "
                  "{}: the plan uses {} GPUs. Set another number with --gpus N",
                  least, stated, fitting));
  return fitting;
}

}  // namespace

Result<ImportedPlan> import_bridge_recipe(ResolvedRecipe recipe, const LaunchFile& file,
                                          const ImportInputs& inputs) {
  const std::string hub_name = setting_value(recipe.settings, "model.hf_model_id");
  OpenQuestions open;
  TPSIM_TRY_STATUS(check_decoder(recipe.settings));
  TPSIM_TRY(std::optional<ModelSpec> model, hub_model(hub_name, inputs, open));
  std::vector<std::string> notes;
  std::string tokenizer;
  const std::int64_t vocab = vocab_of_tokenizer(recipe.settings, inputs, tokenizer);
  const bool is_hybrid = !inputs.model && !hybrid_pattern(recipe.settings).empty();
  if (is_hybrid) {
    TPSIM_TRY(model, model_of_pattern(recipe.settings, vocab, tokenizer, notes));
  }
  if (!model) model = class_model(recipe, inputs);
  const ModelSource source = is_hybrid ? ModelSource::kPattern
                             : model   ? ModelSource::kHub
                                       : ModelSource::kSettings;
  NemoRun run{file, stated_settings(recipe, source, *inputs.left)};
  for (std::string& note : take_savings(run.settings, *inputs.left))
    notes.push_back(std::move(note));
  run.is_whole = true;
  run.command.size = size_of_recipe(recipe);
  if (run.command.size.gpus_per_node == 0) run.command.size = {0, 0};
  if (inputs.gpus == 0 && run.command.size.nodes == 0) open.ask(kHowManyGpus);
  TPSIM_TRY_STATUS(open.status());
  take_env_vars(run.settings, run.command);
  ImportInputs sized = inputs;
  if (sized.gpus == 0) sized.gpus = gpus_that_fit(run, notes);
  if (!model) {
    TPSIM_TRY(ImportedPlan plan, import_megatron_yaml(run.settings, sized, &recipe));
    add_environment(run.command, plan);
    plan.notes.insert(plan.notes.end(), notes.begin(), notes.end());
    plan.tokenizer_vocab = vocab;
    plan.tokenizer = std::move(tokenizer);
    return plan;
  }
  drop_settings(run.settings, "trainer.num_nodes trainer.devices");
  if (source == ModelSource::kHub && has_experts(*model)) {
    apply_rules("bridge-experts", run.settings, *inputs.left);
  }
  ImportedPlan result;
  result.stack = "nemo";
  result.model = *std::move(model);
  if (!is_hybrid) take_chosen_ends(run.settings, result.model, notes);
  result.notes = std::move(notes);
  return plan_of_run(std::move(run), sized, std::move(result));
}

}  // namespace tpsim
