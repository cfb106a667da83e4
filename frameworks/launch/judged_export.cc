#include "frameworks/launch/judged_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/files.h"
#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "formats/python_runner.h"
#include "frameworks/launch/launch_command.h"

namespace tpsim {
namespace {

// Returns the framework's name in tpsim_recipes; empty if tpsim_recipes cannot judge files of this
// stack.
std::string_view judge_of(LaunchStack stack) {
  return stack == LaunchStack::kMegatronLm ? "megatron-lm" : "";
}

// Returns variables of "export NAME=VALUE" lines of the script, and variables that torchrun sets.
JsonValue environment_of(const LaunchFile& file, const LaunchSize& size) {
  JsonValue environment =
      json_object({{"WORLD_SIZE", std::to_string(size.nodes * size.gpus_per_node)},
                   {"LOCAL_WORLD_SIZE", std::to_string(size.gpus_per_node)}});
  constexpr std::string_view kExport = "export ";
  for (std::string_view rest = file.text; !rest.empty();) {
    const std::string_view line = cut_off(rest, "\n");
    const std::size_t equals = line.find('=');
    if (!line.starts_with(kExport) || equals == std::string_view::npos) continue;
    environment.set(std::string(line.substr(kExport.size(), equals - kExport.size())),
                    std::string(line.substr(equals + 1)));
  }
  return environment;
}

// Arguments that the user adds to exported files: data, tokenizer and schedule.
constexpr const char* kUsers[] = {"--train-iters",    "10",           "--lr", "1e-4", "--mock-data",
                                  "--tokenizer-type", "NullTokenizer"};

JsonValue words_of(const std::vector<LaunchOption>& options) {
  std::vector<std::string> words;
  for (const LaunchOption& option : options) {
    words.push_back(option.name);
    if (option.value.empty()) continue;
    if (takes_words(option.name)) {
      for (const std::string& word : words_in(option.value)) words.push_back(word);
    } else {
      words.push_back(option.value);
    }
  }
  words.insert(words.end(), std::begin(kUsers), std::end(kUsers));
  return json_array(words, [](const std::string& word) { return JsonValue(word); });
}

// Returns a resolved value in the format of an option.
std::string option_text(const JsonValue& value) {
  if (const auto* flag = value.as<bool>()) return *flag ? "" : "off";
  if (const auto* text = value.as<std::string>()) return *text;
  if (const auto* list = value.as<JsonValue::Array>()) {
    std::string words;
    for (const JsonValue& one : *list) words += (words.empty() ? "" : " ") + option_text(one);
    return words;
  }
  return to_line(value);
}

bool is_same(std::string stated, const std::string& resolved) {
  std::replace(stated.begin(), stated.end(), ',', ' ');  // "--window-size 4096,0"
  const auto a = parse_number<double>(stated), b = parse_number<double>(resolved);
  if (a && b) return std::abs(*a - *b) <= 1e-12 * std::abs(*a);
  return stated == resolved || in_lower_case(stated) == in_lower_case(resolved);
}

// Compares each stated option with the framework's value of the same name. Options stored under
// another name, such as --no-... switches, are skipped.
void compare_options(const std::vector<LaunchOption>& options, const JsonValue& settings,
                     Judgement& judgement) {
  for (const LaunchOption& option : options) {
    std::string name = option.name.substr(2);
    std::replace(name.begin(), name.end(), '-', '_');
    const JsonValue* const resolved = settings.find(name);
    const bool is_list = option.value.find_first_of("[(|") != std::string::npos;  // other format
    if (resolved == nullptr || resolved->as<JsonValue::Object>() != nullptr || is_list) continue;
    const std::string text = option_text(*resolved);
    if (is_same(option.value, text)) {
      ++judgement.held;
    } else {
      judgement.changed.push_back({option.name, option.value.empty() ? "on" : option.value,
                                   resolved->is_null() ? "none"
                                   : text.empty()      ? "on"
                                                       : text});
    }
  }
}

Judgement judgement_of(const JsonValue& answer) {
  Judgement judgement;
  const JsonValue* const accepted = answer.find("accepted");
  judgement.is_accepted =
      accepted != nullptr && accepted->as<bool>() != nullptr && *accepted->as<bool>();
  judgement.message = text_of_answer(answer, "message");
  judgement.where = text_of_answer(answer, "where");
  if (const JsonValue* const stubs = answer.find("stubs")) {
    for (const JsonMember& one : *stubs->as<JsonValue::Object>()) {
      judgement.stubs.push_back(one.key);
    }
  }
  if (const JsonValue* const meta = answer.find("tpsim_recipe")) {
    judgement.not_isolated = text_of_answer(*meta, "not_isolated");
  }
  return judgement;
}

}  // namespace

Result<Judgement> judged_export(LaunchStack stack, const std::vector<LaunchFile>& files,
                                const std::vector<std::string>& checkouts) {
  const std::string_view judge = judge_of(stack);
  if (judge.empty()) {
    return bad_input(fmt::format("tpsim cannot let {} judge its files yet", name_of(stack)), "",
                     "--check judges files for megatron-lm");
  }
  TPSIM_TRY(const LaunchFile file, file_named(files, launch_file_names(stack).front()));
  TPSIM_TRY(const LaunchCommand command, read_launch_command(file));
  JsonValue given = json_object({{"arguments", words_of(command.options)},
                                 {"environment", environment_of(file, command.size)}});
  TPSIM_TRY(const PrivateFolder folder, PrivateFolder::create());
  const std::filesystem::path path = folder.path() / "arguments.json";
  TPSIM_TRY_STATUS(write_file_atomically(path, to_text(given)));
  std::vector<std::string> words;
  for (const std::string& checkout : checkouts) words.insert(words.end(), {"--checkout", checkout});
  words.insert(words.end(), {"check", std::string(judge), path.string()});
  TPSIM_TRY(const std::string printed, output_of_recipes(words));
  TPSIM_TRY(const JsonValue answer, parse_json(printed, checkouts.front()));
  if (answer.find("error") != nullptr) {
    return bad_input(fmt::format("the judge failed: {}", text_of_answer(answer, "error")),
                     checkouts.front(), text_of_answer(answer, "hint"));
  }
  Judgement judgement = judgement_of(answer);
  const JsonValue* const settings = answer.find("settings");
  if (settings != nullptr) compare_options(command.options, *settings, judgement);
  return judgement;
}

}  // namespace tpsim
