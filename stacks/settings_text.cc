#include "stacks/settings_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/json_document.h"
#include "core/leading_number.h"
#include "core/text.h"
#include "stacks/shell_words.h"

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

bool has_key(const std::vector<FlatSetting>& settings, std::string_view key) {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const FlatSetting& one) { return one.key == key; });
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
    fail(fmt::format("{} is {}, which the file does not set", key, *unset),
         fmt::format("say it with --set {}=VALUE", unset->substr(unset->find('$') + 1)));
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
  if (!on && !off) fail(fmt::format("{} is '{}', neither true nor false", key, *value));
  return on;
}

std::int64_t FlatReader::integer(std::string_view key, std::int64_t fallback) {
  const auto value = text(key);
  if (!value || *value == "auto") return fallback;
  const auto number = parse_number<std::int64_t>(*value);
  constexpr std::int64_t kMost = 1 << 20;
  if (number && *number >= -1 && *number <= kMost) return *number;
  fail(fmt::format("{} is '{}', no whole number", key, *value));
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
    const std::size_t end = std::min(rest.find_first_of(", "), rest.size());
    if (end > 0) values.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return values;
}

void FlatReader::fail(std::string message, std::string hint) {
  if (!error_) error_ = bad_input(std::move(message), "", std::move(hint));
}

Status FlatReader::error() const { return error_ ? Status(*error_) : Ok{}; }

}  // namespace tpsim
