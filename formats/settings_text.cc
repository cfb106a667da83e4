#include "formats/settings_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "formats/unset_marks.h"

namespace tpsim {
namespace {

void flatten_json(const JsonValue& value, const std::string& key, std::vector<FlatSetting>& out) {
  if (const auto* members = value.as<JsonValue::Object>()) {
    for (const JsonMember& member : *members) {
      flatten_json(member.value, key.empty() ? member.key : key + "." + member.key, out);
    }
  } else if (const auto* elements = value.as<JsonValue::Array>()) {
    for (std::size_t i = 0; i < elements->size(); ++i) {
      flatten_json((*elements)[i], fmt::format("{}.{}", key, i), out);
    }
  } else {
    std::string text;
    if (const auto* word = value.as<std::string>()) text = *word;
    if (const auto* flag = value.as<bool>()) text = *flag ? "true" : "false";
    if (const auto* whole = value.as<std::int64_t>()) text = std::to_string(*whole);
    if (const auto* number = value.as<double>()) text = fmt::format("{}", *number);
    out.push_back({key, text, value.line()});
  }
}

// Maximum depth of nested references.
constexpr int kDeepest = 8;

// Whether the name has only capital letters, digits and '_', like "PRIMUS_MODEL" in
// "${PRIMUS_MODEL:qwen3}".
bool is_variable(std::string_view name) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return !name.empty() && name.find_first_not_of(kLetters) == std::string_view::npos;
}

class Values {
 public:
  Values(const std::vector<FlatSetting>& settings, const std::map<std::string, std::string>& given)
      : settings_(settings), given_(given) {}

  std::string resolved(const std::string& key, const std::string& value, int depth = 0) {
    constexpr std::size_t kMostBytes = 1 << 16;
    std::string out;
    std::string_view rest = value;
    while (!rest.empty()) {
      const std::size_t at = rest.find("${");
      const std::size_t end = at == std::string_view::npos ? at : closing(rest, at + 2);
      if (end == std::string_view::npos || out.size() > kMostBytes) return out + std::string(rest);
      out += rest.substr(0, at);
      out += value_of(key, rest.substr(at + 2, end - at - 2), depth);
      rest.remove_prefix(end + 1);
    }
    return out;
  }

  const std::set<std::string>& asked() const { return asked_; }

 private:
  // Returns the index of the '}' that closes a "${". Nested braces are skipped.
  static std::size_t closing(std::string_view text, std::size_t from) {
    int depth = 1;
    for (std::size_t i = from; i < text.size(); ++i) {
      if (text[i] == '{') ++depth;
      if (text[i] == '}' && --depth == 0) return i;
    }
    return std::string_view::npos;
  }

  // Returns the setting that a reference in the value of `key` refers to. "${.x}" is a sibling of
  // `key`, "${..x}" a sibling of the enclosing map. In an included file, the first part of the name
  // is the key under which the file is included.
  const FlatSetting* referred(const std::string& key, std::string_view name) const {
    if (name.starts_with('.')) {
      std::string place = key;
      while (name.starts_with('.')) {
        const std::size_t dot = place.rfind('.');
        place = dot == std::string::npos ? "" : place.substr(0, dot);
        name.remove_prefix(1);
      }
      return find_setting(settings_,
                          place.empty() ? std::string(name) : place + "." + std::string(name));
    }
    if (const FlatSetting* own = find_setting(settings_, name)) return own;
    const std::size_t dot = name.find('.');
    return dot == std::string_view::npos ? nullptr : find_setting(settings_, name.substr(dot + 1));
  }

  std::optional<std::string> from_outside(const std::string& name) {
    asked_.insert(name);
    const auto found = given_.find(name);
    return found == given_.end() ? std::nullopt : std::optional(found->second);
  }

  std::string value_of(const std::string& key, std::string_view inside, int depth) {
    std::string_view name = trimmed(inside);
    std::optional<std::string> otherwise;
    if (name.starts_with("oc.env:")) {
      name.remove_prefix(7);
      const std::size_t comma = name.find(',');
      if (comma != std::string_view::npos) otherwise = std::string(trimmed(name.substr(comma + 1)));
      name = trimmed(name.substr(0, comma));
    } else if (const std::size_t mark = name.find(":-"); mark != std::string_view::npos) {
      otherwise = std::string(name.substr(mark + 2));
      name = name.substr(0, mark);
    } else if (const std::size_t colon = name.find(':');
               colon != std::string_view::npos && is_variable(name.substr(0, colon))) {
      otherwise = std::string(name.substr(colon + 1));  // "${NAME:default}" of Primus
      name = name.substr(0, colon);
    } else if (colon == std::string_view::npos) {
      const FlatSetting* own = depth < kDeepest ? referred(key, name) : nullptr;
      if (own != nullptr) return resolved(own->key, own->value, depth + 1);
    }
    const std::string text(name);
    if (auto value = from_outside(text)) return *value;
    return otherwise ? *otherwise : std::string(1, kUnset) + "$" + text;
  }

  const std::vector<FlatSetting>& settings_;
  const std::map<std::string, std::string>& given_;
  std::set<std::string> asked_;
};

}  // namespace

Result<std::vector<FlatSetting>> flat_settings(const LaunchFile& file) {
  const std::string& path = path_of(file);
  if (path.ends_with(".toml")) return flat_toml(file.text, path);
  if (!path.ends_with(".json")) return flat_yaml(file.text, path);
  TPSIM_TRY(const JsonValue json, parse_json(file.text, path));
  std::vector<FlatSetting> settings;
  flatten_json(json, "", settings);
  return settings;
}

const FlatSetting* find_setting(const std::vector<FlatSetting>& settings, std::string_view key) {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&](const FlatSetting& one) { return one.key == key; });
  return found == settings.end() ? nullptr : &*found;
}

FlatSetting* find_setting(std::vector<FlatSetting>& settings, std::string_view key) {
  return const_cast<FlatSetting*>(find_setting(std::as_const(settings), key));
}

bool has_any_key(const std::vector<FlatSetting>& settings,
                 std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](std::string_view key) { return has_key(settings, key); });
}

bool has_key(const std::vector<FlatSetting>& settings, std::string_view key) {
  return find_setting(settings, key) != nullptr;
}

std::string setting_value(const std::vector<FlatSetting>& settings, std::string_view key,
                          std::string_view otherwise) {
  const FlatSetting* const found = find_setting(settings, key);
  return found == nullptr ? std::string(otherwise) : found->value;
}

std::int64_t setting_number(const std::vector<FlatSetting>& settings, std::string_view key,
                            std::int64_t otherwise) {
  return parse_number<std::int64_t>(setting_value(settings, key)).value_or(otherwise);
}

void put_setting(FlatSetting setting, std::vector<FlatSetting>& settings) {
  std::erase_if(settings, [&](const FlatSetting& one) { return one.key == setting.key; });
  settings.push_back(std::move(setting));
}

void put_settings(std::vector<FlatSetting> more, std::vector<FlatSetting>& settings) {
  for (FlatSetting& one : more) put_setting(std::move(one), settings);
}

bool drop_settings(std::vector<FlatSetting>& settings, std::string_view patterns) {
  return std::erase_if(settings,
                       [&](const FlatSetting& one) { return matches_any(one.key, patterns); }) > 0;
}

bool FlatReader::has(std::string_view key) const { return has_key(left_, key); }

std::optional<std::string> FlatReader::text(std::string_view key) {
  asked_.emplace_back(key);
  const auto found = std::find_if(left_.begin(), left_.end(),
                                  [&](const FlatSetting& one) { return one.key == key; });
  if (found == left_.end()) return std::nullopt;
  std::string value = std::move(found->value);
  left_.erase(found);
  if (const auto unset = unset_name(value)) {
    if (unset->empty()) {
      fail(fmt::format("{} is the output of a program, which tpsim does not run", key),
           "give the script's variables with --set NAME=VALUE");
    } else {
      fail(fmt::format("{} is {}, which the file does not set", key, *unset),
           fmt::format("add --set {}=VALUE", unset->substr(unset->find('$') + 1)));
    }
    return std::nullopt;
  }
  return value.empty() ? std::nullopt : std::optional(std::move(value));
}

bool FlatReader::flag(std::string_view key, bool fallback) {
  const auto value = text(key);
  if (!value) return fallback;
  const std::string word = in_lower_case(*value);
  const bool on = word == "true" || word == "yes" || word == "on" || word == "1" || word == "auto";
  const bool off = word == "false" || word == "no" || word == "off" || word == "0";
  if (!on && !off) fail(fmt::format("{} is '{}'; it must be true or false", key, *value));
  return on;
}

std::int64_t FlatReader::integer(std::string_view key, std::int64_t fallback) {
  const auto value = text(key);
  if (!value || *value == "auto") return fallback;
  const auto number = parse_number<std::int64_t>(*value);
  constexpr std::int64_t kMost = 1 << 20;
  if (number && *number >= -1 && *number <= kMost) return *number;
  fail(fmt::format("{} is '{}'; it must be a whole number", key, *value));
  return fallback;
}

std::vector<std::string> FlatReader::list(std::string_view key) {
  std::vector<std::string> values;
  for (int i = 0;; ++i) {
    const auto element = text(fmt::format("{}.{}", key, i));
    if (!element) break;
    values.push_back(*element);
  }
  const auto words = text(key);
  std::string_view rest = words ? std::string_view(*words) : "";
  while (!rest.empty()) {
    const std::string_view word = cut_off(rest, ", ");
    if (!word.empty()) values.emplace_back(word);
  }
  return values;
}

void FlatReader::fail(std::string message, std::string hint) {
  if (!error_) error_ = bad_input(std::move(message), "", std::move(hint));
}

Status FlatReader::error() const { return error_ ? Status(*error_) : Ok{}; }

std::string place_of(const std::string& file, int line) {
  return line > 0 ? fmt::format("{}:{}", file, line) : file;
}

bool names_setting(std::string_view name) {
  return name.find_first_of(".-") != std::string_view::npos;
}

std::vector<FlatSetting> with_values(std::vector<FlatSetting> settings,
                                     const std::map<std::string, std::string>& given) {
  std::set<std::string> placed;
  for (FlatSetting& one : settings) {
    const auto said = given.find(one.key);
    if (said == given.end()) continue;
    one.value = said->second;
    placed.insert(one.key);
  }
  std::vector<FlatSetting> known = settings;
  Values values(settings, given);
  for (FlatSetting& one : known) {
    if (one.value.find("${") != std::string::npos) one.value = values.resolved(one.key, one.value);
    if (one.value == "null") one.value.clear();
  }
  for (const auto& [name, value] : given) {
    if (!placed.contains(name) && !values.asked().contains(name)) known.push_back({name, value, 0});
  }
  return known;
}

}  // namespace tpsim
