// Python's own parser reads recipes, in a process of its own: recipe_reader.py.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "core/base/child_process.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "formats/settings_text.h"

namespace tpsim {

extern const std::span<const unsigned char> kRecipeProgram;

namespace {

// -I -S: nothing of the user's is imported.
std::vector<std::string> command_of(const std::string& path,
                                    const std::map<std::string, std::string>& given) {
  std::string program(kRecipeProgram.begin(), kRecipeProgram.end());
  std::vector<std::string> words = {"python3", "-I", "-S", "-c", std::move(program), path, ""};
  for (const auto& [name, value] : given) {
    if (name == kRecipeName) words.back() = value;
  }
  for (const auto& [name, value] : given) {
    if (name != kRecipeName && !names_setting(name))
      words.push_back(fmt::format("{}={}", name, value));
  }
  return words;
}

std::string text_in(const JsonValue& value, std::string_view key) {
  const JsonValue* found = value.find(key);
  const auto* text = found == nullptr ? nullptr : found->as<std::string>();
  return text == nullptr ? "" : *text;
}

Error refusal(const JsonValue& answer, const std::string& path) {
  const auto* line = answer.find("line")->as<std::int64_t>();
  return bad_input(text_in(answer, "error"),
                   place_of(path, line == nullptr ? 0 : static_cast<int>(*line)),
                   text_in(answer, "hint"));
}

Error which_recipe(const JsonValue& functions, const std::string& path,
                   const std::map<std::string, std::string>& given) {
  std::vector<std::string> names;
  for (const JsonValue& name : *functions.as<JsonValue::Array>()) {
    names.push_back(*name.as<std::string>());
  }
  if (names.empty()) {
    return bad_input("is a program that makes no recipe by a function of its own", path,
                     "import the configuration that it writes as YAML, or the log of a run, which "
                     "prints its arguments");
  }
  const auto asked = given.find(std::string(kRecipeName));
  if (asked != given.end()) {
    Error unknown = choose(kRecipeName, asked->second, names).error();
    unknown.where = path;
    return unknown;
  }
  return bad_input(fmt::format("which of its recipes? {}", fmt::join(names, ", ")), path,
                   fmt::format("--set {}=NAME", kRecipeName));
}

FlatSetting setting_of(const JsonValue& row) {
  const auto& parts = *row.as<JsonValue::Array>();
  return {*parts[0].as<std::string>(), *parts[1].as<std::string>(),
          static_cast<int>(*parts[2].as<std::int64_t>())};
}

}  // namespace

Result<PythonSettings> flat_python(const std::string& path,
                                   const std::map<std::string, std::string>& given) {
  Result<std::string> printed = output_of_program(command_of(path, given));
  if (!printed.ok() && printed.error().kind == ErrorKind::kMissing) {
    return Error{ErrorKind::kMissing, "is Python, which python3 has to parse; it is not here", path,
                 "apt-get install python3"};
  }
  if (!printed.ok()) return bad_input("cannot be followed", path, printed.error().message);
  TPSIM_TRY(const JsonValue answer, parse_json(*printed, path));
  if (answer.find("error") != nullptr) return refusal(answer, path);
  if (const JsonValue* functions = answer.find("functions")) {
    return which_recipe(*functions, path, given);
  }
  PythonSettings read;
  read.function = text_in(answer, "function");
  for (const JsonValue& name : *answer.find("given_away")->as<JsonValue::Array>()) {
    read.passed_elsewhere.push_back(*name.as<std::string>());
  }
  for (const JsonValue& row : *answer.find("settings")->as<JsonValue::Array>()) {
    read.settings.push_back(setting_of(row));
  }
  return read;
}

}  // namespace tpsim
