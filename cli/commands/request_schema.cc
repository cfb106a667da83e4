#include "cli/commands/request_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/base/text.h"

namespace tpsim::cli {
namespace {

constexpr std::string_view kSuffix = "-request";

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-' || c == '_';
  });
}
bool is_number(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

JsonValue types(std::initializer_list<std::string_view> names) {
  return json_object({{"type", json_array(names)}});
}

// Returns the schema of one value with this placeholder of --help.
JsonValue value_schema(std::string_view placeholder) {
  if (placeholder.empty()) return json_object({{"type", "boolean"}});
  if (placeholder == "on|off")
    return json_object({{"enum", json_array(std::vector<JsonValue>{true, false, "on", "off"})}});
  std::vector<JsonValue> words;
  for (std::string_view rest = placeholder; !rest.empty();) {
    const std::string_view word = cut_off(rest, "|");
    if (!is_word(word)) {
      words.clear();
      break;
    }
    words.push_back(is_number(word) ? JsonValue(std::stoll(std::string(word))) : JsonValue(word));
  }
  if (words.size() > 1) return json_object({{"enum", json_array(words)}});
  if (placeholder.starts_with("N")) return types({"integer", "string"});
  const bool is_text = placeholder.find("FILE") != std::string_view::npos ||
                       placeholder.find("NAME") != std::string_view::npos ||
                       placeholder.find("DIR") != std::string_view::npos;
  return is_text ? json_object({{"type", "string"}}) : types({"number", "string"});
}

// Accepts one value of the schema `one`, or an array of them.
JsonValue one_or_several(const JsonValue& one) {
  JsonValue several = json_object({{"type", "array"}});
  several.set("items", one);
  return json_object({{"anyOf", json_array(std::vector<JsonValue>{one, several})}});
}

}  // namespace

std::vector<std::string> request_kinds() {
  std::vector<std::string> kinds;
  for (const CallRow& row : call_rows())
    kinds.push_back(std::string(row.name) + std::string(kSuffix));
  return kinds;
}

JsonValue keyword_schema(const CallKeyword& keyword) {
  const JsonValue one = value_schema(keyword.value);
  JsonValue schema = keyword.takes_list ? one_or_several(one) : one;
  std::string help = keyword.help;
  if (!keyword.value.empty()) help = fmt::format("{} ({})", help, keyword.value);
  return schema.set("description", std::move(help));
}

JsonValue path_schema(CallRow::Input input) {
  JsonValue one = json_object({{"type", "string"}});
  return input == CallRow::Input::kNeedsSome ? one_or_several(one) : one;
}

JsonValue request_schema(const std::string& kind) {
  using enum CallRow::Input;
  const std::string call = kind.substr(0, kind.size() - kSuffix.size());
  const CallRow& row = *find_call(call);
  JsonValue options = json_object(), all = json_object();
  if (row.command) {
    for (const CallKeyword& keyword : call_keywords(*row.command)) {
      all.set(keyword.name, keyword_schema(keyword));
    }
  }
  options.set("type", "object");
  options.set("properties", std::move(all));
  options.set("additionalProperties", false);
  std::vector<std::string> required = {"format", "call"};
  JsonValue properties = json_object({{"format", json_object({{"const", kRequestFormat}})},
                                      {"call", json_object({{"const", call}})}});
  properties.set("options", std::move(options));
  if (row.plan != kNone) {
    JsonValue plan = types({"object", "string"});
    properties.set("plan", plan.set("description", "a plan file, or its text"));
    if (row.plan == kNeeds) required.emplace_back("plan");
  }
  if (row.path != kNone) {
    JsonValue path = path_schema(row.path);
    properties.set("path", path.set("description", "the file that the call reads"));
    required.emplace_back("path");
  }
  if (row.report != kNone) {
    properties.set("report", json_object({{"type", "object"}, {"description", "a report"}}));
    required.emplace_back("report");
  }
  JsonValue schema = json_object({{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                  {"title", fmt::format("tpsim call: {}", call)},
                                  {"type", "object"}});
  schema.set("properties", std::move(properties));
  schema.set("required", json_array(required));
  return schema.set("additionalProperties", false);
}

}  // namespace tpsim::cli
