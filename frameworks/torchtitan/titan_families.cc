// Recognizes models of torchtitan's registry that have the blocks of a published family. Rules of
// torchtitan.txt convert their modules to an equivalent Hugging Face config.json. Modules:
// torchtitan/models of b5bcd76.
#include "frameworks/torchtitan/titan_families.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "frameworks/launch/programs.h"

namespace tpsim {
namespace {

using Settings = std::vector<FlatSetting>;

bool has_module(const Settings& modules, const std::string& name) {
  return has_key(modules, fmt::format("{}.{}", name, kMadeBy));
}

// Repeats the settings of the first layer that has this module under the module's name alone.
void put_first(const std::string& module, std::int64_t layers, Settings& modules) {
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string place = fmt::format("layers.{}.{}", layer, module);
    if (!has_module(modules, place)) continue;
    for (const FlatSetting& one : Settings(modules)) {
      if (one.key.starts_with(place + ".")) {
        modules.push_back({module + one.key.substr(place.size()), one.value});
      }
    }
    modules.push_back({"first_" + module, std::to_string(layer)});
    return;
  }
}

std::string table_of(const Settings& modules) {
  const std::string first = setting_value(modules, "layers.0.attention._target_");
  if (first.ends_with(".deepseek_v3.model.Attention.Config")) return "titan-deepseek";
  if (first.ends_with(".gpt_oss.model.Attention.Config")) return "titan-gpt-oss";
  const bool is_qwen = setting_value(modules, kMadeBy).ends_with(".Qwen35Model.Config");
  return is_qwen ? "titan-qwen3-5" : "";
}

}  // namespace

std::optional<ModelSpec> titan_family_model(const TitanValues& values) {
  constexpr std::string_view kModel = "model_spec.model.";
  Settings modules;
  for (const auto& [key, value] : values) {
    if (key.starts_with(kModel)) modules.push_back({key.substr(kModel.size()), value});
  }
  const std::string table = table_of(modules);
  if (table.empty()) return std::nullopt;
  std::int64_t layers = 0, predictions = 0, window = 0;
  std::vector<std::string> kinds;
  for (; has_module(modules, fmt::format("layers.{}", layers)); ++layers) {
    const std::int64_t here =
        setting_number(modules, fmt::format("layers.{}.attention.sliding_window_size", layers));
    const bool is_linear = has_module(modules, fmt::format("layers.{}.delta_net", layers));
    kinds.push_back(is_linear  ? "linear_attention"
                    : here > 0 ? "sliding_attention"
                               : "full_attention");
    window = std::max(window, here);
  }
  while (has_module(modules, fmt::format("mtp_layers.{}", predictions))) ++predictions;
  for (const char* module : {"attention", "moe", "delta_net"}) put_first(module, layers, modules);
  for (const auto& [name, number] : {std::pair{"layers", layers}, std::pair{"window", window},
                                     std::pair{"predictions", predictions}}) {
    modules.push_back({name, std::to_string(number)});
  }
  modules.push_back({"kinds", fmt::format("[\"{}\"]", fmt::join(kinds, "\", \""))});
  Result<ModelSpec> model = model_by_rules(table, std::move(modules), "torchtitan's registry");
  return model.ok() ? std::optional(*std::move(model)) : std::nullopt;
}

}  // namespace tpsim
