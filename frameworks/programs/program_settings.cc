// ProgramSettings: settings of a training program under the names that the reader uses. Also
// recognizes programs by their command or settings.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "formats/unset_marks.h"
#include "frameworks/launch/command_words.h"
#include "frameworks/launch/programs.h"

namespace tpsim {
namespace {

// Upper bound of degrees, batch sizes and sequence lengths.
constexpr std::int64_t kLargest = 1 << 24;

std::string setting_word(std::string_view text) {
  std::string word(text.substr(std::min(text.find_first_not_of("-+"), text.size())));
  std::replace(word.begin(), word.end(), '-', '_');
  return word;
}

// Returns a script's path as a module name: "verl.trainer.main_ppo" for "verl/trainer/main_ppo.py".
std::string module_of(std::string_view program) {
  std::string name(program);
  if (name.ends_with(".py")) name.resize(name.size() - 3);
  while (name.starts_with("./")) name.erase(0, 2);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

// Whether the module matches a pattern, with or without enclosing packages: "pkg.swift.cli.sft"
// matches "swift.cli.sft" and "swift.cli.*".
bool is_command(std::string_view module, std::string_view patterns) {
  while (!patterns.empty()) {
    // Patterns are separated by commas, because console commands contain spaces.
    const std::string_view pattern = trimmed(cut_off(patterns, ","));
    if (pattern.empty()) continue;
    if (matches_pattern(module, pattern)) return true;
    const bool is_prefix = pattern.back() == '*';
    const std::string inner =
        fmt::format(".{}", pattern.substr(0, pattern.size() - (is_prefix ? 1 : 0)));
    const std::size_t at = module.find(inner);
    if (at == std::string_view::npos) continue;
    if (is_prefix || at + inner.size() == module.size()) return true;
  }
  return false;
}

bool has_mark(const std::vector<FlatSetting>& settings, std::string_view marks) {
  if (marks.empty()) return true;
  return std::any_of(settings.begin(), settings.end(), [&](const FlatSetting& one) {
    return matches_any(fmt::format("{}={}", setting_word(one.key), one.value), marks);
  });
}

bool has_all_keys(const std::vector<FlatSetting>& settings, std::string_view patterns) {
  bool has_some = false;
  while (!patterns.empty()) {
    const std::string_view pattern = cut_off(patterns, " ");
    if (pattern.empty()) continue;
    has_some = true;
    const bool has = std::any_of(settings.begin(), settings.end(), [&](const FlatSetting& one) {
      return matches_any(setting_word(one.key), pattern);
    });
    if (!has) return false;
  }
  return has_some;
}

}  // namespace

std::vector<FlatSetting> ProgramSettings::of_framework() const {
  std::vector<FlatSetting> own;
  for (const FlatSetting& one : all_) {
    if (!one.key.starts_with('@')) own.push_back(one);
  }
  return own;
}

const std::string* ProgramSettings::find(std::string_view name) const {
  const FlatSetting* found = find_setting(all_, name);
  return found == nullptr ? nullptr : &found->value;
}

bool ProgramSettings::is(std::string_view name, std::string_view value) const {
  const std::string* found = find(name);
  return found != nullptr && matches_any(in_lower_case(*found), value);
}

void ProgramSettings::put(std::string_view name, std::string value) {
  put_setting({std::string(name), std::move(value), 0}, all_);
}

void ProgramSettings::erase(std::string_view name) {
  std::erase_if(all_, [&](const FlatSetting& one) { return one.key == name; });
}

std::int64_t ProgramSettings::number(std::string_view name, std::int64_t fallback) {
  const std::string* text = find(name);
  if (text == nullptr) return fallback;
  const bool is_count = matches_any(name, "@gpus @nodes @gpus-per-node");
  if (const auto unset = unset_name(*text)) {
    open.ask({fmt::format("{} is {}", name, why_unset(*unset)),
              is_count ? "--gpus N" : unset_remedy(*unset)});
    return fallback;
  }
  const auto value = parse_number<double>(*text);  // also "1e3"
  if (!value && is_count && !matches_any(in_lower_case(*text), "null none auto")) {
    open.ask({fmt::format("the number of {} is '{}'", name.substr(1), *text), "--gpus N"});
  }
  return value && *value >= 1 && *value <= kLargest ? static_cast<std::int64_t>(*value) : fallback;
}

std::int64_t ProgramSettings::gpus() {
  if (gpus_asked > 0) return gpus_asked;
  const std::int64_t all = number("@gpus", 0);
  if (all > 0) return all;
  const std::int64_t per_node = number("@gpus-per-node", 0);
  return per_node > 0 ? number("@nodes", 1) * per_node : 0;
}

std::int64_t ProgramSettings::replicas() {
  const std::int64_t ranks = number("tensor-model-parallel-size", 1) *
                             number("pipeline-model-parallel-size", 1) *
                             number("context-parallel-size", 1) * number("@cp", 1);
  return std::max<std::int64_t>(gpus() / std::max<std::int64_t>(1, ranks), gpus() > 0 ? 1 : 0);
}

const TrainingProgram* program_of(const LaunchCommand& command) {
  const std::string module = module_of(command.program);
  const std::vector<FlatSetting> settings = settings_of_words(command.words);
  for (const TrainingProgram& one : all_programs()) {
    if (is_command(module, one.commands) && has_mark(settings, one.marks)) return &one;
  }
  return nullptr;
}

const TrainingProgram* program_of(const std::vector<FlatSetting>& settings) {
  for (const TrainingProgram& one : all_programs()) {
    if (has_all_keys(settings, one.file_keys) && has_mark(settings, one.marks)) return &one;
  }
  return nullptr;
}

std::vector<FlatSetting> settings_of_words(const std::vector<std::string>& words) {
  std::vector<FlatSetting> settings;
  bool takes_more = false;
  std::set<std::string> is_switch;  // names of options that do not have a value
  const auto add = [&](std::string_view key, std::string value) {
    put_setting({std::string(key), std::move(value), 0}, settings);
  };
  for (const std::string& word : words) {
    const std::string_view text = word;
    const std::size_t equals = text.find('=');
    const bool is_name =
        equals != std::string_view::npos && equals > 0 && text.find_first_of(" /[{\"'") > equals;
    if (is_option(text)) {
      takes_more = equals == std::string_view::npos;
      add(text.substr(2, takes_more ? equals : equals - 2),
          takes_more ? "" : std::string(text.substr(equals + 1)));
      if (takes_more) is_switch.insert(settings.back().key);
    } else if (is_name && !text.starts_with('-')) {
      const std::string_view key = text.substr(std::min(text.find_first_not_of('+'), equals));
      add(key.substr(0, key.find('=')), std::string(text.substr(equals + 1)));
      takes_more = false;
    } else if (takes_more && !text.empty()) {
      std::string& value = settings.back().value;
      if (value.empty()) is_switch.erase(settings.back().key);
      value += (value.empty() ? "" : " ") + word;
    }
  }
  for (FlatSetting& one : settings) {
    if (is_switch.contains(one.key) && one.value.empty()) one.value = "true";
  }
  return settings;
}

}  // namespace tpsim
