#include "frameworks/launch/framework_judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/files.h"
#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "formats/python_runner.h"
#include "formats/settings_text.h"
#include "frameworks/launch/shell_files.h"

namespace tpsim {
namespace {

// Returns a resolved argument as in the argument block of Megatron's log. Nothing if it is unset.
std::optional<std::string> logged_text(const JsonValue& value) {
  if (value.is_null() || value.as<JsonValue::Object>() != nullptr) return std::nullopt;
  if (const auto* flag = value.as<bool>()) return *flag ? "True" : "False";
  if (const auto* text = value.as<std::string>()) return *text;
  const auto* const list = value.as<JsonValue::Array>();
  if (list == nullptr) return to_line(value);
  if (list->empty()) return std::nullopt;
  std::string words;
  for (const JsonValue& one : *list) {
    words += (words.empty() ? "" : " ") + logged_text(one).value_or("None");
  }
  return words;
}

// Returns the command with the arguments that Megatron's parser resolved, as if from a log.
LaunchCommand with_resolved(LaunchCommand command, const JsonValue& settings) {
  command.is_log = true;
  command.options.clear();
  for (const JsonMember& one : *settings.as<JsonValue::Object>()) {
    std::optional<std::string> text = logged_text(one.value);
    if (!text || one.key == "world_size") continue;
    std::string name = "--" + one.key;
    std::replace(name.begin(), name.end(), '_', '-');
    command.options.push_back({std::move(name), *std::move(text)});
  }
  return command;
}

}  // namespace

JsonValue judged_arguments(const std::vector<LaunchOption>& options) {
  std::vector<std::string> words;
  for (const LaunchOption& option : options) {
    words.push_back(option.key);
    if (option.value.empty()) continue;
    if (takes_words(option.key)) {
      for (const std::string& word : words_in(option.value)) words.push_back(word);
    } else {
      words.push_back(option.value);
    }
  }
  return json_array(words, [](const std::string& word) { return JsonValue(word); });
}

JsonValue option_json(const std::string& value) {
  if (value.empty() || value == "null") return JsonValue();
  if (value == "true" || value == "false") return value == "true";
  if (const auto whole = parse_number<std::int64_t>(value)) return *whole;
  if (const auto real = parse_number<double>(value)) return *real;
  return value;
}

JsonValue judged_environment(std::string_view script, const LaunchSize& size) {
  JsonValue environment =
      json_object({{"WORLD_SIZE", std::to_string(size.nodes * size.gpus_per_node)},
                   {"LOCAL_WORLD_SIZE", std::to_string(size.gpus_per_node)}});
  constexpr std::string_view kExport = "export ";
  while (!script.empty()) {
    const std::string_view line = cut_off(script, "\n");
    const std::size_t equals = line.find('=');
    if (!line.starts_with(kExport) || equals == std::string_view::npos) continue;
    environment.set(std::string(line.substr(kExport.size(), equals - kExport.size())),
                    std::string(line.substr(equals + 1)));
  }
  return environment;
}

Result<JsonValue> run_judge(std::string_view framework, const JsonValue& given,
                            const std::vector<std::string>& checkouts,
                            const std::vector<LaunchFile>& files) {
  TPSIM_TRY(const PrivateFolder folder, PrivateFolder::create());
  for (const LaunchFile& file : files) {
    TPSIM_TRY_STATUS(write_file_atomically(folder.path() / file.name, file.text));
  }
  const std::filesystem::path path = folder.path() / "arguments.json";
  TPSIM_TRY_STATUS(write_file_atomically(path, to_text(given)));
  std::vector<std::string> words = checkout_words(checkouts);
  words.insert(words.end(), {"check", std::string(framework), path.string()});
  TPSIM_TRY(const std::string printed, output_of_recipes(words));
  TPSIM_TRY(JsonValue answer, parse_json(printed, checkouts.front()));
  if (answer.find("error") == nullptr) return answer;
  return bad_input(
      fmt::format("the code of {} failed: {}", framework, text_of_answer(answer, "error")),
      checkouts.front(), text_of_answer(answer, "hint"));
}

Result<ImportedPlan> import_megatron_script(LaunchCommand command, const LaunchFile& file,
                                            const ImportInputs& inputs) {
  // Settings of the script that tpsim does not know are reported from the script itself.
  TPSIM_TRY(ImportedPlan stated, import_megatron(command, inputs));
  if (!inputs.runs_code || inputs.checkouts.empty() || command.is_log) return stated;
  TPSIM_TRY(const LaunchSize size, size_of(command, inputs));
  const JsonValue given = json_object({{"environment", judged_environment(file.text, size)},
                                       {"arguments", judged_arguments(command.options)}});
  TPSIM_TRY(const JsonValue answer, run_judge("megatron-lm", given, inputs.checkouts));
  const JsonValue* const settings = answer.find("settings");
  if (settings == nullptr) {
    return bad_input(fmt::format("Megatron-LM in {} rejects these arguments: {}",
                                 inputs.checkouts.front(), text_of_answer(answer, "message")),
                     path_of(file), text_of_answer(answer, "where"));
  }
  TPSIM_TRY(ImportedPlan plan,
            import_megatron(with_resolved(std::move(command), *settings), inputs));
  plan.outside = std::move(stated.outside);
  plan.notes.push_back(fmt::format("arguments that the script omits have the defaults of {}",
                                   inputs.checkouts.front()));
  return plan;
}

}  // namespace tpsim
