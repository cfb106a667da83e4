// Writers and readers of Megatron-Bridge's settings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "formats/settings_text.h"
#include "frameworks/launch/megatron_options.h"

namespace tpsim {

bool nemo_has(std::string_view option);  // whether NeMo has a key for this option of Megatron-LM
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
// The setting "mixed_precision" as YAML, which sets dtype, FP8 recipe and gradient dtype and
// overwrites other values of its keys, and the options that it does not set.
struct NemoPrecision {
  std::string yaml;  // the name of a recipe, or its fields if no named recipe has the plan's
  LaunchOptions others;
};
// Error for dtypes that Megatron-Bridge lacks.
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

}  // namespace tpsim
