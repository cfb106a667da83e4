// Renames settings of NeMo 2's recipes to Megatron-Bridge's. Sources: NeMo's
// collections/llm/recipes and lightning/pytorch/callbacks/megatron_comm_overlap.py.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "frameworks/launch/config_files.h"

namespace tpsim {
namespace {

constexpr std::string_view kCallbacks = "trainer.callbacks.";

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

// Returns the key prefix of the communication overlap callback, such as "trainer.callbacks.1.".
// Empty if there is none.
std::string overlap_callback(const std::vector<FlatSetting>& settings) {
  for (const FlatSetting& one : settings) {
    const bool is_it = one.key.starts_with(kCallbacks) && one.key.ends_with(kMadeBy) &&
                       last_part(one.value) == "MegatronCommOverlapCallback";
    if (is_it) return one.key.substr(0, one.key.size() - kMadeBy.size());
  }
  return "";
}

std::string bridge_key(const std::string& key, const std::string& callback) {
  if (!callback.empty() && key.starts_with(callback)) {
    return "comm_overlap." + key.substr(callback.size());
  }
  const ProgramSetting* const place = fact_row("nemo-2", key);
  if (place == nullptr) return key;
  const std::size_t prefix = place->key.size() - 1;  // without '*'
  return std::string(place->becomes) + key.substr(prefix);
}

}  // namespace

// Renames all settings. If the strategy or the data states a setting that the model also has, it
// overrides the model's default.
ResolvedRecipe with_bridge_names(ResolvedRecipe nemo) {
  const std::string callback = overlap_callback(nemo.settings);
  ResolvedRecipe bridge{nemo.framework, nemo.function, {}, {}, nemo.gpus};
  std::vector<std::string> stated;
  for (const FlatSetting& one : nemo.settings) {
    const bool is_default = nemo.is_default(one.key);
    if (one.key == fmt::format("model.{}", kMadeBy)) continue;  // model.config has its own
    if (one.key == "trainer.strategy.fsdp") {
      if (one.value == "megatron") bridge.settings.push_back({"ddp.use_megatron_fsdp", "true", 0});
      if (one.value == "pytorch") bridge.settings.push_back({"dist.use_torch_fsdp2", "true", 0});
      continue;
    }
    FlatSetting renamed{bridge_key(one.key, callback), one.value, one.line};
    if (renamed.key.starts_with(kCallbacks)) continue;
    const FlatSetting* const other = find_setting(bridge.settings, renamed.key);
    const bool is_stated = std::find(stated.begin(), stated.end(), renamed.key) != stated.end();
    if (other != nullptr && (is_stated || is_default) && !other->value.empty()) continue;
    if (!is_default) stated.push_back(renamed.key);
    put_setting(std::move(renamed), bridge.settings);
  }
  for (const FlatSetting& one : bridge.settings) {
    const bool is_stated = std::find(stated.begin(), stated.end(), one.key) != stated.end();
    if (!is_stated) bridge.defaults.push_back(one.key);
  }
  std::sort(bridge.defaults.begin(), bridge.defaults.end());
  return bridge;
}

}  // namespace tpsim
