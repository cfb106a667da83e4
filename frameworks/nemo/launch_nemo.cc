// Writes and reads YAML overrides of Megatron-Bridge, which configures Megatron-Core under other
// names. Sources: its training/config.py and its guide to Megatron FSDP.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "formats/settings_text.h"
#include "frameworks/launch/megatron_options.h"
#include "frameworks/launch/nemo_settings.h"
#include "frameworks/launch/outside_settings.h"

namespace tpsim {
namespace {

// Megatron-LM options with their Megatron-Bridge keys. The recipe sets options without a key: the
// model type, and settings derived from other settings.
struct NemoKey {
  std::string option, section, key;
  const char* when_set = "true";  // YAML value if the switch is present
};

std::vector<NemoKey> all_nemo_keys() {
  std::vector<NemoKey> keys;
  for (const auto& [section, options] : fact_block("nemo-keys").lists) {
    for (const std::string& word : words_in(options)) {
      const std::size_t colon = word.find(':');
      NemoKey row{"--" + word.substr(0, colon), std::string(section), word};
      std::replace(row.key.begin(), row.key.end(), '-', '_');
      if (colon != std::string::npos) row.key = word.substr(colon + 1);
      // These options disable a key that is on by default, or ask for reduction in bf16 where the
      // key asks for fp32. The key's value is therefore false.
      const bool negates = row.option.starts_with("--no-");
      if (negates || row.option == "--grad-reduce-in-bf16") row.when_set = "false";
      keys.push_back(std::move(row));
    }
  }
  return keys;
}
const std::vector<NemoKey>& nemo_keys() {
  static const std::vector<NemoKey> keys = all_nemo_keys();
  return keys;
}

std::string joined(std::string_view section, std::string_view key) {
  return fmt::format("{}.{}", section, key);
}

void ask_for_key(const std::string& name, const std::string& where, LeftSettings& left) {
  std::vector<std::string> names;
  for (const NemoKey& row : nemo_keys()) names.push_back(joined(row.section, row.key));
  left.ask(name, nearest(name, names), where);
}

// Dtypes that recipes state and YAML files cannot.
constexpr std::string_view kReadDtypes =
    "ddp.megatron_fsdp_main_grads_dtype ddp.megatron_fsdp_grad_comm_dtype";

// Converts a setting to an option of Megatron. Returns nothing for a switch that is off. Ignored
// and refused settings keep their names.
std::optional<LaunchOption> option_of(std::string_view name, std::string_view value,
                                      const std::string& where, LeftSettings& left) {
  const bool is_switch = value == "true" || value == "false";
  bool is_known = false;
  for (const NemoKey& row : nemo_keys()) {
    if (name != joined(row.section, row.key)) continue;
    is_known = true;
    if (is_switch && value != row.when_set) continue;
    return LaunchOption{row.option, is_switch ? "" : std::string(value)};
  }
  if (is_known) return std::nullopt;
  if (matches_any(name, kReadDtypes)) {
    LaunchOption dtype{"--" + std::string(name.substr(name.find('.') + 1)), std::string(value)};
    std::replace(dtype.key.begin(), dtype.key.end(), '_', '-');
    return dtype;
  }
  LaunchOption outside{std::string(name), std::string(value)};
  if (is_set_aside(LaunchStack::kNemo, outside)) return outside;
  ask_for_key(outside.key, where, left);
  return std::nullopt;
}

// Adds the option. FSDP, FP8 weights and the P2P overlap have keys in two sections: their option is
// added only once.
void add_once(std::optional<LaunchOption> option, std::vector<LaunchOption>& options) {
  if (!option) return;
  const auto is_it = [&](const NemoKey& row) { return row.option == option->key; };
  const bool in_two = std::count_if(nemo_keys().begin(), nemo_keys().end(), is_it) > 1;
  if (!in_two || !has_key(options, option->key)) options.push_back(*std::move(option));
}

// Converts layers such as "([0]*1+[1]*2)" to a YAML list, because Megatron-Bridge does not evaluate
// expressions.
std::string layers_text(const LaunchOption& option, const std::vector<LaunchOption>& all) {
  const auto flags = expert_layers(option, setting_number(all, "--num-layers"));
  if (!flags.ok()) return option.value;
  std::string text;
  for (const bool flag : *flags)
    text += fmt::format("{}{}", text.empty() ? "[" : ", ", flag ? 1 : 0);
  return text + "]";
}

// Appends one element of Megatron-Bridge's layout, a list per stage such as "[[embedding, decoder],
// [decoder, loss]]", to Megatron's notation "Et|tL".
void add_to_layout(std::size_t stage, std::string_view element, std::size_t& stages,
                   std::string& layout) {
  for (; stages < stage; ++stages) layout += '|';
  if (element == "embedding") layout += 'E';
  if (element == "decoder") layout += 't';
  if (element == "mtp") layout += 'm';
  if (element == "loss") layout += 'L';
}

}  // namespace

bool nemo_has(std::string_view option) {
  return std::any_of(nemo_keys().begin(), nemo_keys().end(),
                     [&](const NemoKey& row) { return option == row.option; });
}

std::string nemo_yaml(const LaunchOptions& megatron, const std::vector<FlatSetting>& layers) {
  std::string text;
  for (const auto& [section, names] : fact_block("nemo-keys").lists) {
    std::string lines;
    for (const LaunchOption& option : megatron.all()) {
      for (const NemoKey& row : nemo_keys()) {
        if (option.key != row.option || section != row.section) continue;
        std::string value = option.value.empty() ? row.when_set : option.value;
        if (option.key == "--moe-layer-freq") value = layers_text(option, megatron.all());
        if (takes_words(option.key)) {
          value = fmt::format("[{}]", fmt::join(words_in(value), ", "));
        }
        const bool plain = value.find_first_of("|*") == std::string::npos;
        lines += fmt::format(fmt::runtime(plain ? "  {}: {}\n" : "  {}: \"{}\"\n"), row.key, value);
      }
    }
    if (section == "model") {
      for (const FlatSetting& one : layers) lines += fmt::format("  {}: {}\n", one.key, one.value);
    }
    if (!lines.empty()) text += fmt::format("{}:\n{}", section, lines);
  }
  return text;
}

std::vector<FlatSetting> with_lists_joined(const std::vector<FlatSetting>& settings) {
  constexpr std::string_view kLayout = "model.pipeline_model_parallel_layout";
  std::vector<FlatSetting> joined;
  std::size_t stages = 0;
  for (FlatSetting one : settings) {
    const std::size_t dot = one.key.rfind('.');
    const bool is_element = dot != std::string::npos &&
                            one.key.find_first_not_of("0123456789", dot + 1) == std::string::npos;
    if (is_element) one.key.resize(dot);
    const std::string_view outer = std::string_view(one.key).substr(0, one.key.rfind('.'));
    if (is_element && outer == kLayout) {
      const auto stage = parse_number<std::size_t>(one.key.substr(kLayout.size() + 1)).value_or(0);
      if (joined.empty() || joined.back().key != kLayout) {
        joined.push_back({std::string(kLayout), "", one.line});
        stages = 0;
      }
      add_to_layout(stage, one.value, stages, joined.back().value);
      continue;
    }
    if (is_element && !joined.empty() && joined.back().key == one.key) {
      joined.back().value += " " + one.value;
      continue;
    }
    joined.push_back(std::move(one));
  }
  return joined;
}

std::optional<LaunchOption> nemo_option(std::string_view name, std::string_view value) {
  for (const NemoKey& row : nemo_keys()) {
    if (name != joined(row.section, row.key)) continue;
    if (value != "true" && value != "false") return LaunchOption{row.option, std::string(value)};
    if (value == row.when_set) return LaunchOption{row.option, "True"};
  }
  return std::nullopt;
}

bool has_nemo_key(std::string_view name) {
  return std::any_of(nemo_keys().begin(), nemo_keys().end(),
                     [&](const NemoKey& row) { return name == joined(row.section, row.key); });
}

std::vector<LaunchOption> nemo_options(const std::vector<FlatSetting>& settings,
                                       const std::string& path, LeftSettings& left) {
  std::vector<LaunchOption> options;
  for (const FlatSetting& setting : with_lists_joined(settings)) {
    const std::size_t dot = setting.key.find('.');
    if (setting.value.empty()) continue;
    const std::string_view key = setting.key;
    const std::string where = place_of(path, setting.line);
    if (dot == std::string::npos) {
      if (setting.line == 0) continue;  // a variable of the launch script
      LaunchOption alone{setting.key, setting.value};
      if (is_outside(LaunchStack::kNemo, key)) continue;
      if (is_set_aside(LaunchStack::kNemo, alone)) {
        options.push_back(std::move(alone));
      } else {
        ask_for_key(setting.key, where, left);
      }
      continue;
    }
    const bool is_off = setting.value == "false" && !has_nemo_key(key);
    if (!is_off) add_once(option_of(key, setting.value, where, left), options);
  }
  return options;
}

}  // namespace tpsim
