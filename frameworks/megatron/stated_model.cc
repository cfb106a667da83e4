// The model of Megatron's arguments that name a model and state sizes other than the model's.
#include <fmt/format.h>

#include "core/base/text.h"
#include "core/software/launched_models.h"
#include "formats/unset_marks.h"
#include "frameworks/launch/facts.h"
#include "frameworks/launch/launch_options.h"
#include "frameworks/launch/megatron_options.h"

namespace tpsim {

std::optional<ModelSpec> stated_model(const std::vector<LaunchOption>& options,
                                      const ModelSpec& named,
                                      std::vector<std::string>& differences) {
  LaunchOptions wanted;
  add_megatron_model(named, wanted);
  std::vector<LaunchOption> all = wanted.all();
  const bool is_whole = has_key(options, "--num-layers") && has_key(options, "--hidden-size") &&
                        has_key(options, "--num-attention-heads");
  if (is_whole) all = options;
  for (const std::string& name : words_in(fact_names("megatron-options", "sizes"))) {
    const std::string own = setting_value(wanted.all(), name, "0");
    const std::string said = setting_value(options, name);
    const bool is_free = (name == "--ffn-hidden-size" && has_experts(named)) ||
                         (name == "--kv-channels" && attention_shape(named).latent.kv_rank > 0);
    if (said.empty() || unset_name(said) || is_free || is_same_value(said, own)) continue;
    differences.push_back(fmt::format("{} {} ({})", name, said, own));
    put_setting(all, name, said);
    if (name == "--num-query-groups") put_setting(all, "--group-query-attention", "");
  }
  for (const char* name : {"--vocab-size", "--seq-length"}) {
    const bool is_known = has_key(all, name) && !unset_name(setting_value(all, name));
    if (!is_known) put_setting(all, name, setting_value(wanted.all(), name));
  }
  if (differences.empty() || !has_megatron_shape(named)) return std::nullopt;
  Result<StatedModel> stated = model_of_megatron(all);
  if (!stated.ok() || !validate(stated->model).ok()) return std::nullopt;
  return std::move(stated->model);
}

}  // namespace tpsim
