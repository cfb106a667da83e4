// Runs shell scripts by tpsim_recipes.
#include "formats/shell_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/files.h"
#include "core/json/json_document.h"
#include "formats/python_runner.h"

namespace tpsim {
namespace {

std::vector<std::string> strings_at(const JsonValue& object, std::string_view key) {
  std::vector<std::string> strings;
  const JsonValue* const found = object.find(key);
  if (found == nullptr) return strings;
  for (const JsonValue& one : *found->as<JsonValue::Array>()) {
    strings.push_back(*one.as<std::string>());
  }
  return strings;
}

std::map<std::string, std::string> texts_at(const JsonValue& object, std::string_view key) {
  std::map<std::string, std::string> texts;
  for (const JsonMember& one : *object.find(key)->as<JsonValue::Object>()) {
    texts[one.key] = *one.value.as<std::string>();
  }
  return texts;
}

std::vector<ShellCommand> commands_at(const JsonValue& object) {
  std::vector<ShellCommand> commands;
  for (const JsonValue& one : *object.find("commands")->as<JsonValue::Array>()) {
    commands.push_back(
        {strings_at(one, "words"), texts_at(one, "environment"), text_of_answer(one, "folder")});
  }
  return commands;
}

ShellScript script_of(const JsonValue& answer) {
  ShellScript script;
  script.commands = commands_at(answer);
  for (const JsonValue& one : *answer.find("variants")->as<JsonValue::Array>()) {
    script.variants.push_back({text_of_answer(one, "unknown"), text_of_answer(one, "kind"),
                               commands_at(one), texts_at(one, "files")});
  }
  const std::vector<std::string> used = strings_at(answer, "used");  // sorted
  for (const JsonMember& one : *answer.find("variables")->as<JsonValue::Object>()) {
    ShellVariable& variable = script.variables.emplace_back(ShellVariable{one.key, {}});
    for (const JsonValue& value : *one.value.as<JsonValue::Array>()) {
      variable.values.push_back(*value.as<std::string>());
    }
    variable.is_used = std::binary_search(used.begin(), used.end(), one.key);
  }
  script.files = texts_at(answer, "files");
  script.folder = text_of_answer(answer, "folder");
  script.missing = strings_at(answer, "missing");
  script.replaced = strings_at(answer, "replaced");
  script.asked = strings_at(answer, "asked");
  script.not_isolated = text_of_answer(answer, "not_isolated");
  return script;
}

// Returns the error of an --answer for a command that the script does not run.
Error no_such_command(const std::string& unused, const JsonValue& answer, const LaunchFile& file) {
  const std::vector<std::string> programs = strings_at(answer, "programs");
  return bad_input(
      fmt::format("--answer '{}' names no command whose output the script uses", unused),
      path_of(file),
      programs.empty()
          ? "leave the option out"
          : fmt::format("the script uses the output of: {}", fmt::join(programs, "; ")));
}

}  // namespace

Result<ShellScript> run_script(const LaunchFile& file, const ShellInputs& inputs) {
  const Error needs_bash{ErrorKind::kMissing, "is a script: tpsim import needs bash and python3",
                         path_of(file), "or give the training command as one line of plain words"};
  if (!inputs.runs) return needs_bash;
  TPSIM_TRY(const PrivateFolder folder, PrivateFolder::create());
  const std::string text = (folder.path() / "script").string();
  TPSIM_TRY_STATUS(write_file_atomically(text, file.text));
  std::vector<std::string> words = {text, "--path", path_of(file)};
  for (const auto& [name, value] : inputs.given) {
    words.push_back(fmt::format("--set={}={}", name, value));
  }
  for (const std::string& answer : inputs.answers) words.push_back("--answer=" + answer);
  if (inputs.trusts) words.emplace_back("--trust");
  if (inputs.runs_python) words.emplace_back("--run");
  const auto printed = output_of_recipes(std::move(words), "tpsim_recipes.shell");
  if (!printed.ok() && printed.error().kind == ErrorKind::kMissing) return needs_bash;
  TPSIM_TRY(const std::string json, printed);
  TPSIM_TRY(const JsonValue answer, parse_json(json, path_of(file)));
  const std::string why_not = text_of_answer(answer, "not_isolated");
  if (!why_not.empty() && !inputs.trusts) {
    return bad_input(
        fmt::format("this system does not allow the namespaces in which tpsim runs scripts ({})",
                    why_not),
        path_of(file),
        "add --trust to run the script without isolation: stubs replace programs in PATH, but the "
        "script can write files");
  }
  if (std::string error = text_of_answer(answer, "error"); !error.empty()) {
    std::string hint = text_of_answer(answer, "hint");
    if (hint.empty()) {
      hint = "give the training command as one line of plain words, or its options as a file";
    }
    return bad_input(std::move(error), path_of(file), std::move(hint));
  }
  const std::vector<std::string> unused = strings_at(answer, "unused");
  if (!unused.empty()) return no_such_command(unused.front(), answer, file);
  return script_of(answer);
}

}  // namespace tpsim
