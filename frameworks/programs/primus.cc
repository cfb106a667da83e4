// Imports Primus' YAML, which states a framework, presets of the framework and of a model, and
// overrides. Source of presets and defaults: primus/configs of AMD-AGI/Primus at fd1eeab.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "formats/shell_script.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
namespace {

std::string module_prefix(const std::vector<FlatSetting>& settings) {
  constexpr std::string_view kEnd = ".framework";
  for (const FlatSetting& one : settings) {
    if (one.key.starts_with("modules.") && one.key.ends_with(kEnd)) {
      return one.key.substr(0, one.key.size() - kEnd.size() + 1);
    }
  }
  return "modules.pre_trainer.";
}

// Returns the file's name without folder and extension, to look up the model in the catalogue:
// "llama3.1_8B" for "llama3.1_8B.yaml".
std::string stem_of(std::string name) {
  name = name.substr(name.find_last_of('/') + 1);
  for (const char* end : {".yaml", ".yml"}) {
    if (name.ends_with(end)) name.resize(name.size() - std::string_view(end).size());
  }
  return name;
}

}  // namespace

Result<std::vector<FlatSetting>> expand_primus(std::vector<FlatSetting> settings, const LaunchFile&,
                                               const ImportInputs& inputs, ProgramSettings& out) {
  const std::string module = module_prefix(settings);
  const std::string framework = setting_value(settings, module + "framework");
  std::vector<FlatSetting> all;
  for (const auto& [kind, key] : {std::pair{"modules", "config"}, std::pair{"models", "model"}}) {
    const std::string name = setting_value(settings, module + key);
    if (name.empty()) continue;
    const std::string path = fmt::format("primus/configs/{}/{}/{}", kind, framework, name);
    if (text_of_named(path, inputs)) {
      TPSIM_TRY(std::vector<FlatSetting> preset, named_settings(path, "", inputs));
      TPSIM_TRY_STATUS(put_over_bases("extends extends.* includes includes.* bases", false, path,
                                      inputs, preset));
      put_settings(std::move(preset), all);
      continue;
    }
    out.note(fmt::format("the file names the preset {}, which was not found: {}", path,
                         key == std::string_view("model")
                             ? "the catalogue's model of this name is predicted"
                             : "the defaults of Primus in 2026 are assumed"));
  }
  for (FlatSetting& one : all) one.line = kFromSources;
  const std::string model = stem_of(setting_value(settings, module + "model"));
  if (!model.empty()) out.put("@model", model);
  const std::string overrides = module + "overrides.";
  std::vector<FlatSetting> own;
  for (const FlatSetting& one : settings) {
    if (!one.key.starts_with(overrides)) continue;
    own.push_back(one);
    own.back().key = one.key.substr(overrides.size());
    if (own.back().key == "sequence_parallel" && one.value == "1") own.back().value = "true";
  }
  const std::string& used =
      fact_names("primus-presets", framework == "torchtitan" ? "torchtitan" : "megatron");
  const bool has_latents = in_lower_case(setting_value(all, "multi_latent_attention")) == "true";
  std::erase_if(all, [&](const FlatSetting& one) {
    const bool is_latent = matches_any(one.key, fact_names("primus-presets", "latent"));
    if (is_latent ? has_latents : matches_any(one.key, used)) return false;
    out.outside.push_back(one.key);
    return true;
  });
  put_settings(std::move(own), all);
  return all;
}

}  // namespace tpsim
