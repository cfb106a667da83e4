// Imports FlagScale's YAML: Megatron's arguments in the sections system, model and data, whose
// names do not matter (flagscale/runner/utils.py:271 of FlagScale da4935e). An experiment selects
// such a file in its defaults.
#include <fmt/format.h>

#include "core/base/leading_number.h"
#include "core/software/stack_parts.h"
#include "frameworks/launch/environment_parts.h"
#include "frameworks/launch/nemo_settings.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
namespace {

// Adds the file train/NAME.yaml that the list of defaults selects.
Status add_selected(std::vector<FlatSetting>& settings, const LaunchFile& file,
                    const ImportInputs& inputs) {
  for (const FlatSetting& one : std::vector<FlatSetting>(settings)) {
    if (!one.key.starts_with("defaults.") || !one.key.ends_with(".train")) continue;
    const std::string name = fmt::format("train/{}.yaml", one.value);
    const auto text = text_of_named(name, inputs);
    if (!text) return not_there(name, path_of(file));
    TPSIM_TRY(const std::vector<FlatSetting> selected, flat_settings({name, *text}));
    settings.insert(settings.end(), selected.begin(), selected.end());
  }
  return Ok{};
}

}  // namespace

// Sets the width of the gated FFN from its multiple (megatron/training/arguments.py.patch).
void derive_flagscale(ProgramSettings& settings, LeftSettings&) {
  const std::int64_t multiple = settings.number("multiple-of", 0);
  const std::int64_t hidden = settings.number("hidden-size", 0);
  const std::string* const factor = settings.find("hidden-dim-multiplier");
  const double wider = factor == nullptr ? 1 : parse_number<double>(*factor).value_or(1);
  if (multiple > 0 && settings.is("swiglu", "true") && !settings.has("ffn-hidden-size")) {
    const std::int64_t usual = 8 * hidden / 3;
    const auto width = static_cast<std::int64_t>(static_cast<double>(usual) * wider);
    settings.put("ffn-hidden-size", (width + multiple - 1) / multiple * multiple);
  }
  settings.erase("multiple-of");
  settings.erase("hidden-dim-multiplier");
}

Result<std::vector<FlatSetting>> expand_flagscale(std::vector<FlatSetting> settings,
                                                  const LaunchFile& file,
                                                  const ImportInputs& inputs,
                                                  ProgramSettings& out) {
  constexpr std::string_view kVariables = "experiment.envs.";
  TPSIM_TRY_STATUS(add_selected(settings, file, inputs));
  PartValues parts;
  std::vector<FlatSetting> all = with_lists_joined(with_values(std::move(settings), inputs.given));
  for (FlatSetting& one : all) {
    if (one.key.starts_with(kVariables)) {
      read_variable(one.key.substr(kVariables.size()), one.value, parts);
    }
    for (const std::string_view section : {"system.", "model.", "data."}) {
      if (one.key.starts_with(section)) one.key.erase(0, one.key.rfind('.') + 1);
    }
  }
  for (const auto& [part, value] : parts) {
    out.put(fmt::format("@part.{}", row_of(part).key), text_of(row_of(part), value));
  }
  return all;
}

}  // namespace tpsim
