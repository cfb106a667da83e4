// NeMo Megatron-Bridge: writes and reads YAML that overrides a recipe.

#include <algorithm>

#include "core/base/text.h"
#include "core/software/launched_models.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/framework.h"
#include "frameworks/launch/framework_judge.h"
#include "frameworks/launch/launch_files.h"
#include "frameworks/launch/nemo_settings.h"
#include "frameworks/launch/outside_settings.h"

namespace tpsim {
namespace {

// Returns the model's shape as JSON, with the field names of Megatron-Bridge's model provider.
JsonValue shape_of(const ModelSpec& model) {
  const AttentionShape& attention = attention_shape(model);
  JsonValue shape = json_object({{"num_layers", model.layers},
                                 {"hidden_size", model.hidden},
                                 {"num_attention_heads", attention.heads},
                                 {"num_query_groups", attention.kv_heads},
                                 {"kv_channels", attention.head_dim},
                                 {"add_bias_linear", has_all_biases(model)}});
  if (has_experts(model)) {
    shape.set("num_moe_experts", model.experts.count);
    shape.set("moe_router_topk", model.experts.per_token);
  }
  if (model.ends.prediction_layers > 0) shape.set("mtp_num_layers", model.ends.prediction_layers);
  return shape;
}

// Whether most settings have names of Megatron-Bridge. Other programs have a section "train" too.
bool has_bridge_names(const std::vector<FlatSetting>& settings) {
  const auto known = std::count_if(settings.begin(), settings.end(), [](const FlatSetting& one) {
    return has_nemo_key(list_of(one.key)) ||
           is_set_aside(LaunchStack::kNemo, {std::string(list_of(one.key)), ""});
  });
  return 2 * known > std::ssize(settings);
}

class Nemo final : public Framework {
 public:
  Nemo() : Framework(LaunchStack::kNemo, Launcher::kNemo, std::string(kNemoYamlFile)) {}

  std::optional<LaunchStack> alternative() const override {
    return LaunchStack::kMegatronLm;  // Megatron-Core too; its files support more models
  }

  bool detects_settings(const std::vector<FlatSetting>& settings) const override {
    return has_key(settings, "model.tensor_model_parallel_size") ||
           (is_of_bridge(settings) && has_bridge_names(settings));
  }
  Result<ImportedPlan> read(const std::vector<LaunchFile>& files,
                            const ImportInputs& inputs) const override {
    return import_nemo(files, inputs);
  }
  Result<ImportedPlan> read_settings(const std::vector<FlatSetting>& settings,
                                     const LaunchFile& file,
                                     const ImportInputs& inputs) const override {
    if (!inputs.model && states_model(settings)) {
      return located(file, import_megatron_yaml(settings, inputs));
    }
    return import_plan(stack(), {{std::string(kNemoYamlFile), file.text, path_of(file)}}, inputs);
  }

  // Writes two files. The shell file states the number of GPUs, which the YAML cannot state.
  Result<std::vector<LaunchFile>> write(const PlanFile& file, const LaunchSize& size,
                                        const StackSpec& software) const override {
    TPSIM_TRY(LaunchOptions options, megatron_settings(stack(), file, software));
    add_shard_instances(file.plan, size.domain_gpus, software.parts.shard_group, options);
    TPSIM_TRY(const NemoPrecision precision, nemo_precision(file.plan, options));
    LaunchOptions launcher;
    launcher.add("--config-file", std::string(kNemoYamlFile));
    return std::vector<LaunchFile>{
        shell_file(stack(), file, size, launcher, expert_lines(file, size, software)),
        {files().back(),
         precision.yaml + nemo_yaml(precision.others, nemo_layers(file.model, options.all()))}};
  }
  std::string start_command(const ModelSpec&, const std::string& job) const override {
    return torchrun_command(job, "pretrain.py");
  }

  std::string_view judge() const override { return "megatron-bridge"; }
  Status prepare_check(const std::vector<LaunchFile>& files, const ModelSpec& model,
                       JudgedFiles& judged) const override {
    TPSIM_TRY_STATUS(Framework::prepare_check(files, model, judged));
    JsonValue overrides = json_object({});
    for (const FlatSetting& one : judged.settings) overrides.set(one.key, option_json(one.value));
    judged.given.set("overrides", std::move(overrides));
    judged.given.set("model", shape_of(model));
    judged.options.clear();
    return Ok{};
  }
};

}  // namespace

const Framework& nemo() {
  static const Nemo framework;
  return framework;
}

}  // namespace tpsim
